package doctor

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// CheckSnapshots is the name of this check.
const CheckSnapshots Check = "Snapshots"

var (
	snapshotsCheck       = checkOf[*Facts]{name: CheckSnapshots, read: readSnapshots, judge: infallible(judgeSnapshots)}
	memberSnapshotsCheck = checkOf[*Member]{
		name:  CheckSnapshots,
		read:  func(_ context.Context, r *inspect.Reader, m *Member) { m.Snapshots = readServesSnapshots(r) },
		judge: infallible(judgeMemberSnapshots),
	}
)

// unboundSnapshot is a VolumeSnapshot that has no content yet.
type unboundSnapshot struct {
	Namespace, Name string
	Age             time.Duration
}

// snapshotGroup is the API group of VolumeSnapshots.
var snapshotGroup = schema.GroupVersion{Group: "snapshot.storage.k8s.io", Version: "v1"}

func readServesSnapshots(r *inspect.Reader) inspect.Object[bool] {
	groups, err := r.Raw.Discovery().ServerGroups()
	if err != nil {
		r.RecordMissing("whether VolumeSnapshots are served", err)
		return inspect.Object[bool]{}
	}
	served := false
	for _, group := range groups.Groups {
		served = served || group.Name == snapshotGroup.Group
	}
	return inspect.Object[bool]{Item: &served, Read: true}
}

// readSnapshots reads whether the host serves snapshots, and which snapshots have no content.
func readSnapshots(ctx context.Context, r *inspect.Reader, f *Facts) {
	h, now := &f.Host, r.Dates.Now()
	h.Snapshots = readServesSnapshots(r)
	if h.Snapshots.Item == nil || !*h.Snapshots.Item {
		return
	}
	into := &unstructured.UnstructuredList{}
	into.SetGroupVersionKind(snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshotList"))
	h.Unbound = inspect.ReadList(ctx, r, "VolumeSnapshots", into, func(l *unstructured.UnstructuredList) []unboundSnapshot {
		var some []unboundSnapshot
		for i := range l.Items {
			s := &l.Items[i]
			if content, _, err := unstructured.NestedString(s.Object, "status", "boundVolumeSnapshotContentName"); err == nil && content == "" {
				some = append(some, unboundSnapshot{Namespace: s.GetNamespace(), Name: s.GetName(), Age: now.Sub(s.GetCreationTimestamp().Time)})
			}
		}
		return some
	})
}

// snapshotPatience is how long the snapshot-controller may take to bind a VolumeSnapshot.
const snapshotPatience = 2 * time.Minute

// judgeSnapshots checks whether the host's snapshot-controller runs, if VolumeSnapshots wait for it.
func judgeSnapshots(f *Facts) []Finding {
	h := &f.Host
	switch {
	case h.Snapshots.Item == nil:
		return nil
	case !*h.Snapshots.Item:
		return []Finding{passed("the host serves no VolumeSnapshots")}
	}
	var waiting []string
	longest := time.Duration(0)
	for _, s := range h.Unbound.Items {
		if s.Age > snapshotPatience {
			waiting, longest = append(waiting, s.Namespace+"/"+s.Name), max(longest, s.Age)
		}
	}
	if len(waiting) > 0 {
		return []Finding{problem(Warning, fmt.Sprintf("no content has been bound to %s for up to %s. The host's snapshot-controller isn't running, or rejects the snapshots", enumerateNamed("VolumeSnapshot", waiting), longest.Round(time.Second)),
			"Run one snapshot-controller in the host, and check the snapshots' events.")}
	}
	if !h.Unbound.Read {
		return nil
	}
	return []Finding{passed("the host serves VolumeSnapshots, and none is waiting for the snapshot-controller")}
}

// judgeMemberSnapshots checks whether a member serves snapshots if the host does.
func judgeMemberSnapshots(m *Member) []Finding {
	h := m.host
	switch {
	case !m.isRegisteredAndRead() || m.Snapshots.Item == nil || h.Snapshots.Item == nil || !*h.Snapshots.Item:
		return nil
	case !*m.Snapshots.Item:
		return []Finding{problem(Warning, "the member does not serve VolumeSnapshots, but the host does, so users cannot take snapshots of the member's volumes",
			"Install the VolumeSnapshot CustomResourceDefinitions and the snapshot-controller in the member.")}
	}
	return []Finding{passed("the member serves VolumeSnapshots")}
}
