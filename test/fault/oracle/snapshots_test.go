package oracle

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

const leafContentName = "snapcontent-leaf"

type contentOption = func(*snapshotv1.VolumeSnapshotContent)

func rootSnapshot(uid types.UID) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: run, Name: "nightly", UID: uid}}
}

func content(name string, ref types.UID, options ...contentOption) *snapshotv1.VolumeSnapshotContent {
	c := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
	c.Spec.Driver = v1alpha1.ProvisionerName
	c.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentDelete
	c.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: run, Name: "nightly", UID: ref}
	for _, option := range options {
		option(c)
	}
	return c
}

func hostContent(options ...contentOption) *snapshotv1.VolumeSnapshotContent {
	return content("snapcontent-root", "root-snapshot", options...)
}

func leafContent(options ...contentOption) *snapshotv1.VolumeSnapshotContent {
	options = append([]contentOption{func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.Driver = "some.driver" }}, options...)
	return content(leafContentName, "leaf-snapshot", options...)
}

func handled(handle string) contentOption {
	return func(c *snapshotv1.VolumeSnapshotContent) {
		c.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: ptr.To(handle)}
	}
}

func placedAt(id string) contentOption {
	return func(c *snapshotv1.VolumeSnapshotContent) {
		c.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: id}
	}
}

func kept(c *snapshotv1.VolumeSnapshotContent) {
	c.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
}

func ours(c *snapshotv1.VolumeSnapshotContent) {
	c.Labels = map[string]string{v1alpha1.LabelHost: hostID}
}

func ending(c *snapshotv1.VolumeSnapshotContent) {
	c.DeletionTimestamp = &metav1.Time{Time: second(6)}
}

func ofSnapshot(method string, n int) ledger.Entry {
	e := ledger.Entry{Time: second(n), Method: method, Code: ledger.OK, SnapshotID: "snap", ClaimNamespace: run, ClaimName: "data"}
	if method == ledger.CreateSnapshot {
		e.ContentName, e.VolumeSnapshot = leafContentName, run+"/nightly"
	}
	return e
}

// taken returns the correct history of a snapshot until it is in use.
func taken(more ...Sighting) []Sighting {
	mine := handled(oneID + "/" + leafContentName)
	return append([]Sighting{
		seen(host, 0, rootSnapshot("root-snapshot")), seen(host, 1, hostContent()), seen(host, 2, hostContent(placedAt(oneID))),
		seen(one, 3, leafContent()), seen(one, 4, leafContent(kept, ours)), seen(host, 5, hostContent(mine)),
	}, more...)
}

