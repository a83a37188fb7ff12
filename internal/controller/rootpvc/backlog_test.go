package rootpvc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/backlog"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// behind returns a reconciler of a member with many volumes that the host's PV controller has not
// bound yet, and its queue. The reconciler can write only statuses, which are counted.
func behind(t *testing.T) (*reconciler, *statuses, *clocktesting.FakeClock, queue) {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	gate := backlog.New(clock, backlog.DefaultLimit)
	informers := &informertest.FakeInformers{}
	if err := gate.WatchHostVolumes(t.Context(), informers); err != nil {
		t.Fatal(err)
	}
	volumes, err := informers.FakeInformerFor(t.Context(), &corev1.PersistentVolume{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		pv := &corev1.PersistentVolume{}
		pv.Name, pv.Labels = fmt.Sprint(i), map[string]string{v1alpha1.LabelClusterID: here.ClusterID}
		pv.Spec.ClaimRef = &corev1.ObjectReference{UID: types.UID(fmt.Sprint(i))}
		volumes.Add(pv)
	}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	if err := gate.MemberSource(here.ClusterID, here.Registration).Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- gate.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	told := &statuses{}
	nothing := empty{reader: reads{}}
	return newReconciler(&member.Link{
		Member: here, Host: nothing, Cache: nothing, Clock: clock, Recorder: events.NewFakeRecorder(10),
		HostWriter: guarded.NewHostWriter(host{writes{}, told}, here.Registration, guarded.HostOnlyGuard{}),
	}, Options{Backlog: gate}), told, clock, q
}

// host is a client that accepts only writes of statuses.
type host struct {
	client.Client
	statuses *statuses
}

func (h host) Status() client.SubResourceWriter { return h.statuses }

// statuses counts the writes of statuses.
type statuses struct {
	client.SubResourceWriter
	written int
}

func (s *statuses) Apply(context.Context, apiruntime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	s.written++
	return nil
}

// empty is a cache without objects.
type empty struct {
	cache.Cache
	reader reads
}

func (e empty) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return e.reader.Get(ctx, key, into, options...)
}

func asked(o *scene) { set(o.root, volumehelpers.AnnStorageProvisioner, v1alpha1.ProvisionerName) }

// Claims wait while the host's PV controller is behind, unless an object already exists for them.
func TestClaimsWaitForTheHost(t *testing.T) {
	for name, tc := range map[string]struct {
		o    observe.Claim
		want error
	}{
		"no object exists for the claim yet":                    {seen(placedIn(""), asked), nil},
		"the claim's leaf exists":                               {seen(placedIn(""), asked, pushed), errWrite},
		"the claim requests a volume that exists in the member": {seen(placedIn(""), boundTo("pv-1")), errWrite},
		"the claim is bound to a promise":                       {promised(), errWrite},
		"the claim was reassigned here, and has already waited": {seen(placedIn(""), asked, steeredTo(here.NodeName)), errWrite},
	} {
		t.Run(name, func(t *testing.T) {
			r, told, _, _ := behind(t)
			if err := r.executeStep(t.Context(), tc.o, step(lifecycle.Place)); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
			if told.written > 0 {
				t.Error("a status was written")
			}
		})
	}
}

// A claim's earlier problem is removed while the claim waits. Otherwise, recovery would act on it.
func TestAClaimThatWaitsHasNoProblem(t *testing.T) {
	r, told, _, _ := behind(t)
	o := seen(placedIn(""), asked)
	o.Root.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
		Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNamespaceTerminating, Message: "member cluster38: wait",
	}}
	if err := r.executeStep(t.Context(), o, step(lifecycle.Place)); err != nil || told.written != 1 {
		t.Errorf("wrote %d statuses (%v), want one that removes the problem", told.written, err)
	}
}

// The gate enqueues a waiting claim, unless the claim no longer needs to be placed.
func TestClaimsAreEnqueued(t *testing.T) {
	r, _, clock, q := behind(t)
	o := seen(placedIn(""), asked)
	gone := o
	gone.Root = o.Root.DeepCopy()
	gone.Root.Name, gone.Root.UID = "gone", "gone"
	for _, one := range []observe.Claim{gone, o} {
		if err := r.executeStep(t.Context(), one, step(lifecycle.Place)); err != nil {
			t.Fatal(err)
		}
	}
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(gone.Root)}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	enqueued(t, o.Root, clock, q, 6*time.Minute) // unbound volumes no longer count
	if err := r.executeStep(t.Context(), o, step(lifecycle.Place)); !errors.Is(err, errWrite) {
		t.Errorf("not placed after the gate enqueued it: %v", err)
	}
}

// A claim that waits for long reports why, and how many volumes and claims are before it.
func TestALongWaitIsReported(t *testing.T) {
	r, _, clock, q := behind(t)
	recorder := events.NewFakeRecorder(10)
	r.Recorder = recorder
	o := seen(placedIn(""), asked)
	if err := r.executeStep(t.Context(), o, step(lifecycle.Place)); err != nil || len(recorder.Events) > 0 {
		t.Fatalf("%d events when the claim begins to wait (%v)", len(recorder.Events), err)
	}
	enqueued(t, o.Root, clock, q, time.Minute)
	for range 2 {
		if err := r.executeStep(t.Context(), o, step(lifecycle.Place)); err != nil {
			t.Fatal(err)
		}
	}
	if len(recorder.Events) != 1 {
		t.Fatalf("%d events, want one", len(recorder.Events))
	}
	got := <-recorder.Events
	for _, part := range []string{v1alpha1.ReasonHeldBack, here.Registration, "still has 1000 volumes to bind", "Claims waiting for this member: 1"} {
		if !strings.Contains(got, part) {
			t.Errorf("event %q, want it to contain %q", got, part)
		}
	}
}

// enqueued steps the gate's clock, and expects the gate to enqueue a claim.
func enqueued(t *testing.T, claim *corev1.PersistentVolumeClaim, clock *clocktesting.FakeClock, q queue, after time.Duration) {
	t.Helper()
	for !clock.HasWaiters() {
		runtime.Gosched() // wait until the gate has created its ticker
	}
	clock.Step(after)
	defer time.AfterFunc(10*time.Second, q.ShutDown).Stop() // the claim is enqueued immediately or never
	if woken, _ := q.Get(); woken.NamespacedName != client.ObjectKeyFromObject(claim) {
		t.Errorf("enqueued %s, want the waiting claim", woken)
	}
}
