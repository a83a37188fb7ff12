package bundle

import (
	"cmp"
	"context"
	"path"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/doctor"
)

// Kinds that the support bundle contains.
var (
	kindPod      = corev1.SchemeGroupVersion.WithKind("Pod")
	kindClaim    = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	kindVolume   = corev1.SchemeGroupVersion.WithKind("PersistentVolume")
	kindNode     = corev1.SchemeGroupVersion.WithKind("Node")
	kindEvent    = corev1.SchemeGroupVersion.WithKind("Event")
	kindClass    = storagev1.SchemeGroupVersion.WithKind("StorageClass")
	kindSnapshot = snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshot")
	kindContent  = snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshotContent")
)

// listing is a kind whose objects are written to a file.
type listing struct {
	file string
	kind schema.GroupVersionKind
	opts []client.ListOption
}

// listingsOfHost returns the host's listings that need no filter other than a label or namespace.
func listingsOfHost(namespace string) []listing {
	labelled := client.MatchingLabels{command.LabelName: command.LabelNameValue}
	created := client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}
	in := client.InNamespace(namespace)
	return []listing{
		{"csidrivers", storagev1.SchemeGroupVersion.WithKind("CSIDriver"), nil},
		{"csinodes", storagev1.SchemeGroupVersion.WithKind("CSINode"), []client.ListOption{created}},
		{"csistoragecapacities", storagev1.SchemeGroupVersion.WithKind("CSIStorageCapacity"), []client.ListOption{in, created}},
		{"validatingadmissionpolicies", admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"), []client.ListOption{labelled}},
		{"validatingadmissionpolicybindings", admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"), []client.ListOption{labelled}},
		{"leases", coordinationv1.SchemeGroupVersion.WithKind("Lease"), []client.ListOption{in}},
		{"node-leases", coordinationv1.SchemeGroupVersion.WithKind("Lease"), []client.ListOption{client.InNamespace(corev1.NamespaceNodeLease), created}},
		{"deployments", appsv1.SchemeGroupVersion.WithKind("Deployment"), []client.ListOption{in}},
		{"manager-pods", kindPod, []client.ListOption{in}},
		{"manager-events", kindEvent, []client.ListOption{in}},
		{"volumesnapshotclasses", snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshotClass"), nil},
	}
}

// collectHost writes the objects in the host that are related to Xylem.
func (o *options) collectHost(ctx context.Context, b *bundle, source *doctor.Source) error {
	c := &cluster{bundle: b, source: source, folder: "host"}
	for _, list := range listingsOfHost(o.env.Namespace) {
		if err := c.saveObjects(list.file, c.readObjects(ctx, list.kind, nil, list.opts...)); err != nil {
			return err
		}
	}
	registrations := c.readObjects(ctx, v1alpha1.GroupVersion.WithKind("ClusterRegistration"), nil)
	nodes := c.readObjects(ctx, kindNode, nil, client.MatchingLabels{v1alpha1.LabelVirtualNode: "true"})
	classes := c.readObjects(ctx, kindClass, nil)
	volumes := c.readObjects(ctx, kindVolume, isOfXylemDrivers)
	contents := c.readObjects(ctx, kindContent, func(obj *unstructured.Unstructured) bool {
		return nestedField(obj, "spec", "driver") == v1alpha1.ProvisionerName
	})
	s := newTenantScope(classes, nodes, volumes, contents)
	claims := c.readObjects(ctx, kindClaim, s.includesClaim) // before the Pods and snapshots, which are selected by claim too
	pods := c.readObjects(ctx, kindPod, s.includesPod)
	snapshots := c.readObjects(ctx, kindSnapshot, s.includesSnapshot)
	for _, file := range []struct {
		name    string
		objects []*unstructured.Unstructured
	}{
		{"clusterregistrations", registrations}, {"nodes", nodes}, {"storageclasses", classes}, {"persistentvolumes", volumes},
		{"persistentvolumeclaims", claims}, {"pods", pods}, {"volumesnapshots", snapshots}, {"volumesnapshotcontents", contents},
	} {
		if err := c.saveObjects(file.name, file.objects); err != nil {
			return err
		}
	}
	if err := c.collectEvents(ctx, registrations, nodes, volumes, claims, pods, snapshots, contents); err != nil {
		return err
	}
	return o.writeManagerLogs(ctx, c)
}

// isOfXylemDrivers reports whether a host PV belongs to one of Xylem's drivers.
func isOfXylemDrivers(pv *unstructured.Unstructured) bool {
	driver := nestedField(pv, "spec", "csi", "driver")
	return driver == v1alpha1.ProvisionerName || driver == v1alpha1.PromiseDriverName
}

func nestedField(obj *unstructured.Unstructured, path ...string) string {
	value, _, err := unstructured.NestedString(obj.Object, path...)
	if err != nil {
		return ""
	}
	return value
}

// scope determines which claims, Pods and snapshots in the host are related to Xylem.
type scope struct{ classes, nodes, volumes, contents, claims sets.Set[string] }

func newTenantScope(classes, nodes, volumes, contents []*unstructured.Unstructured) scope {
	s := scope{classes: sets.New[string](), nodes: namesOfObjects(nodes), volumes: namesOfObjects(volumes), contents: namesOfObjects(contents), claims: sets.New[string]()}
	for _, class := range classes {
		if nestedField(class, "provisioner") == v1alpha1.ProvisionerName {
			s.classes.Insert(class.GetName())
		}
	}
	return s
}

func namesOfObjects(objects []*unstructured.Unstructured) sets.Set[string] {
	all := sets.New[string]()
	for _, obj := range objects {
		all.Insert(obj.GetName())
	}
	return all
}

// includesClaim reports whether a claim is related to Xylem, and records it if so.
func (s scope) includesClaim(obj *unstructured.Unstructured) bool {
	ours := s.classes.Has(nestedField(obj, "spec", "storageClassName")) || s.volumes.Has(nestedField(obj, "spec", "volumeName")) || obj.GetAnnotations()[v1alpha1.AnnotationPlacedIn] != ""
	if ours {
		s.claims.Insert(obj.GetNamespace() + "/" + obj.GetName())
	}
	return ours
}

func (s scope) includesPod(obj *unstructured.Unstructured) bool {
	if s.nodes.Has(nestedField(obj, "spec", "nodeName")) || s.nodes.Has(nestedField(obj, "status", "nominatedNodeName")) {
		return true
	}
	volumes, _, err := unstructured.NestedSlice(obj.Object, "spec", "volumes")
	if err != nil {
		return false
	}
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		name, _, err := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName")
		if err == nil && s.claims.Has(obj.GetNamespace()+"/"+name) {
			return true
		}
	}
	return false
}

func (s scope) includesSnapshot(obj *unstructured.Unstructured) bool {
	return s.contents.Has(nestedField(obj, "status", "boundVolumeSnapshotContentName")) ||
		s.claims.Has(obj.GetNamespace()+"/"+nestedField(obj, "spec", "source", "persistentVolumeClaimName"))
}

// collectEvents writes the events about the given objects.
func (c *cluster) collectEvents(ctx context.Context, lists ...[]*unstructured.Unstructured) error {
	about, namespaces := sets.New[string](), sets.New[string]()
	for _, list := range lists {
		for _, obj := range list {
			about.Insert(string(obj.GetUID()))
			namespaces.Insert(cmp.Or(obj.GetNamespace(), corev1.NamespaceDefault)) // events about cluster-scoped objects are in namespace default
		}
	}
	var events []*unstructured.Unstructured
	for _, namespace := range sets.List(namespaces) {
		events = append(events, c.readObjects(ctx, kindEvent, func(e *unstructured.Unstructured) bool {
			return about.Has(nestedField(e, "involvedObject", "uid"))
		}, client.InNamespace(namespace))...)
	}
	return c.writeList(path.Join(c.folder, "events.yaml"), events)
}

// collectMember writes the leaf objects of this host in a member, and other objects that affect them.
func (b *bundle) collectMember(ctx context.Context, source *doctor.Source, hostID, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, memberTotal)
	defer cancel()
	c := &cluster{bundle: b, source: source, folder: folderOfSource(source)}
	ours := client.MatchingLabels{v1alpha1.LabelHost: hostID}
	lists := map[string][]*unstructured.Unstructured{
		"pods": c.readObjects(ctx, kindPod, nil, ours), "persistentvolumeclaims": c.readObjects(ctx, kindClaim, nil, ours),
		"persistentvolumes":      c.readObjects(ctx, kindVolume, nil, ours),
		"volumesnapshots":        c.readObjects(ctx, kindSnapshot, nil, ours),
		"volumesnapshotcontents": c.readObjects(ctx, kindContent, nil, ours),
	}
	events := [][]*unstructured.Unstructured{}
	for file, objects := range lists {
		events = append(events, objects)
		if err := c.saveObjects(file, objects); err != nil {
			return err
		}
	}
	for file, objects := range map[string][]*unstructured.Unstructured{
		"namespaces":           c.readObjects(ctx, corev1.SchemeGroupVersion.WithKind("Namespace"), nil, ours),
		"storageclasses":       c.readObjects(ctx, kindClass, nil),
		"nodes":                c.readObjects(ctx, kindNode, nil),
		"csistoragecapacities": c.readObjects(ctx, storagev1.SchemeGroupVersion.WithKind("CSIStorageCapacity"), nil),
		"leases":               c.readFenceLeases(ctx, namespace, hostID),
	} {
		if err := c.saveObjects(file, objects); err != nil {
			return err
		}
	}
	return c.collectEvents(ctx, events...)
}

// readFenceLeases reads the host's Lease in a member.
func (c *cluster) readFenceLeases(ctx context.Context, namespace, hostID string) []*unstructured.Unstructured {
	lease := &unstructured.Unstructured{}
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	if err := c.source.Get(ctx, client.ObjectKey{Namespace: namespace, Name: hostID}, lease); err != nil {
		c.recordMissing(c.source.Name, "the fence Lease "+hostID, err)
		return nil
	}
	return []*unstructured.Unstructured{lease}
}
