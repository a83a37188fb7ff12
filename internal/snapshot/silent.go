package snapshot

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// callTimeout is added to the wait for a csi-snapshotter that has begun. It reports the driver's response
// or that its call has timed out: after a minute by default, and after several in the manifests of some
// drivers.
const callTimeout = 10 * time.Minute

// ObserveSilence reports what a snapshot has been waiting for in the member for some time: until the leaf of an
// earlier root is gone, for the snapshot-controller, which creates the leaf's content, or for the
// csi-snapshotter, which takes the snapshot. Before that, it returns how long to wait. This is not
// evidence that no snapshot will be taken.
func (s *Observed) ObserveSilence(after time.Duration, now time.Time) (*mirror.Refusal, time.Duration) {
	if s.EarlierLeafExists && !s.HasRootEnded() {
		if left := report.RemainingTime(s.Host.CreationTimestamp.Time, after, now); left > 0 {
			return nil, left
		}
		return s.earlierLeafRefusal(), 0
	}
	if s.Leaf == nil || s.HasRootEnded() || s.Content == nil && s.Leaf.Status != nil || s.Content != nil && s.Content.Status != nil {
		return nil, 0
	}
	created := s.Leaf.CreationTimestamp
	if s.Content != nil {
		if created = s.Content.CreationTimestamp; mirrorsnapshot.HasSnapshotBegun(s.Content) {
			after += callTimeout
		}
	}
	if left := s.remainingSince(created, after, now); left > 0 {
		return nil, left
	}
	if s.Content == nil {
		return mirror.NewRefusal(v1alpha1.ReasonSnapshotterSilent, "the snapshot-controller of member %q has not responded to VolumeSnapshot %q for %s. Ask the member's admin to check that the snapshot-controller is installed and running",
			s.Member.Registration, s.Origin.Root, duration.HumanDuration(after)), 0
	}
	return mirror.NewRefusal(v1alpha1.ReasonSnapshotterSilent, "the csi-snapshotter of driver %q in member %q has not responded to VolumeSnapshotContent %q for %s. Ask the member's admin to check that the driver's controller is running, and has a csi-snapshotter",
		mirrorsnapshot.ContentDriverOf(s.Content), s.Member.Registration, s.Content.Name, duration.HumanDuration(after)), 0
}

// remainingSince returns how much of a duration since the creation of a leaf object is left, or 0. The member's
// clock may be behind, so the object counts as newer than the host content.
func (s *Observed) remainingSince(created metav1.Time, limit time.Duration, now time.Time) time.Duration {
	if host := s.Host.CreationTimestamp; created.Before(&host) {
		created = host
	}
	return report.RemainingTime(created.Time, limit, now)
}
