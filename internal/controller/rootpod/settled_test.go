package rootpod

import (
	"errors"
	"testing"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// If a Pod's disk is released with its last Pod, the Pod is pushed only after a live read shows
// that the promise is not marked for release.
func TestSettled(t *testing.T) {
	down := errors.New("connection refused")
	annotated := func(key, value string) func(*reads) {
		return func(r *reads) { r.volume.Annotations[key] = value }
	}
	for name, tc := range map[string]struct {
		change func(*reads)
		want   error
	}{
		"the disk is in use":                                    {func(*reads) {}, errWrite},
		"the disk is being released":                            {annotated(v1alpha1.AnnotationReleasing, "leaf-pv-uid"), nil},
		"an earlier disk of the promise was released":           {annotated(v1alpha1.AnnotationReleasing, "earlier-uid"), errWrite},
		"the promise is marked as unused":                       {annotated(v1alpha1.AnnotationUnusedSince, "2026-11-20T12:00:00Z"), nil},
		"the promise is marked as unused, with an invalid time": {annotated(v1alpha1.AnnotationUnusedSince, ""), nil},
		"the promise no longer has a disk":                      {func(r *reads) { r.volume = hostpv.PromiseWithoutMember(r.volume) }, nil},
		"the promise is now in another member":                  {func(r *reads) { r.volume.Labels[v1alpha1.LabelClusterID] = there.ClusterID }, nil},
		"the promise was re-created":                            {func(r *reads) { r.volume.UID = "newer" }, nil},
		"the promise is gone":                                   {func(r *reads) { r.volume = nil }, nil},
		"the host's API server does not respond":                {func(r *reads) { r.err = down }, down},
	} {
		t.Run(name, func(t *testing.T) {
			o := promised(scratch, keptIn(here))
			live := &reads{pod: o.Root.DeepCopy(), volume: o.Claims[0].Volume.DeepCopy()}
			tc.change(live)
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: live, MemberWriter: guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
			}}
			if err := r.executeDecision(t.Context(), o, lifecycle.NextDecision(o)); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}
