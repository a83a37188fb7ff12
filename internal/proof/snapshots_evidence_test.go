package proof

import (
	"errors"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// destroying returns a host content that must be destroyed, and its leaf content with policy Delete.
func destroying() (ends, leaf *snapshotv1.VolumeSnapshotContent) {
	ends, leaf = contentOfHost(set(mirrorsnapshot.AnnBeingDeleted, "yes")), leafContent()
	ends.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentDelete
	leaf.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentDelete
	leaf.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "shop", Name: "backup", UID: "leaf-uid"}
	mirror.Origin{HostID: snapshotMember.HostID, Root: client.ObjectKey{Namespace: "shop", Name: "backup"}, UID: "root-uid"}.StampLeaf(leaf)
	leaf.Annotations[v1alpha1.AnnotationDeletionPolicy] = string(snapshotv1.VolumeSnapshotContentDelete)
	return ends, leaf
}

// A leaf content is deleted only if its VolumeSnapshot is gone from the member.
func TestDestroyingContent(t *testing.T) {
	for name, tc := range map[string]struct {
		member clusterWithSnapshots
		gone   bool
		err    error
	}{
		"the leaf is gone":                      {gone: true},
		"the leaf exists":                       {member: clusterWithSnapshots{snapshot: leaf("")}},
		"the leaf of a later root has its name": {member: clusterWithSnapshots{snapshot: leaf("later-root")}, gone: true},
		"the member does not respond":           {member: clusterWithSnapshots{fails: errDown}, err: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			ends, content := destroying()
			p := snapshotProver(clusterWithSnapshots{content: ends}, tc.member, nil)
			var e DestroyingSnapshot
			var ok bool
			var err error
			if e.Host, ok, err = p.ProveContentEnded(t.Context(), ends); err != nil || !ok {
				t.Fatalf("ContentEnded returned %t, %v", ok, err)
			}
			if e.Root, ok, err = p.ProveSnapshotEnded(t.Context(), mirrorsnapshot.RootSnapshotKey(ends), "root-uid"); err != nil || !ok {
				t.Fatalf("SnapshotEnded returned %t, %v", ok, err)
			}
			if err := SpendEvidence(e, DeleteContent, content); !errors.Is(err, ErrUnproven) {
				t.Errorf("without a proof that the leaf is gone, the evidence covers the deletion: %v", err)
			}
			if e.LeafGone, ok, err = p.ProveLeafSnapshotGone(t.Context(), content); ok != tc.gone || !errors.Is(err, tc.err) {
				t.Errorf("LeafSnapshotGone returned %t, %v; want %t, %v", ok, err, tc.gone, tc.err)
			}
			if err := SpendEvidence(e, DeleteContent, content); (err == nil) != tc.gone {
				t.Errorf("gone is %t, and the evidence: %v", tc.gone, err)
			}
			if err := SpendEvidence(e, DeleteContent, content); !errors.Is(err, ErrUnproven) {
				t.Errorf("the evidence covers a second deletion: %v", err)
			}
		})
	}
	if _, gone, err := snapshotProver(clusterWithSnapshots{}, clusterWithSnapshots{}, nil).ProveLeafSnapshotGone(t.Context(), leafContent()); gone || err != nil {
		t.Errorf("for a content without a VolumeSnapshot, LeafSnapshotGone returned %t, %v", gone, err)
	}
}
