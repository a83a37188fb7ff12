package leafpv

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// patches is a client that counts patches.
type patches struct {
	client.Client
	made int
}

func (p *patches) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	p.made++
	obj.SetResourceVersion(fmt.Sprintf("v%d", p.made))
	return nil
}

// A member's admin who keeps changing a leaf PV causes few patches of its host PV. The last change is
// still made, after the announced delay. Meanwhile, neither other volumes nor updates that keep the
// data safe wait.
func TestHostUpdatesArePaced(t *testing.T) {
	for name, change := range map[string]func(s *volume.Observed, i int){
		"the capacity": func(s *volume.Observed, i int) {
			s.Leaf.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(int64(2+i%2)<<30, resource.BinarySI)}
		},
		"the volume attributes class": func(s *volume.Observed, i int) {
			s.Leaf.Spec.VolumeAttributesClassName = ptr.To([]string{"fast", "slow"}[i%2])
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := &patches{}
				r := &reconciler{Link: &member.Link{Member: here, Recorder: events.NewFakeRecorder(10),
					HostWriter: guarded.NewHostWriter(host, here.Registration, guarded.HostOnlyGuard{})}}
				proceed := func(change ...func(*volume.Observed)) time.Duration {
					t.Helper()
					s := observedOf(t, seen(change...))
					s.Host.ResourceVersion = fmt.Sprintf("v%d", host.made)
					plan := lifecycle.NextPlan(s)
					if step := plan.StepOwnedBy(lifecycle.LeafPV); step != lifecycle.UpdateHost {
						t.Fatalf("the plan is %+v, want UpdateHost", plan)
					}
					result, err := r.proceedWithPlan(t.Context(), s, plan)
					if err != nil {
						t.Fatal(err)
					}
					return result.RequeueAfter
				}
				altered := func(i int) func(*volume.Observed) {
					return func(s *volume.Observed) { change(s, i) }
				}

				const changes = 100
				var wait time.Duration
				for i := range changes {
					wait = proceed(mirrored, altered(i))
					if i < 3 && wait > 0 {
						t.Fatalf("change %d waits %s, want the first changes at once", i, wait)
					}
				}
				if host.made > changes/10 {
					t.Fatalf("%d changes of the leaf PV caused %d patches", changes, host.made)
				}
				if wait <= 0 || wait > 10*time.Second {
					t.Fatalf("the last change waits %s, want up to 10s", wait)
				}

				made := host.made
				proceed(mirrored, altered(0), func(s *volume.Observed) { s.Host.UID = "another" })
				proceed(mirrored, altered(0), noFinalizer)
				proceed(mirrored, altered(0), registeredAs("earlier-name"))
				if host.made != made+3 {
					t.Errorf("%d patches, want one of another volume, and two that also change Xylem's own fields", host.made-made)
				}

				made = host.made
				<-clock.RealClock{}.After(wait)
				if wait := proceed(mirrored, altered(changes-1)); wait > 0 || host.made != made+1 {
					t.Errorf("after the delay, the change waits %s", wait)
				}
			})
		})
	}
}
