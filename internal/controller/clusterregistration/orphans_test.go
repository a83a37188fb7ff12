package clusterregistration

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
)

var earlier = metav1.NewTime(now.Add(-time.Hour))

func orphanNamed(name string) account.Orphan {
	return account.Orphan{Volume: name, Root: types.NamespacedName{Namespace: "shop", Name: "data"}, Reason: account.RootGone, Message: "why"}
}

func shown(name string, since metav1.Time) v1alpha1.OrphanedVolume {
	return v1alpha1.OrphanedVolume{Volume: name, Claim: "shop/data", Reason: account.RootGone, Since: since}
}

func TestListed(t *testing.T) {
	var many []account.Orphan
	var first []v1alpha1.OrphanedVolume
	for i := range v1alpha1.MaxOrphans + 5 {
		many = append(many, orphanNamed(fmt.Sprintf("pv-%02d", i)))
		if i < v1alpha1.MaxOrphans {
			first = append(first, shown(many[i].Volume, now))
		}
	}
	for name, tc := range map[string]struct {
		found        []account.Orphan
		before, want []v1alpha1.OrphanedVolume
	}{
		"none":                                                 {},
		"new orphans are listed by name":                       {[]account.Orphan{orphanNamed("pv-1"), orphanNamed("pv-2")}, nil, []v1alpha1.OrphanedVolume{shown("pv-1", now), shown("pv-2", now)}},
		"a known orphan keeps its time":                        {[]account.Orphan{orphanNamed("pv-1"), orphanNamed("pv-2")}, []v1alpha1.OrphanedVolume{shown("pv-2", earlier)}, []v1alpha1.OrphanedVolume{shown("pv-2", earlier), shown("pv-1", now)}},
		"an orphan that has a root again is removed":           {[]account.Orphan{orphanNamed("pv-1")}, []v1alpha1.OrphanedVolume{shown("pv-1", earlier), shown("pv-2", earlier)}, []v1alpha1.OrphanedVolume{shown("pv-1", earlier)}},
		"more orphans than the limit":                          {many, nil, first},
		"more orphans than the limit, and none of them is new": {many, first, first},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ListedOrphans(tc.found, tc.before, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAccounted(t *testing.T) {
	one := v1alpha1.ClusterRegistrationStatus{Volumes: v1alpha1.VolumeCounts{Orphaned: 1}, Orphans: []v1alpha1.OrphanedVolume{shown("pv-1", earlier)}}
	const toDo = "To use a volume again, re-create its claim with spec.volumeName. " +
		"If nobody needs the data, set the volume's reclaim policy to Delete in the member, and delete its claim there if it has one"
	const ofOne = `"pv-1" of claim "shop/data" (RootGone, since 2026-11-20T11:00:00Z)`
	for name, tc := range map[string]struct {
		orphans account.OrphanInventory
		status  v1alpha1.ClusterRegistrationStatus
		want    metav1.Condition
	}{
		"no comparison has been made yet": {account.OrphanInventory{}, v1alpha1.ClusterRegistrationStatus{},
			metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotAccounted, Message: "Xylem has not compared the member's volumes with the host's yet"}},
		"no comparison has been made since the manager started": {account.OrphanInventory{}, one,
			metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotAccounted, Message: "Xylem has not compared the member's volumes with the host's yet. The last comparison found 1 volume without a claim or volume in the host: " + ofOne}},
		"none": {account.OrphanInventory{Known: true}, v1alpha1.ClusterRegistrationStatus{},
			metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllAccounted, Message: "every volume in the member has a claim or a volume in the host"}},
		"one": {account.OrphanInventory{Known: true, Found: []account.Orphan{orphanNamed("pv-1")}}, one,
			metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonOrphanedVolumes, Message: "the member has 1 volume without a claim or volume in the host: " + ofOne + ". Xylem never deletes orphaned volumes. " + toDo}},
		"the comparison failed before any orphan was found": {account.OrphanInventory{Known: true, FailureCause: "list: timeout", FailingSince: now.Time}, v1alpha1.ClusterRegistrationStatus{},
			metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotAccounted, Message: "Xylem could not compare the member's volumes with the host's. Every attempt since 2026-11-20T12:00:00Z has failed: list: timeout"}},
		"the comparison failed after an orphan was found": {account.OrphanInventory{Known: true, Found: []account.Orphan{orphanNamed("pv-1")}, FailureCause: "list: timeout", FailingSince: now.Time}, one,
			metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotAccounted, Message: "Xylem could not compare the member's volumes with the host's. Every attempt since 2026-11-20T12:00:00Z has failed: list: timeout. The last comparison found 1 volume without a claim or volume in the host: " + ofOne}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.Type = v1alpha1.ConditionVolumesAccounted
			if diff := cmp.Diff(tc.want, VolumesAccounted(tc.orphans, &tc.status)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProgressing(t *testing.T) {
	for name, tc := range map[string]struct {
		stuck   account.Stuck
		status  metav1.ConditionStatus
		message string
	}{
		"no check has been made yet": {account.Stuck{}, metav1.ConditionUnknown, "Xylem has not checked for stuck deletions yet"},
		"none":                       {account.Stuck{Known: true}, metav1.ConditionTrue, "no deletion takes longer than --stuck-after"},
		"some": {account.Stuck{Known: true, Count: 2, Oldest: &account.Deletion{Kind: "PersistentVolume", Key: types.NamespacedName{Name: "pv-1"}, Since: earlier.Time, Cause: account.DeletionCause{Text: "why"}}},
			metav1.ConditionFalse, "2 deletions in progress for longer than --stuck-after; the oldest, since 2026-11-20T11:00:00Z: PersistentVolume pv-1 in the host: why"},
	} {
		t.Run(name, func(t *testing.T) {
			got := DeletionsProgressing(tc.stuck)
			if got.Status != tc.status || got.Message != tc.message {
				t.Errorf("%+v", got)
			}
		})
	}
}
