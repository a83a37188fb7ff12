package stuck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/wording"
)

// Kinds of objects, as they appear in messages.
const (
	kindVolume = "PersistentVolume"
	kindClaim  = "PersistentVolumeClaim"
	kindPod    = "Pod"

	kindContent = "VolumeSnapshotContent"
)

// candidate is a deletion in progress.
type candidate struct {
	account.Deletion
	// object is the host object on which the deletion is reported, or nil.
	object client.Object
	// leaf is the name of the leaf PV of a host PV.
	leaf string
	// waitingObject is the claim or Pod in the host that needs a leaf object with the name of the one that is
	// being deleted, or nil. own means that the deleted one was created for it.
	waitingObject     client.Object
	createdForWaiting bool
}

// remainingLeaf returns the kind and key of the leaf claim or Pod whose deletion has not completed, and the
// UID of its root. The kind is empty if there is none.
func (c *candidate) remainingLeaf() (kind string, key client.ObjectKey, root types.UID) {
	if pv, ok := c.object.(*corev1.PersistentVolume); ok && pv.Spec.ClaimRef != nil {
		return kindClaim, client.ObjectKey{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}, pv.Spec.ClaimRef.UID
	}
	if c.object == nil && (c.Kind == kindClaim || c.Kind == kindPod) {
		return c.Kind, c.Key, c.RootUID
	}
	return "", client.ObjectKey{}, ""
}

// awaitsLeafIn reports whether a host object needs a leaf object in a member. This is true for one member at
// most. Finished and deleted objects need none.
func awaitsLeafIn(obj client.Object, cr *v1alpha1.ClusterRegistration) bool {
	if obj.GetDeletionTimestamp() != nil {
		return false
	}
	switch obj := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		if placed := obj.Annotations[v1alpha1.AnnotationPlacedIn]; placed != "" {
			return placed == cr.Status.ClusterID
		}
		return obj.Spec.VolumeName == "" && cr.HasNode(obj.Annotations[route.AnnSelectedNode])
	case *corev1.Pod:
		return !podstatus.IsPodFinished(obj) && cr.HasNode(cmp.Or(obj.Spec.NodeName, obj.Status.NominatedNodeName))
	}
	return false
}

// overdueDeletions returns the deletions that have been in progress for longer than the given duration,
// oldest first. It omits a leaf object if its root is included.
func overdueDeletions(host, leaves []candidate, now time.Time, after time.Duration) []candidate {
	known := map[string]struct{}{}
	var late []candidate
	for _, c := range append(slices.Clone(host), leaves...) {
		key := c.Kind + " " + c.Key.String()
		if c.InMember {
			if _, done := known[key]; done {
				continue
			}
		}
		if now.Sub(c.Since) <= after {
			continue
		}
		late = append(late, c)
		known[key] = struct{}{}
		if pv, ok := c.object.(*corev1.PersistentVolume); ok {
			known[kindVolume+" /"+c.leaf] = struct{}{}
			if ref := pv.Spec.ClaimRef; ref != nil {
				known[kindClaim+" "+ref.Namespace+"/"+ref.Name] = struct{}{}
			}
		}
	}
	slices.SortFunc(late, func(a, b candidate) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Key.String(), b.Key.String()))
	})
	return late
}

// noCause means that no cause is known.
var noCause account.DeletionCause

