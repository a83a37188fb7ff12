package doctor

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
)

const (
	// defaultAccount is the name of the manager's account, unless its Deployment names another one.
	defaultAccount = "xylem-controller-manager"
	// componentLabel is on the Pods of a control plane that runs in Pods, such as kubeadm's.
	componentLabel = "component"
	// pathsMost is the maximum number of virtual nodes for which doctor checks the path from the API
	// server to the manager.
	pathsMost = 100
)

// readHost reads the host.
func (r *reader) readHost(ctx context.Context, id, namespace string, now time.Time) Host {
	h := Host{Cluster: Cluster{ID: id}, Namespace: namespace, Paths: map[string]Path{}}
	h.Version = r.version()
	h.Account = Account{Namespace: namespace, Name: defaultAccount}
	r.readManager(ctx, &h)
	h.At = r.dates.Now()
	jobs(
		func() { r.policies(ctx, &h.Cluster) },
		func() { h.Mutating = r.mutating() },
		func() { r.hostRights(ctx, &h) },
		func() { h.Definition = r.definition(ctx) },
		func() {
			h.Driver = find[storagev1.CSIDriver](ctx, r, "CSIDriver "+v1alpha1.ProvisionerName, client.ObjectKey{Name: v1alpha1.ProvisionerName})
		},
		func() {
			h.Promises = find[storagev1.CSIDriver](ctx, r, "CSIDriver "+v1alpha1.PromiseDriverName, client.ObjectKey{Name: v1alpha1.PromiseDriverName})
		},
		func() {
			h.CSINodes = list(ctx, r, "CSINodes of virtual nodes", &storagev1.CSINodeList{}, func(l *storagev1.CSINodeList) []storagev1.CSINode { return l.Items }, created)
		},
		func() {
			h.Registrations = list(ctx, r, "ClusterRegistrations", &v1alpha1.ClusterRegistrationList{},
				func(l *v1alpha1.ClusterRegistrationList) []v1alpha1.ClusterRegistration { return l.Items })
		},
		func() { r.readNodes(ctx, &h) },
		func() { r.readControlPlane(ctx, &h) },
		func() { r.readLeftovers(ctx, &h) },
		func() { r.readSnapshots(ctx, &h, now) },
		func() { h.Annotated = r.annotated(ctx) },
	)
	h.Clock = r.dates.Measurement()
	return h
}

// readManager reads the manager's Deployment and the leader's Lease.
func (r *reader) readManager(ctx context.Context, h *Host) {
	deployments := list(ctx, r, "the manager's Deployment", &appsv1.DeploymentList{},
		func(l *appsv1.DeploymentList) []appsv1.Deployment { return l.Items }, client.InNamespace(h.Namespace), managers)
	h.Deployment.Read = deployments.Read
	if len(deployments.Items) > 0 {
		h.Deployment.Item = &deployments.Items[0]
		if name := h.Deployment.Item.Spec.Template.Spec.ServiceAccountName; name != "" {
			h.Account.Name = name
		}
	}
	h.Leader = find[coordinationv1.Lease](ctx, r, "Lease "+v1alpha1.LeaderLease, client.ObjectKey{Namespace: h.Namespace, Name: v1alpha1.LeaderLease})
}

func (r *reader) hostRights(ctx context.Context, h *Host) {
	needs, err := HostRights(h.Account)
	if err != nil {
		r.miss("the permissions of the manager's account", err)
		return
	}
	h.Rights = r.rights(rightsOfAccount(ctx, r.raw, h.Account, needs, Excess()))
}

// mutating reads whether the API server serves MutatingAdmissionPolicies, as it does from
// Kubernetes 1.36 on.
func (r *reader) mutating() Object[bool] {
	resources, err := r.raw.Discovery().ServerResourcesForGroupVersion(admissionv1.SchemeGroupVersion.String())
	if err != nil {
		r.miss("whether MutatingAdmissionPolicies are served", err)
		return Object[bool]{}
	}
	served := slices.ContainsFunc(resources.APIResources, func(resource metav1.APIResource) bool { return resource.Name == "mutatingadmissionpolicies" })
	return Object[bool]{Item: &served, Read: true}
}

func (r *reader) definition(ctx context.Context) Object[unstructured.Unstructured] {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	const name = "clusterregistrations.cluster.xylem.io"
	return findInto[unstructured.Unstructured](ctx, r, "CustomResourceDefinition "+name, client.ObjectKey{Name: name}, crd)
}

// readNodes reads the virtual nodes, checks for each one whether the API server reaches the manager
// as its kubelet, and reads the DaemonSets that may have Pods on the nodes.
func (r *reader) readNodes(ctx context.Context, h *Host) {
	h.Nodes = list(ctx, r, "virtual nodes", &corev1.NodeList{}, func(l *corev1.NodeList) []corev1.Node { return l.Items },
		client.MatchingLabels{v1alpha1.LabelVirtualNode: "true"})
	var mu sync.Mutex
	var reads []func()
	for _, node := range h.Nodes.Items[:min(pathsMost, len(h.Nodes.Items))] {
		if node.Status.DaemonEndpoints.KubeletEndpoint.Port == 0 {
			continue
		}
		reads = append(reads, func() {
			p := r.path(ctx, node.Name)
			p.Own = p.Own || p.Code != http.StatusOK && !proxied(&node)
			mu.Lock()
			defer mu.Unlock()
			h.Paths[node.Name] = p
		})
	}
	jobs(append(reads, func() {
		h.DaemonSets = list(ctx, r, "DaemonSets", &appsv1.DaemonSetList{}, func(l *appsv1.DaemonSetList) []appsv1.DaemonSet { return l.Items })
	})...)
}

