package backlog

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// here and there are members.
const here, there = "38aa", "77aa"

// rig is a gate with a member's queue, by a clock that stands still.
type rig struct {
	*Gate
	t     *testing.T
	clock *clocktesting.FakeClock
	queue queue
	made  int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	fake := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	r := &rig{Gate: New(fake), t: t, clock: fake}
	r.queue = link(t.Context(), t, r.Gate, here)
	return r
}

// link is a member's queue until the context ends.
func link(ctx context.Context, t *testing.T, g *Gate, member string) queue {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	if err := g.Source(member, "member-"+member).Start(ctx, q); err != nil {
		t.Fatal(err)
	}
	return q
}

func claim(namespace, name string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{}
	c.Namespace, c.Name, c.UID = namespace, name, types.UID(namespace+"/"+name)
	return c
}

// volumes of a member that wait for the PV controller, made now.
func (r *rig) volumes(n int) []*corev1.PersistentVolume { return r.volumesOf(here, n) }

func (r *rig) volumesOf(member string, n int) []*corev1.PersistentVolume {
	all := make([]*corev1.PersistentVolume, n)
	for i := range all {
		r.made++
		pv := &corev1.PersistentVolume{}
		pv.Name = fmt.Sprint("volume-", r.made)
		pv.CreationTimestamp = metav1.NewTime(r.clock.Now())
		pv.Labels = map[string]string{v1alpha1.LabelClusterID: member}
		pv.Spec.ClaimRef = &corev1.ObjectReference{UID: "claim"}
		all[i] = pv
		r.see(pv)
	}
	return all
}

// bind has the PV controller bind volumes.
func (r *rig) bind(volumes ...*corev1.PersistentVolume) {
	for _, pv := range volumes {
		pv = pv.DeepCopy()
		pv.Status.Phase = corev1.VolumeBound
		r.see(pv)
	}
}

// held enters claims that have to wait.
func (r *rig) held(claims ...*corev1.PersistentVolumeClaim) {
	r.t.Helper()
	for _, c := range claims {
		if r.Enter(here, c).Come {
			r.t.Fatalf("%s is placed at once", c.Name)
		}
	}
}

// pass steps once, and returns whose turn has come.
func (r *rig) pass() []string {
	r.t.Helper()
	r.clock.Step(interval)
	r.step()
	return r.come()
}

func (r *rig) come() []string {
	var names []string
	for r.queue.Len() > 0 {
		request, _ := r.queue.Get()
		r.queue.Done(request)
		names = append(names, request.String())
	}
	return names
}