func formatCause(kind, format string, args ...any) account.DeletionCause {
	return account.DeletionCause{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// causeOfAwayMember returns why a member cannot complete deletions at present, or none.
func causeOfAwayMember(cr *v1alpha1.ClusterRegistration) account.DeletionCause {
	connected := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionConnected)
	switch {
	case connected == nil:
		return formatCause(account.CauseAway, "member %q was never connected. `kubectl describe clusterregistration` shows why", cr.Name)
	case connected.Status != metav1.ConditionTrue:
		return formatCause(account.CauseAway, "member %q has not been connected since %s (%s). Xylem continues when the member is connected again", cr.Name,
			connected.LastTransitionTime.UTC().Format(time.RFC3339), connected.Reason)
	case connected.Reason == v1alpha1.ReasonHostRestored, connected.Reason == v1alpha1.ReasonMemberRestored:
		return formatCause(account.CauseSuspended, "destruction in member %q is suspended (%s). Confirm the restore as described in the Connected condition of its ClusterRegistration", cr.Name, connected.Reason)
	}
	return noCause
}

// causeOfFinalizers returns what blocks an object's deletion, according to its finalizers: Kubernetes'
// finalizers for objects in use, and others by name. used is the cause of the Pods that use a claim.
func causeOfFinalizers(obj client.Object, used account.DeletionCause) account.DeletionCause {
	var others []string
	protected := false
	for _, f := range obj.GetFinalizers() {
		switch f {
		case "kubernetes.io/pvc-protection":
			protected = true
		case "kubernetes.io/pv-protection":
			protected = protected || obj.GetDeletionTimestamp() != nil // every PV has it
		case v1alpha1.FinalizerLeafVolume, snapshot.FinalizerContent:
		default:
			others = append(others, f)
		}
	}
	switch {
	case protected && used != noCause:
		return used
	case len(others) > 0:
		return formatCause(account.CauseFinalizer, "blocked by finalizers of other programs (%s). Check the controllers that set these finalizers", strings.Join(others, ", "))
	case protected:
		return formatCause(account.CauseUsed, "still in use, according to Kubernetes. Find the Pod that uses the volume")
	}
	return noCause
}

// blockingPods are the Pods that block a claim's deletion: those that stay until somebody deletes them, and
// those whose deletion is in progress.
type blockingPods struct{ staying, ending []corev1.Pod }

// blockingPodsOf selects the Pods that block a claim's deletion, by name: all that were ever bound to a
// node, including finished ones.
func blockingPodsOf(pods []corev1.Pod, claim client.ObjectKey) blockingPods {
	var found blockingPods
	for i := range pods {
		pod := &pods[i]
		switch {
		case pod.Namespace != claim.Namespace || pod.Spec.NodeName == "" || !slices.Contains(podspec.ClaimNamesOfPod(pod), claim.Name):
		case pod.DeletionTimestamp != nil:
			found.ending = append(found.ending, *pod)
		default:
			found.staying = append(found.staying, *pod)
		}
	}
	byName := func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(found.staying, byName)
	slices.SortFunc(found.ending, byName)
	return found
}

// firstEndingPod returns the Pod whose deletion explains the claim's, or nil if the user must delete Pods
// first, or if there are none.
func (u blockingPods) firstEndingPod() *corev1.Pod {
	if len(u.staying) > 0 || len(u.ending) == 0 {
		return nil
	}
	return &u.ending[0]
}

// causeOfUse returns how the Pods block the claim's deletion, or none. pods is why the deletion of the
// first Pod has not completed.
func (u blockingPods) causeOfUse(pods account.DeletionCause) account.DeletionCause {
	switch {
	case len(u.staying) > 0:
		return formatCause(account.CauseUsed, "in use by %s. Delete these Pods", namesOfPods(u.staying))
	case len(u.ending) == 1:
		return formatCause(pods.Kind, "in use by %s, which is being deleted: %s", namesOfPods(u.ending), pods.Text)
	case len(u.ending) > 1:
		return formatCause(pods.Kind, "in use by %s, which are being deleted: %s", namesOfPods(u.ending), pods.Text)
	}
	return noCause
}

func namesOfPods(pods []corev1.Pod) string {
	names := make([]string, 0, len(pods))
	for i := range pods {
		names = append(names, fmt.Sprintf("Pod %s/%s", pods[i].Namespace, pods[i].Name))
	}
	return wording.FirstNamesUncounted(names, wording.NamesListed, ", ") // a number would repeat the event with each Pod
}

// causeOfPodDeletion returns why a Pod that is being deleted still exists in its cluster.
func causeOfPodDeletion(pod *corev1.Pod, now time.Time) account.DeletionCause {
	key := client.ObjectKeyFromObject(pod)
	if why := causeOfFinalizers(pod, noCause); why != noCause {
		return formatCause(why.Kind, "Pod %q is %s", key, why.Text)
	}
	if ends := pod.DeletionTimestamp; ends != nil && ends.After(now) {
		return formatCause(account.CausePending, "the grace period of Pod %q ends at %s", key, ends.UTC().Format(time.RFC3339))
	}
	return formatCause(account.CausePending, "the kubelet of node %q has not terminated Pod %q yet. Check that node", pod.Spec.NodeName, key)
}