// proxied reports whether the API server proxies requests to a node's address. Local addresses, which
// test clusters use, are excluded (k8s.io/kubernetes/pkg/registry/core/node: isProxyableHostname).
func proxied(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool {
		ip := net.ParseIP(a.Address)
		return a.Type == corev1.NodeInternalIP && ip != nil && !ip.IsGlobalUnicast()
	})
}

// path requests the health of a virtual node's kubelet, which is the manager, through the API
// server.
func (r *reader) path(ctx context.Context, node string) Path {
	code, err := r.get(ctx, "/api/v1/nodes/", node, "proxy", "healthz")
	p := Path{Code: code}
	if err == nil {
		return p
	}
	p.Detail = inspect.Plain(err.Error())
	// A rejection by the API server's authorizer names the kind of the object, but a rejection by the
	// manager does not.
	p.Own = code == http.StatusForbidden && details(err) == "nodes"
	return p
}

// readControlPlane reads the visible settings of the control plane.
func (r *reader) readControlPlane(ctx context.Context, h *Host) {
	jobs(
		func() {
			h.Control = list(ctx, r, "the control plane's Pods", &corev1.PodList{}, pods, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{componentLabel})
		},
		func() {
			found, err := readFeatureGates(ctx, r.raw)
			if err != nil {
				r.miss("the API server's feature gates", err)
				return
			}
			h.Gates = Object[map[string]bool]{Item: &found, Read: true}
		},
	)
}

// annotated reads the claims without a volume whose class only the old annotation names.
func (r *reader) annotated(ctx context.Context) List[Claim] {
	return list(ctx, r, "PersistentVolumeClaims", &corev1.PersistentVolumeClaimList{}, func(l *corev1.PersistentVolumeClaimList) []Claim {
		var some []Claim
		for i := range l.Items {
			if c := &l.Items[i]; c.Spec.VolumeName == "" && hostclass.NamedOnlyByAnnotation(c) {
				some = append(some, Claim{Namespace: c.Namespace, Name: c.Name, Class: hostclass.NameOf(c)})
			}
		}
		return some
	})
}

// created selects the objects that Xylem created.
var created = client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}

// readLeftovers reads the objects that members may have left behind when they were deregistered.
func (r *reader) readLeftovers(ctx context.Context, h *Host) {
	leases := func(l *coordinationv1.LeaseList) []coordinationv1.Lease { return l.Items }
	jobs(
		func() {
			h.Heartbeats = list(ctx, r, "Leases of virtual nodes", &coordinationv1.LeaseList{}, leases, client.InNamespace(corev1.NamespaceNodeLease), created)
		},
		func() {
			h.Volumes = r.metadata(ctx, "PersistentVolumes", corev1.SchemeGroupVersion.WithKind("PersistentVolume"), client.HasLabels{v1alpha1.LabelClusterID})
		},
		func() {
			h.Secrets = r.metadata(ctx, "the names of Secrets in namespace "+h.Namespace, corev1.SchemeGroupVersion.WithKind("Secret"), client.InNamespace(h.Namespace), created)
		},
		func() {
			h.Capacities = list(ctx, r, "CSIStorageCapacities", &storagev1.CSIStorageCapacityList{},
				func(l *storagev1.CSIStorageCapacityList) []storagev1.CSIStorageCapacity { return l.Items }, client.InNamespace(h.Namespace), created)
		},
		func() {
			h.Classes = list(ctx, r, "StorageClasses", &storagev1.StorageClassList{}, func(l *storagev1.StorageClassList) []storagev1.StorageClass { return l.Items })
		},
	)
}

// readSnapshots reads whether the host serves snapshots, and which snapshots have no content.
func (r *reader) readSnapshots(ctx context.Context, h *Host, now time.Time) {
	h.Snapshots = r.snapshots()
	if h.Snapshots.Item == nil || !*h.Snapshots.Item {
		return
	}
	into := &unstructured.UnstructuredList{}
	into.SetGroupVersionKind(snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshotList"))
	h.Unbound = list(ctx, r, "VolumeSnapshots", into, func(l *unstructured.UnstructuredList) []Snapshot {
		var some []Snapshot
		for i := range l.Items {
			s := &l.Items[i]
			if content, _, err := unstructured.NestedString(s.Object, "status", "boundVolumeSnapshotContentName"); err == nil && content == "" {
				some = append(some, Snapshot{Namespace: s.GetNamespace(), Name: s.GetName(), Age: now.Sub(s.GetCreationTimestamp().Time)})
			}
		}
		return some
	})
}