func TestSnapshots(t *testing.T) {
	mine := handled(oneID + "/" + leafContentName)
	gone := ended(seen(host, 7, rootSnapshot("root-snapshot")))
	deleting := seen(host, 6, hostContent(mine, ending))
	flipped := seen(one, 8, leafContent(ours))
	destroyed := books(ofSnapshot(ledger.CreateSnapshot, 3), ofSnapshot(ledger.DeleteSnapshot, 9))
	live := books(ofSnapshot(ledger.CreateSnapshot, 3))
	deletion := map[string]controlplane.Requests{one: {{
		Time: second(40), Verb: "delete", Resource: "volumesnapshots", Namespace: run, Name: "nightly", Code: 200,
	}}}
	stampedLeaf := func() *snapshotv1.VolumeSnapshot {
		leaf := rootSnapshot("leaf-snapshot")
		leaf.Labels = map[string]string{v1alpha1.LabelHost: hostID}
		return leaf
	}
	for name, tt := range map[string]struct {
		evidence Evidence
		want     []string // invariant and oracle
	}{
		"a snapshot in use": {Evidence{History: taken(), Live: []Sighting{seen(host, 9, hostContent(mine))}, Ledgers: live}, nil},
		"a snapshot in use, and the host has no handle yet": {Evidence{
			History: taken(), Live: []Sighting{seen(host, 9, hostContent(placedAt(oneID)))}, Ledgers: live,
		}, nil},
		"I1: a snapshot without an owner that is not reported":           {Evidence{History: taken(), Ledgers: live}, []string{"I1 snapshots"}},
		"a snapshot without an owner that is reported":                   {Evidence{History: taken(), Ledgers: live, OrphanedSnapshots: map[string]int{one: 1}}, nil},
		"I1: a snapshot without an owner, but only a volume is reported": {Evidence{History: taken(), Ledgers: live, Orphaned: map[string]int{one: 1}}, []string{"I1 snapshots"}},
		"I1: the host's content represents another snapshot": {Evidence{
			History: taken(), Live: []Sighting{seen(host, 9, hostContent(handled(oneID+"/another")))}, Ledgers: live,
		}, []string{"I1 snapshots"}},
		"I1: the host's content is placed elsewhere": {Evidence{
			History: taken(), Live: []Sighting{seen(host, 9, hostContent(placedAt("other")))}, Ledgers: live,
		}, []string{"I1 snapshots"}},
		"I1: the host's content has another driver": {Evidence{
			History: taken(), Live: []Sighting{seen(host, 9, hostContent(mine, func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.Driver = "other" }))}, Ledgers: live,
		}, []string{"I1 snapshots"}},
		"the restored member has no record of the snapshot": {Evidence{
			Restored: &Restore{Cluster: one, Began: second(4), At: second(5)}, History: taken(), Ledgers: live,
		}, nil},
		"I1: the restored member has the snapshot's content": {Evidence{
			Restored: &Restore{Cluster: one, Began: second(4), At: second(5)}, History: taken(), Ledgers: live,
			Live: []Sighting{seen(one, 9, leafContent(ours))},
		}, []string{"I1 snapshots"}},
		"a snapshot of another run's claim": {Evidence{Ledgers: books(ledger.Entry{
			Method: ledger.CreateSnapshot, Code: ledger.OK, SnapshotID: "x", ClaimNamespace: "other",
		})}, nil},

		"a snapshot destroyed with evidence": {Evidence{History: taken(deleting, gone, flipped), Ledgers: destroyed}, nil},
		"a snapshot destroyed while its VolumeSnapshot is being deleted": {Evidence{History: taken(deleting, flipped, func() Sighting {
			s := rootSnapshot("root-snapshot")
			s.DeletionTimestamp = &metav1.Time{Time: second(6)}
			return seen(host, 6, s)
		}()), Ledgers: destroyed}, nil},
		"a snapshot destroyed after the host's content": {Evidence{
			History: taken(gone, ended(seen(host, 7, hostContent(mine, ending)))), Ledgers: destroyed,
		}, nil},
		"I2: a snapshot destroyed while the host's content exists":  {Evidence{History: taken(gone, flipped), Ledgers: destroyed}, []string{"I2 contents", "I2 snapshots"}},
		"I2: a snapshot destroyed while its VolumeSnapshot exists":  {Evidence{History: taken(deleting, flipped), Ledgers: destroyed}, []string{"I2 contents", "I2 snapshots"}},
		"I2: a snapshot destroyed although the host retains it":     {Evidence{History: taken(gone, seen(host, 6, hostContent(mine, ending, kept)), flipped), Ledgers: destroyed}, []string{"I2 contents", "I2 snapshots"}},
		"I2: a snapshot set to Delete too early, but not destroyed": {Evidence{History: taken(flipped), Live: []Sighting{seen(host, 9, hostContent(mine))}, Ledgers: live}, []string{"I2 contents"}},
		"I2: a snapshot destroyed although the member retains it": {Evidence{History: []Sighting{
			seen(host, 0, rootSnapshot("root-snapshot")), seen(one, 3, leafContent(kept)), seen(one, 4, leafContent(kept, ours)),
			seen(host, 5, hostContent(mine)), deleting, gone, flipped,
		}, Ledgers: destroyed}, []string{"I2 contents", "I2 snapshots"}},
		"I2: a snapshot destroyed, and the host never had a content for it": {Evidence{History: []Sighting{seen(one, 3, leafContent())}, Ledgers: destroyed}, []string{"I2 snapshots"}},
		"I2: a snapshot destroyed, and only an earlier snapshot's content was deleted": {Evidence{History: []Sighting{
			seen(host, 0, rootSnapshot("earlier")), seen(host, 0, content("snapcontent-earlier", "earlier", placedAt(oneID))),
			ended(seen(host, 1, rootSnapshot("earlier"))), ended(seen(host, 1, content("snapcontent-earlier", "earlier", placedAt(oneID), ending))),
			seen(host, 2, rootSnapshot("root-snapshot")), seen(host, 2, hostContent(placedAt(oneID))), seen(one, 3, leafContent()),
		}, Ledgers: destroyed}, []string{"I2 snapshots"}},
		"an earlier snapshot destroyed while a later one exists": {Evidence{History: []Sighting{
			seen(host, 0, rootSnapshot("earlier")), seen(host, 0, content("snapcontent-earlier", "earlier", placedAt(oneID))), seen(one, 3, leafContent()),
			ended(seen(host, 5, rootSnapshot("earlier"))), seen(host, 5, content("snapcontent-earlier", "earlier", placedAt(oneID), ending)),
			seen(host, 6, rootSnapshot("root-snapshot")), seen(host, 6, hostContent(placedAt(oneID))),
		}, Ledgers: destroyed}, nil},
		"an earlier run's snapshot": {Evidence{Began: second(20), Ledgers: destroyed}, nil},
		"I2: a leaf deleted before the confirmation": {Evidence{
			Restored: &Restore{Cluster: host, Began: second(6), At: second(7), Confirmed: second(60)}, Requests: deletion, History: []Sighting{seen(one, 1, stampedLeaf())},
		}, []string{"I2 suspended"}},
		"I2: a snapshot set to Delete before the confirmation": {Evidence{
			Restored: &Restore{Cluster: host, Began: second(6), At: second(7), Confirmed: second(60)}, Ledgers: books(),
			History: taken(seen(host, 30, hostContent(mine, ending)), ended(seen(host, 31, rootSnapshot("root-snapshot"))), seen(one, 40, leafContent(ours))),
		}, []string{"I2 suspended"}},
		"a snapshot set to Delete after the confirmation": {Evidence{
			Restored: &Restore{Cluster: host, Began: second(6), At: second(7), Confirmed: second(35)}, Ledgers: books(),
			History: taken(seen(host, 30, hostContent(mine, ending)), ended(seen(host, 31, rootSnapshot("root-snapshot"))), seen(one, 40, leafContent(ours))),
		}, nil},
		"I3: a content that represents two snapshots": {Evidence{
			History: taken(seen(host, 9, hostContent(handled(oneID+"/another")))), Ledgers: books(),
		}, []string{"I3 snapshots"}},
		"I4: a write to a user's object": {Evidence{
			History: taken(), Live: []Sighting{seen(host, 9, hostContent(mine))}, Ledgers: live,
			Requests: map[string]controlplane.Requests{host: {{Verb: "patch", Resource: "volumesnapshots", Namespace: run, Name: "nightly", Code: 200}}},
		}, []string{"I4 audit"}},
		"writes to Xylem's own objects": {Evidence{
			History: taken(seen(one, 3, stampedLeaf())), Live: []Sighting{seen(host, 9, hostContent(mine))}, Ledgers: live,
			Requests: map[string]controlplane.Requests{
				host: {{Verb: "patch", Resource: "volumesnapshotcontents/status", Name: "snapcontent-root", Code: 200}},
				one:  {{Verb: "patch", Resource: "volumesnapshotcontents", Name: leafContentName, Code: 200}, {Verb: "create", Resource: "volumesnapshots", Namespace: run, Name: "nightly", Code: 201}},
			},
		}, nil},
		"I4: a write to another driver's content": {Evidence{
			History:  []Sighting{seen(host, 1, content("foreign", "x", func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.Driver = "other" }))},
			Requests: map[string]controlplane.Requests{host: {{Verb: "patch", Resource: "volumesnapshotcontents/status", Name: "foreign", Code: 200}}},
		}, []string{"I4 audit"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := tt.evidence
			e.Namespace, e.Host, e.IDs = run, host, map[string]string{host: hostID, one: oneID, "cluster39": "other"}
			slices.SortStableFunc(e.History, func(a, b Sighting) int { return a.At.Compare(b.At) })
			var got []string
			for _, v := range Judge(e) {
				got = append(got, v.Invariant+" "+v.Oracle)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, slices.Compact(got)); diff != "" {
				t.Errorf("-want +got:\n%s\n%v", diff, Judge(e))
			}
		})
	}
}

func TestStateIgnoresOrderOfCreation(t *testing.T) {
	object := func(created int64) []Object {
		o := Object{Cluster: one}
		o.Object = map[string]any{
			"kind": "VolumeSnapshotContent", "metadata": map[string]any{"name": "a"},
			"status": map[string]any{"creationTime": created, "restoreSize": int64(1)},
		}
		return []Object{o}
	}
	a, b := Normalise(object(time.Now().UnixNano()), run, nil), Normalise(object(1), run, nil)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("states with different times differ (-a +b):\n%s", diff)
	}
	if len(a) < 3 {
		t.Errorf("state = %q, want it without the time", a)
	}
}
