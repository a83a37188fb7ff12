package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/wording"
)

// CheckLeftovers is the name of this check.
const CheckLeftovers Check = "Leftovers"

var (
	leftoversCheck       = checkOf[*Facts]{name: CheckLeftovers, read: readLeftovers, judge: infallible(judgeHostLeftovers)}
	memberLeftoversCheck = checkOf[*Member]{name: CheckLeftovers, read: readLeaves, judge: infallible(judgeLeaves)}
)

// leftoverFacts are objects that members may have left behind when they were deregistered.
type leftoverFacts struct {
	// Heartbeats are the Leases of virtual nodes.
	Heartbeats inspect.Objects[coordinationv1.Lease]
	// Volumes are the metadata of the members' host PVs, and Secrets are the metadata of the Secrets
	// in the manager's namespace.
	Volumes, Secrets inspect.Objects[metav1.PartialObjectMetadata]
	Capacities       inspect.Objects[storagev1.CSIStorageCapacity]
	Classes          inspect.Objects[storagev1.StorageClass]
}

// readLeftovers reads the objects that members may have left behind when they were deregistered.
func readLeftovers(ctx context.Context, r *inspect.Reader, f *Facts) {
	h := &f.Host
	leases := func(l *coordinationv1.LeaseList) []coordinationv1.Lease { return l.Items }
	inspect.RunReadsTogether(
		func() {
			h.Heartbeats = inspect.ReadList(ctx, r, "Leases of virtual nodes", &coordinationv1.LeaseList{}, leases, client.InNamespace(corev1.NamespaceNodeLease), created)
		},
		func() {
			h.Volumes = r.ReadMetadata(ctx, "PersistentVolumes", corev1.SchemeGroupVersion.WithKind("PersistentVolume"), client.HasLabels{v1alpha1.LabelClusterID})
		},
		func() {
			h.Secrets = r.ReadMetadata(ctx, "the names of Secrets in namespace "+h.Namespace, corev1.SchemeGroupVersion.WithKind("Secret"), client.InNamespace(h.Namespace), created)
		},
		func() {
			h.Capacities = inspect.ReadList(ctx, r, "CSIStorageCapacities", &storagev1.CSIStorageCapacityList{},
				func(l *storagev1.CSIStorageCapacityList) []storagev1.CSIStorageCapacity { return l.Items }, client.InNamespace(h.Namespace), created)
		},
		func() {
			h.Classes = inspect.ReadList(ctx, r, "StorageClasses", &storagev1.StorageClassList{}, func(l *storagev1.StorageClassList) []storagev1.StorageClass { return l.Items })
		},
	)
}

// judgeHostLeftovers reports objects in the host that belong to unregistered members.
func judgeHostLeftovers(f *Facts) []Finding {
	h := &f.Host
	if !h.Registrations.Read {
		return nil
	}
	left := strayObjects(h)
	var found []Finding
	report := func(level Level, kind string, names []string, why, toDo string) {
		if len(names) > 0 {
			found = append(found, problem(level, fmt.Sprintf("left over: %s. %s", enumerateNamed(kind, names), why), toDo))
		}
	}
	report(Warning, "Node", left.Nodes, "These virtual nodes have no registration", "When no Pods are left on these nodes, delete them: kubectl delete node NAME")
	report(Warning, "Lease", left.Leases, "No virtual nodes with these names exist", "Delete the Leases: kubectl -n kube-node-lease delete lease NAME")
	report(Error, "PersistentVolume", left.Volumes, "The volumes are in clusters that are not registered, so Xylem cannot complete their deletion",
		fmt.Sprintf("Register the clusters again. To abandon the PersistentVolumes instead, and keep their data: kubectl annotate pv NAME %s=true", v1alpha1.AnnotationAbandon))
	report(Warning, "Secret", left.Secrets, "They contain credentials for clusters, but no registration refers to them",
		fmt.Sprintf("Delete the Secrets: kubectl -n %s delete secret NAME. Also delete the manager's account in the member.", h.Namespace))
	report(Warning, "CSIStorageCapacity", left.Capacities, "They publish the capacity of clusters that are not registered", fmt.Sprintf("Delete the objects: kubectl -n %s delete csistoragecapacity NAME", h.Namespace))
	report(Warning, "StorageClass", left.Classes, "They were reflected from members that are not registered", "Delete the classes, unless new claims should use them: kubectl delete storageclass NAME")
	whole := h.Nodes.Read && h.Heartbeats.Read && h.Volumes.Read && h.Secrets.Read && h.Capacities.Read && h.Classes.Read
	if len(found) == 0 && whole {
		return []Finding{passed("members that are not registered left nothing behind")}
	}
	return found
}

// leafKinds are the kinds of leaf objects.
var leafKinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	corev1.SchemeGroupVersion.WithKind("PersistentVolume"), corev1.SchemeGroupVersion.WithKind("Namespace"),
}

// readLeaves counts this host's objects in a member that is not registered.
func readLeaves(ctx context.Context, r *inspect.Reader, m *Member) {
	if m.Registration != "" || !m.Own {
		return
	}
	m.Leaves = map[string]int{}
	for _, kind := range leafKinds {
		found := r.ReadMetadata(ctx, "this host's "+kind.Kind+"s", kind, client.MatchingLabels{
			v1alpha1.LabelHost: m.host.ID, v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, // an admin can set the first label on their own objects
		})
		if len(found.Items) > 0 {
			m.Leaves[kind.Kind] = len(found.Items)
		}
	}
}

// judgeLeaves reports this host's objects in an unregistered member.
func judgeLeaves(m *Member) []Finding {
	if m.Away != "" || m.Registration != "" {
		return nil
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(m.Leaves)) {
		parts = append(parts, wording.CountNoun(m.Leaves[kind], kind))
	}
	if len(parts) == 0 {
		return []Finding{passed("the cluster has no objects of this host")}
	}
	return []Finding{problem(Warning, fmt.Sprintf("the cluster has %s of this host, but is not registered", strings.Join(parts, ", ")),
		"To use the objects, register the cluster again. To remove them, delete the Pods and claims in the cluster. The volumes keep their data, because they have policy Retain.")}
}
