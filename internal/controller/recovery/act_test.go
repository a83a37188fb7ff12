package recovery

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/member"
)

// strandedClaim returns an observation of a claim that is placed in this member, and of its Pod, which
// has been unschedulable for an hour.
func strandedClaim(change ...func(*observed)) observed {
	return seen(append([]func(*observed){stranded(time.Hour)}, change...)...)
}

func unchanged(*observed) {}

func small(o *observed) {
	o.Claim.Root.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
}

// A claim whose volume was just created here proves that the driver has capacity again.
func TestObserveCapacity(t *testing.T) {
	for name, tc := range map[string]struct {
		before, then func(*observed)
		lowered      bool
	}{
		"the claim waited here, and now has its volume":              {unchanged, bound, false},
		"the claim still waits":                                      {unchanged, unchanged, true},
		"the claim has had its volume for longer":                    {bound, bound, true},
		"the claim waited here, and is now bound in another member":  {unchanged, func(o *observed) { bound(o); annotated(v1alpha1.AnnotationPlacedIn, "id2")(o) }, true},
		"the claim waited in another member, and is now bound here":  {annotated(v1alpha1.AnnotationPlacedIn, "id2"), bound, true},
		"the claim that is now bound requests less than what failed": {unchanged, func(o *observed) { bound(o); small(o) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reconciler{&member.Link{Member: here}, Options{Exhausted: &account.RejectedSizes{}}, lru.New(1)}
			r.Exhausted.RecordRejectedSize("disk", resource.MustParse("1Gi"), now.Add(time.Minute))
			r.observeCapacity(strandedClaim(tc.before))
			r.observeCapacity(strandedClaim(tc.then))
			if _, _, lowered := r.Exhausted.MaxRequestSize("disk", now); lowered != tc.lowered {
				t.Errorf("capacity is reduced: %t, want %t", lowered, tc.lowered)
			}
		})
	}
}

// livePod answers live reads with one Pod, or with NotFound if it is nil.
type livePod struct {
	client.Reader
	pod *corev1.Pod
}

func (l livePod) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if pod, ok := into.(*corev1.Pod); ok && l.pod != nil {
		l.pod.DeepCopyInto(pod)
		return nil
	}
	return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
}

// The caches may show the selection of a node before the nomination of the Pod, which precedes it.
func TestStillStranded(t *testing.T) {
	change := func(f func(*corev1.Pod)) func(*observed) {
		return func(o *observed) { f(&o.Pods[0]) }
	}
	for name, tc := range map[string]struct {
		cached, live func(*observed)
		want         bool
	}{
		"the Pod has not changed":         {unchanged, unchanged, true},
		"the Pod has been nominated here": {unchanged, nominated, false},
		"the Pod has been pushed":         {unchanged, pushed, false},
		"the Pod has been bound":          {unchanged, change(func(p *corev1.Pod) { p.Spec.NodeName = here.NodeName }), false},
		"the Pod has been replaced":       {unchanged, change(func(p *corev1.Pod) { p.UID = "another" }), false},
		"the Pod is gone":                 {unchanged, noPod, false},
		"the member failed the claim":     {nominated, noPod, true},
	} {
		t.Run(name, func(t *testing.T) {
			live := livePod{}
			if o := strandedClaim(tc.cached, tc.live); len(o.Pods) > 0 {
				live.pod = &o.Pods[0]
			}
			r := &reconciler{Link: &member.Link{Member: here, HostLive: live}}
			got, err := r.recheckStrandedLive(t.Context(), strandedClaim(tc.cached))
			if err != nil || got != tc.want {
				t.Errorf("reassigns: %t, %v, want %t", got, err, tc.want)
			}
		})
	}
}
