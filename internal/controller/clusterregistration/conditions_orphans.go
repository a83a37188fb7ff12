package clusterregistration

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/wording"
)

// namesListed is the maximum number of orphans, or namespaces, in a condition's message.
const namesListed = 3

// ListedOrphans returns the orphans for the status. Known orphans come first and keep their time. New ones
// follow in the order of found, up to the limit.
func ListedOrphans(found []account.Orphan, before []v1alpha1.OrphanedVolume, now metav1.Time) []v1alpha1.OrphanedVolume {
	byName := map[string]account.Orphan{}
	for _, o := range found {
		byName[o.Volume] = o
	}
	var list []v1alpha1.OrphanedVolume
	add := func(o account.Orphan, since metav1.Time) {
		if len(list) < v1alpha1.MaxOrphans {
			list = append(list, v1alpha1.OrphanedVolume{Volume: o.Volume, Claim: orphanClaimName(o), Reason: o.Reason, Since: since})
		}
		delete(byName, o.Volume)
	}
	for _, was := range before {
		if o, still := byName[was.Volume]; still {
			add(o, was.Since)
		}
	}
	for _, o := range found {
		if _, still := byName[o.Volume]; still {
			add(o, now)
		}
	}
	return list
}

// VolumesAccounted returns the VolumesAccounted condition. Its message does not contain the time of
// the last comparison, so that the status changes only when the result does (I5).
func VolumesAccounted(orphans account.OrphanInventory, status *v1alpha1.ClusterRegistrationStatus) metav1.Condition {
	c := comparison{
		orphans: orphans, count: int(status.Volumes.Orphaned), kind: "volume", lacking: "without a claim or volume in the host",
		reason: v1alpha1.ReasonOrphanedVolumes,
		remedy: "Xylem never deletes orphaned volumes. To use a volume again, re-create its claim with spec.volumeName. " +
			"If nobody needs the data, set the volume's reclaim policy to Delete in the member, and delete its claim there if it has one",
		names: firstOrphans(status.Orphans, func(o v1alpha1.OrphanedVolume) string {
			return fmt.Sprintf("%q of claim %q (%s, since %s)", o.Volume, o.Claim, o.Reason, o.Since.UTC().Format(time.RFC3339))
		}),
	}
	if !orphans.Known {
		c.pending = "Xylem has not compared the member's volumes with the host's yet"
	}
	return c.condition(v1alpha1.ConditionVolumesAccounted, "every volume in the member has a claim or a volume in the host")
}

// comparison is the result of comparing a member's objects of one kind with the host's.
type comparison struct {
	orphans account.OrphanInventory
	// count is the number of orphans in the last complete comparison, and names describes the first ones.
	count int
	names string
	// kind is the kind of the objects, and lacking what an orphan lacks.
	kind, lacking string
	// reason and remedy are for orphans. pending is the message if there was no comparison yet, or "".
	reason, remedy, pending string
}

// condition returns a condition of the given type. accounted is its message if there are no orphans.
func (c comparison) condition(of, accounted string) metav1.Condition {
	condition := metav1.Condition{Type: of, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllAccounted, Message: accounted}
	switch {
	case c.orphans.FailureCause != "":
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1alpha1.ReasonNotAccounted
		condition.Message = fmt.Sprintf("Xylem could not compare the member's %s with the host's. Every attempt since %s has failed: %s", wording.PluralNoun(c.kind), c.orphans.FailingSince.UTC().Format(time.RFC3339), c.orphans.FailureCause)
	case c.pending != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionUnknown, v1alpha1.ReasonNotAccounted, c.pending
	case c.count > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, c.reason
		condition.Message = fmt.Sprintf("the member has %s %s: %s. %s", wording.CountNoun(c.count, c.kind), c.lacking, c.names, c.remedy)
		return condition
	}
	if c.count > 0 {
		condition.Message += fmt.Sprintf(". The last comparison found %s %s: %s", wording.CountNoun(c.count, c.kind), c.lacking, c.names)
	}
	return condition
}

// firstOrphans describes the first orphans. The status lists not all of them, so it cannot count the others.
func firstOrphans[T any](list []T, describe func(T) string) string {
	texts := make([]string, 0, len(list))
	for _, o := range list {
		texts = append(texts, describe(o))
	}
	return wording.FirstNamesUncounted(texts, namesListed, ", ")
}

// DeletionsProgressing returns the DeletionsProgressing condition.
func DeletionsProgressing(stuck account.Stuck) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionDeletionsProgressing, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonProgressing, Message: "no deletion takes longer than --stuck-after"}
	switch oldest := stuck.Oldest; {
	case !stuck.Known:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionUnknown, v1alpha1.ReasonNotLookedAt, "Xylem has not checked for stuck deletions yet"
	case oldest != nil:
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonStuckDeletion
		condition.Message = fmt.Sprintf("%s in progress for longer than --stuck-after; the oldest, since %s: %s", wording.CountNoun(stuck.Count, "deletion"), oldest.Since.UTC().Format(time.RFC3339), oldest)
	}
	return condition
}

// orphanClaimName returns an orphan's claim, or "" if its root was an admin's PV.
func orphanClaimName(o account.Orphan) string {
	if o.Root.Namespace == "" {
		return ""
	}
	return o.Root.String()
}
