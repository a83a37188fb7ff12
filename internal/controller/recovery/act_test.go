package recovery

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/lru"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account/exhausted"
	"github.com/xylem-io/xylem/internal/member"
)

// A claim whose volume was just created here proves that the driver has capacity again.
func TestObserveCapacity(t *testing.T) {
	none := func(*observed) {}
	for name, tc := range map[string]struct {
		before, then func(*observed)
		lowered      bool
	}{
		"the claim waited here, and now has its volume":              {none, bound, false},
		"the claim still waits":                                      {none, none, true},
		"the claim has had its volume for longer":                    {bound, bound, true},
		"the claim waited here, and is now bound in another member":  {none, func(o *observed) { bound(o); annotated(v1alpha1.AnnotationPlacedIn, "id2")(o) }, true},
		"the claim waited in another member, and is now bound here":  {annotated(v1alpha1.AnnotationPlacedIn, "id2"), bound, true},
		"the claim that is now bound requests less than what failed": {none, func(o *observed) { bound(o); siblingSmall(o.claim) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reconciler{&member.Link{Member: here}, Options{Exhausted: &exhausted.Sizes{}}, lru.New(1)}
			r.Exhausted.Note("disk", resource.MustParse("1Gi"), now.Add(time.Minute))
			r.observeCapacity(seen(tc.before))
			r.observeCapacity(seen(tc.then))
			if _, _, lowered := r.Exhausted.Limit("disk", now); lowered != tc.lowered {
				t.Errorf("capacity is reduced: %t, want %t", lowered, tc.lowered)
			}
		})
	}
}
