package oracle

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
)

// settled checks I5 and I6: the run settled, and the manager did not crash.
func settled(e Evidence, _ *history) []Violation {
	var found []Violation
	if e.Unsettled != "" {
		found = append(found, Violation{"I6", "settled", "the run did not settle: " + e.Unsettled})
	}
	for _, log := range e.Panics {
		found = append(found, Violation{"I6", "panic", log})
	}
	return found
}

// canaries checks I4: foreign objects are unchanged.
func canaries(e Evidence, _ *history) []Violation {
	var found []Violation
	for _, c := range e.Canaries {
		if c.Before != c.After {
			found = append(found, Violation{"I4", "canary", fmt.Sprintf("%s in %s had resource version %q, and now has %q", c.Object, c.Cluster, c.Before, c.After)})
		}
	}
	return found
}

// ownWrites checks I4 in the audit logs: every write to a watched kind was to an object that Xylem
// may write.
func ownWrites(e Evidence, _ *history) []Violation {
	ours, watched := map[string]bool{}, map[string]bool{}
	for _, s := range slices.Concat(e.History, e.Live) {
		resource := resourceOf(s.Object)
		key := s.Cluster + "/" + resource + "/" + s.Object.GetNamespace() + "/" + s.Object.GetName()
		watched[key] = true
		ours[key] = ours[key] || carries(e, s)
	}
	var found []Violation
	for _, cluster := range slices.Sorted(maps.Keys(e.Requests)) {
		for _, r := range e.Requests[cluster].Writes() {
			resource, _, _ := strings.Cut(r.Resource, "/")
			key := cluster + "/" + resource + "/" + r.Namespace + "/" + r.Name
			if r.Code < http.StatusMultipleChoices && watched[key] && !ours[key] {
				found = append(found, Violation{"I4", "audit", fmt.Sprintf("%s of %s in %s, which is a foreign object", r.Verb, r.Resource, strings.TrimPrefix(key, cluster+"/"))})
			}
		}
	}
	return found
}

// carries reports whether Xylem may write an object. In members, the object must have the stamp. In
// the host, Xylem may write PVs with its label, contents with its driver, and the users' objects
// that it annotates. VolumeSnapshots belong to users alone.
func carries(e Evidence, s Sighting) bool {
	if s.Cluster != e.Host {
		return s.Object.GetLabels()[v1alpha1.LabelHost] == e.IDs[e.Host]
	}
	switch obj := s.Object.(type) {
	case *corev1.PersistentVolume:
		return obj.Labels[v1alpha1.LabelClusterID] != "" || obj.Spec.CSI != nil && obj.Spec.CSI.Driver == v1alpha1.PromiseDriverName
	case *snapshotv1.VolumeSnapshotContent:
		return obj.Spec.Driver == v1alpha1.ProvisionerName
	case *corev1.PersistentVolumeClaim, *corev1.Pod:
		return s.Object.GetNamespace() == e.Namespace
	default:
		return false
	}
}

func resourceOf(obj client.Object) string {
	switch obj.(type) {
	case *corev1.PersistentVolumeClaim:
		return "persistentvolumeclaims"
	case *corev1.PersistentVolume:
		return "persistentvolumes"
	case *corev1.Pod:
		return "pods"
	case *corev1.ConfigMap:
		return "configmaps"
	case *corev1.Secret:
		return "secrets"
	case *corev1.Service:
		return "services"
	case *corev1.Namespace:
		return "namespaces"
	case *snapshotv1.VolumeSnapshot:
		return "volumesnapshots"
	case *snapshotv1.VolumeSnapshotContent:
		return "volumesnapshotcontents"
	default:
		return ""
	}
}

// quiet checks I5: no writes occur after everything has settled.
func quiet(e Evidence, _ *history) []Violation {
	var found []Violation
	for _, cluster := range slices.Sorted(maps.Keys(e.Quiet)) {
		for _, r := range Lasting(e.Quiet[cluster], e.Namespace, e.Strict) {
			found = append(found, Violation{"I5", "audit", fmt.Sprintf("%s of %s %s/%s in %s after everything had settled (%d)", r.Verb, r.Resource, r.Namespace, r.Name, cluster, r.Code)})
		}
	}
	return found
}

// delayed are the resources that Xylem writes some seconds after the cause, by design: to update a
// member's totals, and to delete an empty leaf namespace.
var delayed = []string{"nodes/status", "clusterregistrations/status", "namespaces"}

// Lasting returns the writes that must not occur after everything has settled. Writes to Leases and
// to other runs' namespaces are allowed and, unless strict is set, delayed writes are too.
func Lasting(requests controlplane.Requests, namespace string, strict bool) controlplane.Requests {
	return requests.Writes().Where(func(r controlplane.Request) bool {
		switch {
		case r.Resource == "leases", !strict && slices.Contains(delayed, r.Resource):
			return false
		case r.Resource == "namespaces":
			return r.Name == namespace
		case strings.HasPrefix(r.Namespace, NamespacePrefix):
			return r.Namespace == namespace
		}
		return true
	})
}

// NamespacePrefix is the prefix of all runs' namespaces.
const NamespacePrefix = "fault-"

// sameEnd checks I6: the end state is the same as that of a run without faults.
func sameEnd(e Evidence, _ *history) []Violation {
	if e.Reference == nil || e.Unsettled != "" {
		return nil
	}
	if diff := Diff(e.Reference, e.State); diff != "" {
		return []Violation{{"I6", "end", "the end state differs from that of a run without faults (-reference +this run):\n" + diff}}
	}
	return nil
}

// Diff returns the lines that are in only one of two states.
func Diff(reference, state []string) string {
	counts := map[string]int{}
	for _, line := range reference {
		counts[line]--
	}
	for _, line := range state {
		counts[line]++
	}
	var out strings.Builder
	for _, line := range slices.Sorted(maps.Keys(counts)) {
		for n := counts[line]; n < 0; n++ {
			fmt.Fprintf(&out, "-%s\n", line)
		}
		for n := counts[line]; n > 0; n-- {
			fmt.Fprintf(&out, "+%s\n", line)
		}
	}
	return out.String()
}
