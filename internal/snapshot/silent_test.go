package snapshot

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

func TestSilence(t *testing.T) {
	const after = 2 * time.Minute
	now := time.Unix(1_800_000_000, 0)
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }
	controller := &mirror.Refusal{Reason: v1alpha1.ReasonSnapshotterSilent, Message: `the snapshot-controller of member "cluster38" has not responded to VolumeSnapshot "shop/snap" for 2m. Ask the member's admin to check that the snapshot-controller is installed and running`}
	sidecar := &mirror.Refusal{Reason: v1alpha1.ReasonSnapshotterSilent, Message: `the csi-snapshotter of driver "ebs.csi.aws.com" in member "cluster38" has not responded to VolumeSnapshotContent "snapcontent-leaf" for 2m. Ask the member's admin to check that the driver's controller is running, and has a csi-snapshotter`}
	died := &mirror.Refusal{Reason: v1alpha1.ReasonSnapshotterSilent, Message: strings.Replace(sidecar.Message, "for 2m", "for 12m", 1)}
	type change = func(*Observed)
	leafOf := func(ago time.Duration) change {
		return func(s *Observed) { s.Leaf.CreationTimestamp = at(ago) }
	}
	contentOf := func(ago time.Duration) change {
		return func(s *Observed) {
			s.Content = &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "snapcontent-leaf", CreationTimestamp: at(ago)}}
			s.Content.Spec.Driver = "ebs.csi.aws.com"
		}
	}
	begun := func(age time.Duration) change {
		return func(s *Observed) {
			contentOf(age)(s)
			metav1.SetMetaDataAnnotation(&s.Content.ObjectMeta, mirrorsnapshot.AnnBeingCreated, "yes")
		}
	}
	reports := func(status snapshotv1.VolumeSnapshotContentStatus) change {
		return func(s *Observed) {
			contentOf(time.Hour)(s)
			s.Content.Status = &status
		}
	}
	for name, tc := range map[string]struct {
		change change
		want   *mirror.Refusal
		again  time.Duration
	}{
		"the leaf is old":              {leafOf(after), controller, 0},
		"the leaf is new":              {leafOf(30 * time.Second), nil, 90 * time.Second},
		"the member's clock is ahead":  {leafOf(-time.Hour), nil, after},
		"the member's clock is behind": {func(s *Observed) { s.Host.CreationTimestamp = at(30 * time.Second) }, nil, 90 * time.Second},
		"the snapshot-controller reports failure": {func(s *Observed) {
			s.Leaf.Status = &snapshotv1.VolumeSnapshotStatus{Error: &snapshotv1.VolumeSnapshotError{}}
		}, nil, 0},
		"the leaf is bound, its content is gone": {func(s *Observed) {
			s.Leaf.Status = &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: new("x")}
		}, nil, 0},
		"there is no leaf":   {func(s *Observed) { s.Leaf = nil }, nil, 0},
		"the root is gone":   {func(s *Observed) { s.Root = nil }, nil, 0},
		"the content is old": {contentOf(after), sidecar, 0},
		"the content is new": {contentOf(30 * time.Second), nil, 90 * time.Second},
		"the content is new, the leaf was bound": {func(s *Observed) {
			contentOf(30 * time.Second)(s)
			s.Leaf.Status = &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: new("snapcontent-leaf")}
		}, nil, 90 * time.Second},
		"the driver is taking the snapshot":          {begun(5 * time.Minute), nil, 7 * time.Minute},
		"the csi-snapshotter has died in the middle": {begun(after + callTimeout), died, 0},
		"the driver uploads the snapshot":            {reports(snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: new("s-1"), ReadyToUse: new(false)}), nil, 0},
		"the csi-snapshotter reports failure":        {reports(snapshotv1.VolumeSnapshotContentStatus{Error: &snapshotv1.VolumeSnapshotError{}}), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Observed{
				Member: mirror.Member{Registration: "cluster38"},
				Origin: mirror.Origin{Root: types.NamespacedName{Namespace: "shop", Name: "snap"}},
				Host:   &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(2 * time.Hour)}},
				Root:   &snapshotv1.VolumeSnapshot{},
				Leaf:   &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(time.Hour)}},
			}
			tc.change(s)
			got, again := s.ObserveSilence(after, now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if again != tc.again {
				t.Errorf("checked again after %s, want %s", again, tc.again)
			}
		})
	}
}
