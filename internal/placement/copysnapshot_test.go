package placement

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// restoreOf returns a claim that restores the snapshot golden, and the host's objects for its
// source.
func restoreOf(change ...func(*corev1.PersistentVolumeClaim, *CopySource)) (*corev1.PersistentVolumeClaim, *CopySource) {
	claim, _ := copyOf()
	claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To(mirror.SnapshotGroup), Kind: mirror.SnapshotKind, Name: "golden"}
	s := &CopySource{
		Snapshot: &snapshotv1.VolumeSnapshot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "golden", UID: "snap-1"},
			Status:     &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: ptr.To("snapcontent-snap-1")},
		},
		Content: &snapshotv1.VolumeSnapshotContent{
			ObjectMeta: metav1.ObjectMeta{Name: "snapcontent-snap-1", Annotations: map[string]string{
				v1alpha1.AnnotationPlacedIn: "id38", v1alpha1.AnnotationLeafSnapshotUID: "leaf-snap-1", v1alpha1.AttributeLeafUID: "leaf-content-1",
				v1alpha1.AttributeHandle: "s-1",
			}},
			Spec: snapshotv1.VolumeSnapshotContentSpec{
				Driver: v1alpha1.ProvisionerName, VolumeSnapshotRef: corev1.ObjectReference{Namespace: "shop", Name: "golden", UID: "snap-1"},
				SourceVolumeMode: ptr.To(corev1.PersistentVolumeFilesystem),
			},
			Status: &snapshotv1.VolumeSnapshotContentStatus{ReadyToUse: ptr.To(true), RestoreSize: ptr.To[int64](2 << 30)},
		},
	}
	s.Of, _ = mirror.DataSourceOf(claim)
	for _, c := range change {
		c(claim, s)
	}
	return claim, s
}

func promisedClaim(c *corev1.PersistentVolumeClaim, _ *CopySource) {
	c.Spec.VolumeName = hostpv.PromiseName("copy-uid")
}

func deletingSnapshot(_ *corev1.PersistentVolumeClaim, s *CopySource) {
	s.Snapshot.DeletionTimestamp, s.Snapshot.Finalizers = &metav1.Time{}, []string{mirrorsnapshot.FinalizerRestored}
}