func equal(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestFewVolumesHoldNobodyBack(t *testing.T) {
	r := newRig(t)
	waiting := r.volumes(limit - 1)
	if !r.Enter(here, claim("team", "first")).Come {
		t.Error("held back with fewer volumes than the limit")
	}
	waiting = append(waiting, r.volumes(1)...)
	r.held(claim("team", "second"))

	r.bind(waiting...)
	equal(t, "let through once they are bound", r.pass(), "team/second")
	if !r.Enter(here, claim("team", "third")).Come {
		t.Error("held back although nothing waits any more")
	}
}

func TestClaimsFollowWhatIsBound(t *testing.T) {
	r := newRig(t)
	waiting := r.volumes(limit + 10)
	for i := range 20 {
		r.held(claim("team", fmt.Sprint(i)))
	}
	equal(t, "nothing is bound", r.pass())
	r.bind(waiting[:3]...)
	equal(t, "too many wait: half as many as are bound", r.pass(), "team/0")
	r.bind(waiting[3])
	equal(t, "and what was left of a half", r.pass(), "team/1")
	r.bind(waiting[4:14]...)
	equal(t, "as many as are bound", r.pass(), "team/2", "team/3", "team/4", "team/5", "team/6", "team/7", "team/8", "team/9", "team/10", "team/11")
	r.bind(waiting[14], waiting[14])
	equal(t, "each is counted once", r.pass(), "team/12")
	waiting[15].Status.Phase = corev1.VolumeFailed
	r.see(waiting[15])
	equal(t, "what has failed is not bound", r.pass())

	if !r.Enter(here, claim("team", "12")).Come {
		t.Error("who was let through is held back when it tries again")
	}
	if r.Enter(here, claim("team", "13")).Come {
		t.Error("who waits is placed when it asks again")
	}
}

func TestItGoesFasterWhileFewVolumesWait(t *testing.T) {
	r := newRig(t)
	waiting := r.volumes(limit)
	for i := range 3 * limit {
		r.held(claim("team", fmt.Sprint(i)))
	}
	r.bind(waiting...)
	if n := len(r.pass()); n != limit+limit/2+more {
		t.Errorf("%d are let through after %d were bound", n, limit)
	}
	for i, pv := range r.volumes(limit) { // gone, not bound
		if i%2 == 0 {
			r.forget(pv)
		} else {
			r.forget(toolscache.DeletedFinalStateUnknown{Obj: pv})
		}
	}
	if n := len(r.pass()); n != more {
		t.Errorf("%d are let through with nothing to bind, want %d", n, more)
	}
}

func TestNamespacesTakeTurns(t *testing.T) {
	r := newRig(t)
	waiting := r.volumes(limit)
	for i := range 50 {
		r.held(claim("crowd", fmt.Sprint(i)))
	}
	r.held(claim("team", "one"), claim("other", "one"), claim("team", "two"))
	r.bind(waiting[:5]...)
	equal(t, "let through", r.pass(), "crowd/0", "team/one", "other/one", "crowd/1", "team/two")
	r.bind(waiting[5:7]...)
	equal(t, "then", r.pass(), "crowd/2", "crowd/3")
}

// Volumes that nobody will ever bind, such as of a member that makes them too small,
// do not hold others back for long.
func TestVolumesThatAreOvertakenCountNoMore(t *testing.T) {
	r := newRig(t)
	r.volumes(limit)
	r.clock.Step(overtaken + time.Second)
	for i := range 2*more + 1 {
		r.held(claim("team", fmt.Sprint(i)))
	}
	equal(t, "none at first", r.pass())
	r.clock.Step(anyway)
	if n := len(r.pass()); n != more {
		t.Errorf("%d are let through anyway, want %d", n, more)
	}
	equal(t, "then none", r.pass())
	r.clock.Step(anyway)
	if n := len(r.pass()); n != more {
		t.Errorf("%d are let through after a while, want %d", n, more)
	}

	r.bind(r.volumes(1)...)
	if r.Enter(here, claim("team", "late")).Come {
		t.Error("overtakes one that waits")
	}
	equal(t, "a younger volume was bound", r.pass(), fmt.Sprint("team/", 2*more), "team/late")
	if !r.Enter(here, claim("team", "fifth")).Come {
		t.Error("volumes that were overtaken still count")
	}
}

// A member whose volumes cannot be bound costs the others no more than their part of
// the limit (I7).
func TestMembersHaveTheirShare(t *testing.T) {
	r := newRig(t)
	elsewhere := link(t.Context(), t, r.Gate, there)
	r.volumes(2 * limit)
	few := r.volumesOf(there, limit/2-1)
	r.held(claim("team", "here"))
	if !r.Enter(there, claim("team", "below")).Come {
		t.Error("held back below its share, by another member's volumes")
	}
	last := r.volumesOf(there, 1)
	if r.Enter(there, claim("team", "at")).Come {
		t.Error("not held back at its share")
	}
	equal(t, "none of it is bound", r.pass())
	if elsewhere.Len() > 0 {
		t.Error("let through above its share")
	}
	for _, pv := range append(few, last...) {
		r.forget(pv)
	}
	equal(t, "too many wait here", r.pass())
	if elsewhere.Len() != 1 {
		t.Error("not let through below its share, by another member's volumes")
	}
}

func TestShares(t *testing.T) {
	for name, tc := range map[string]struct {
		waiting tally
		want    int
	}{
		"nobody has any":                   {tally{}, limit},
		"alone":                            {tally{here: 3 * limit}, limit},
		"what others leave":                {tally{here: 7, there: 20}, limit - 20},
		"its part":                         {tally{here: 7, there: 3 * limit}, limit / 2},
		"its part, though it has none yet": {tally{there: 3 * limit, "": 1}, limit / 3},
	} {
		if got := tc.waiting.share(here); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
	crowd := tally{}
	for i := range 2 * limit {
		crowd[fmt.Sprint(i)] = limit
	}
	if crowd.share(here) < 1 {
		t.Error("one of many members has no share at all")
	}
}

func TestWhoIsNotToBePlacedHoldsNobodyUp(t *testing.T) {
	r := newRig(t)
	waiting := r.volumes(limit)
	gone, stays := claim("team", "gone"), claim("team", "stays")
	r.held(gone, stays)
	r.Leave(here, client.ObjectKeyFromObject(gone))
	r.Leave(there, client.ObjectKeyFromObject(stays)) // not its to say
	anew := stays.DeepCopy()
	anew.UID = "another"
	r.held(anew)
	r.bind(waiting[:1]...)
	equal(t, "let through", r.pass(), "team/stays")
	if !r.Enter(here, anew).Come {
		t.Error("who was let through is held back")
	}
	r.volumes(2)
	r.held(stays) // of another UID
}

func TestClaimsWaitAsLongAsTheirLink(t *testing.T) {
	r := newRig(t)
	r.volumes(limit)
	r.held(claim("team", "first"))
	before := r.lanes[here]
	r.queue = link(t.Context(), t, r.Gate, here)
	r.held(claim("team", "second"))
	r.close(here, before)
	r.clock.Step(anyway)
	equal(t, "let through", r.pass(), "team/second")

	r.held(claim("team", "third"))
	r.close(here, r.lanes[here])
	if !r.Enter(here, claim("team", "fourth")).Come {
		t.Error("held back where nobody would wake it")
	}
}

func TestWhoWaitsLongIsTold(t *testing.T) {
	r := newRig(t)
	r.volumes(limit + 1)
	const n = tellings + 2
	for i := range n {
		r.held(claim("team", fmt.Sprint(i)))
	}
	r.lanes[here].last = r.clock.Now().Add(time.Hour) // nobody is let through anyway
	if r.clock.Step(patience - 2*interval); len(r.pass()) > 0 {
		t.Error("told too early")
	}
	told := map[string]bool{}
	for range 3 {
		for _, name := range r.pass() {
			told[name] = true
			i := name[len("team/"):]
			turn := r.Enter(here, claim("team", i))
			if turn.Come || !turn.Tell || turn.Volumes != limit+1 || turn.Claims != n {
				t.Errorf("%s is told %+v", name, turn)
			}
			if r.Enter(here, claim("team", i)).Tell {
				t.Errorf("%s is told twice", name)
			}
		}
		if len(told) == tellings && told["team/0"] {
			t.Error("those whose turn is next are told first")
		}
	}
	if len(told) != n {
		t.Errorf("%d of %d are told", len(told), n)
	}
}

// What the PV controller has nothing to do with is no backlog.
func TestWhatWaitsForThePVController(t *testing.T) {
	made := func(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{}
		pv.Spec.ClaimRef = &corev1.ObjectReference{UID: "claim"}
		change(pv)
		return pv
	}
	phase := func(phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		return made(func(pv *corev1.PersistentVolume) { pv.Status.Phase = phase })
	}
	for name, tc := range map[string]struct {
		pv   *corev1.PersistentVolume
		want bool
	}{
		"just made":              {phase(""), true},
		"Pending":                {phase(corev1.VolumePending), true},
		"Available, for a claim": {phase(corev1.VolumeAvailable), true},
		"Bound":                  {phase(corev1.VolumeBound), false},
		"Released":               {phase(corev1.VolumeReleased), false},
		"Failed":                 {phase(corev1.VolumeFailed), false},
		"for anybody":            {made(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }), false},
		"for a claim to come":    {made(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" }), false},
		"being deleted":          {made(func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = &metav1.Time{} }), false},
	} {
		if got := awaitsBinding(tc.pv); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		g := New(clock.RealClock{})
		q := link(ctx, t, g, here)
		ended := make(chan error)
		go func() { ended <- g.Start(ctx) }()
		r := &rig{Gate: g, t: t, clock: clocktesting.NewFakeClock(time.Now()), queue: q}
		for range 2 { // it rests in between
			waiting := r.volumes(limit)
			r.held(claim("team", fmt.Sprint(r.made)))
			r.bind(waiting...)
			time.Sleep(2 * interval) //nolint:forbidigo // by synctest's clock
			equal(t, "let through", r.come(), fmt.Sprint("team/", r.made))
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if err := g.Source(here, here).Start(ctx, q); err != nil || len(g.lanes) > 0 {
			t.Errorf("%d lanes are left after the link's end (%v)", len(g.lanes), err)
		}
	})
}