func TestLocateSnapshot(t *testing.T) {
	type changes = []func(*corev1.PersistentVolumeClaim, *CopySource)
	content := func(change func(*snapshotv1.VolumeSnapshotContent)) func(*corev1.PersistentVolumeClaim, *CopySource) {
		return func(_ *corev1.PersistentVolumeClaim, s *CopySource) { change(s.Content) }
	}
	allowed := func(value string) func(*corev1.PersistentVolumeClaim, *CopySource) {
		return content(func(c *snapshotv1.VolumeSnapshotContent) {
			c.Annotations["snapshot.storage.kubernetes.io/allow-volume-mode-change"] = value
		})
	}
	noSnapshot := func(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Snapshot, s.Content = nil, nil }
	here := CopyLocation{DataSourceRecord: mirror.DataSourceRecord{ClusterID: "id38", UID: "snap-1"}, LeafSnapshot: "leaf-snap-1", LeafContent: "leaf-content-1", LeafHandle: "s-1"}
	for name, tc := range map[string]struct {
		change changes
		reason string
		says   string
	}{
		"the snapshot is in a member":                                                     {},
		"the snapshot is recorded":                                                        {change: changes{recorded("id38/snap-1")}},
		"the snapshot's driver reports no size":                                           {change: changes{content(func(c *snapshotv1.VolumeSnapshotContent) { c.Status.RestoreSize = nil })}},
		"the snapshot's volume mode is unknown":                                           {change: changes{content(func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.SourceVolumeMode = nil })}},
		"the host does not serve snapshots":                                               {change: changes{noSnapshot, func(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Unserved = true }}, reason: v1alpha1.ReasonSourceNotReady, says: "Install the VolumeSnapshot"},
		"the snapshot does not exist":                                                     {change: changes{noSnapshot}, reason: v1alpha1.ReasonSourceNotReady, says: `its data source, snapshot "golden": that snapshot does not exist`},
		"the recorded snapshot was deleted":                                               {change: changes{noSnapshot, recorded("id38/snap-1")}, reason: v1alpha1.ReasonSourceGone, says: "was deleted"},
		"the recorded snapshot was re-created":                                            {change: changes{recorded("id38/snap-0")}, reason: v1alpha1.ReasonSourceGone, says: "another snapshot has its name"},
		"the snapshot is being deleted":                                                   {change: changes{deletingSnapshot}, reason: v1alpha1.ReasonSourceGone, says: "is being deleted"},
		"the snapshot is being deleted, but kept for this claim":                          {change: changes{deletingSnapshot, recorded("id38/snap-1")}},
		"the snapshot is being deleted with its content, which Xylem keeps for a promise": {change: changes{deletingSnapshot, recorded("id38/snap-1"), promisedClaim, content(func(c *snapshotv1.VolumeSnapshotContent) { c.DeletionTimestamp = &metav1.Time{} })}},
		"the snapshot is being deleted with its content":                                  {change: changes{deletingSnapshot, recorded("id38/snap-1"), content(func(c *snapshotv1.VolumeSnapshotContent) { c.DeletionTimestamp = &metav1.Time{} })}, reason: v1alpha1.ReasonSourceGone},
		"the snapshot is being deleted, but kept, and its content is marked for deletion": {change: changes{deletingSnapshot, recorded("id38/snap-1"), content(func(c *snapshotv1.VolumeSnapshotContent) { c.Annotations[mirrorsnapshot.AnnBeingDeleted] = "yes" })}},
		"the snapshot is being deleted, and its content is gone":                          {change: changes{deletingSnapshot, recorded("id38/snap-1"), func(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Content = nil }}, reason: v1alpha1.ReasonSourceGone},
		"the snapshot has no status":                                                      {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Snapshot.Status = nil }}, reason: v1alpha1.ReasonSourceNotReady, says: "kubectl describe volumesnapshot golden"},
		"no content, but an error in the status": {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) {
			s.Content, s.Snapshot.Status = nil, &snapshotv1.VolumeSnapshotStatus{Error: &snapshotv1.VolumeSnapshotError{Message: ptr.To("no class")}}
		}}, reason: v1alpha1.ReasonSourceNotReady, says: "not ready to use (no class)"},
		"the content belongs to another snapshot": {change: changes{content(func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.VolumeSnapshotRef.UID = "other" })}, reason: v1alpha1.ReasonSourceNotReady, says: "of another VolumeSnapshot"},
		"the snapshot names another content": {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) {
			s.Snapshot.Status.BoundVolumeSnapshotContentName = ptr.To("forged")
		}}, reason: v1alpha1.ReasonSourceNotReady, says: "of another VolumeSnapshot"},
		"the content has another driver": {change: changes{content(func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.Driver = "host.example.com" })}, reason: v1alpha1.ReasonDataSourceUnsupported, says: `"host.example.com"`},
		"the snapshot is abandoned":      {change: changes{content(func(c *snapshotv1.VolumeSnapshotContent) { c.Annotations[v1alpha1.AnnotationAbandon] = "true" })}, reason: v1alpha1.ReasonSourceGone, says: "abandoned"},
		"not ready, with an error in the content's status": {change: changes{content(func(c *snapshotv1.VolumeSnapshotContent) {
			c.Status = &snapshotv1.VolumeSnapshotContentStatus{Error: &snapshotv1.VolumeSnapshotError{Message: ptr.To("the array is on fire")}}
		})}, reason: v1alpha1.ReasonSourceNotReady, says: "the array is on fire"},
		"the snapshot's handle is not recorded":  {change: changes{content(func(c *snapshotv1.VolumeSnapshotContent) { delete(c.Annotations, v1alpha1.AttributeHandle) })}, reason: v1alpha1.ReasonSourceNotReady},
		"the snapshot's leaf is not recorded":    {change: changes{content(func(c *snapshotv1.VolumeSnapshotContent) { delete(c.Annotations, v1alpha1.AttributeLeafUID) })}, reason: v1alpha1.ReasonSourceNotReady},
		"the claim is smaller than the snapshot": {change: changes{content(func(c *snapshotv1.VolumeSnapshotContent) { c.Status.RestoreSize = ptr.To[int64](3 << 30) })}, reason: v1alpha1.ReasonSourceMismatch, says: "with 3Gi or more"},
		"the claim has another volume mode": {change: changes{func(c *corev1.PersistentVolumeClaim, _ *CopySource) {
			c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
		}}, reason: v1alpha1.ReasonSourceMismatch, says: "with volumeMode Filesystem"},
		"another volume mode, allowed by an admin": {change: changes{allowed("true"), func(c *corev1.PersistentVolumeClaim, _ *CopySource) {
			c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
		}}},
		"another volume mode, with an invalid annotation": {change: changes{allowed("please"), func(c *corev1.PersistentVolumeClaim, _ *CopySource) {
			c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
		}}, reason: v1alpha1.ReasonSourceMismatch, says: "snapshot.storage.kubernetes.io/allow-volume-mode-change=true"},
		"the snapshot is in another namespace": {change: changes{func(_ *corev1.PersistentVolumeClaim, s *CopySource) { s.Of.Namespace = "victim" }}, reason: v1alpha1.ReasonDataSourceUnsupported, says: `snapshot "victim/golden"`},
		"the claim is placed in another member": {change: changes{func(c *corev1.PersistentVolumeClaim, _ *CopySource) {
			c.Annotations[v1alpha1.AnnotationPlacedIn] = "id39"
		}}, reason: v1alpha1.ReasonSourceElsewhere, says: `"id38"`},
		"the claim is larger than the snapshot": {change: changes{func(c *corev1.PersistentVolumeClaim, _ *CopySource) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("9Gi")
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			claim, source := restoreOf(tc.change...)
			got := source.Locate(claim)
			if tc.reason == "" {
				if diff := cmp.Diff(here, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				return
			}
			if got.Refusal == nil || got.Refusal.Reason != tc.reason || !strings.Contains(got.Refusal.Message, tc.says) || got.ClusterID != "" {
				t.Errorf("got %+v, refusal %+v, want %s with %q", got, got.Refusal, tc.reason, tc.says)
			}
		})
	}
}
