package backlog

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
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

// here and there are the cluster IDs of two members.
const here, there = "38aa", "77aa"

const limit = DefaultLimit

// rig is a queue of claims with a member's queue and a fake clock.
type rig struct {
	*Queue
	t     *testing.T
	clock *clocktesting.FakeClock
	queue workQueue
	made  int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	fake := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	r := &rig{Queue: New(fake, limit), t: t, clock: fake}
	r.queue = link(t.Context(), t, r.Queue, here)
	return r
}

// link returns a member's queue, which exists until the context ends.
func link(ctx context.Context, t *testing.T, g *Queue, member string) workQueue {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	if err := g.MemberSource(member, "member-"+member).Start(ctx, q); err != nil {
		t.Fatal(err)
	}
	return q
}

func claim(namespace, name string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{}
	c.Namespace, c.Name, c.UID = namespace, name, types.UID(namespace+"/"+name)
	return c
}

// volumes creates volumes of a member that wait for the PV controller.
func (r *rig) volumes(n int) []*corev1.PersistentVolume { return r.volumesOf(here, n) }

func (r *rig) volumesOf(member string, n int) []*corev1.PersistentVolume {
	all := make([]*corev1.PersistentVolume, n)
	for i := range all {
		r.made++
		pv := &corev1.PersistentVolume{}
		pv.Name = fmt.Sprint("volume-", r.made)
		pv.CreationTimestamp = metav1.NewTime(r.clock.Now())
		pv.Labels = map[string]string{v1alpha1.LabelClusterID: member}
		pv.Spec.ClaimRef = &corev1.ObjectReference{UID: types.UID(pv.Name)}
		all[i] = pv
		r.observe(pv)
	}
	return all
}

// bind binds volumes, like the PV controller.
func (r *rig) bind(volumes ...*corev1.PersistentVolume) {
	for _, pv := range volumes {
		pv = pv.DeepCopy()
		pv.Status.Phase = corev1.VolumeBound
		r.observe(pv)
	}
}

// held requests admission of claims, and fails the test if one of them does not wait.
func (r *rig) held(claims ...*corev1.PersistentVolumeClaim) {
	r.t.Helper()
	for _, c := range claims {
		if r.Admit(here, c).Admitted {
			r.t.Fatalf("%s is not delayed", c.Name)
		}
	}
}

// pass runs one step, and returns the admitted claims.
func (r *rig) pass() []string {
	r.t.Helper()
	r.clock.Step(admissionInterval)
	r.admitWaiting()
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

// shows checks the metric of the claims that wait.
func (r *rig) shows(want float64) {
	r.t.Helper()
	var m dto.Metric
	if err := heldBackClaims.WithLabelValues("member-" + here).Write(&m); err != nil || m.GetGauge().GetValue() != want {
		r.t.Errorf("the metric shows %v waiting claims (%v), want %v", m.GetGauge().GetValue(), err, want)
	}
}

func equal(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestFewVolumesDelayNoClaim(t *testing.T) {
	r := newRig(t)
	waiting := r.volumes(limit - 1)
	if !r.Admit(here, claim("team", "first")).Admitted {
		t.Error("a claim is delayed with fewer volumes than the limit")
	}
	r.held(claim("team", "second"))

	r.bind(waiting...)
	equal(t, "admitted after volumes were bound", r.pass(), "team/second")
	if !r.Admit(here, claim("team", "third")).Admitted {
		t.Error("a claim is delayed although few claims are in progress")
	}
}

func TestClaimsFollowBoundVolumes(t *testing.T) {
	r := newRig(t)
	waiting := r.volumes(limit)
	for i := range 10 {
		r.held(claim("team", fmt.Sprint(i)))
	}
	equal(t, "admitted before a claim is bound", r.pass())
	r.shows(10)
	r.bind(waiting[0], waiting[0])
	equal(t, "admitted after a claim was bound and its event repeated", r.pass(), "team/0")
	r.bind(waiting[1:4]...)
	equal(t, "admitted after three claims were bound", r.pass(), "team/1", "team/2", "team/3")
	r.shows(6)
	waiting[4].Status.Phase = corev1.VolumeFailed
	r.observe(waiting[4])
	r.observeDeletedVolume(waiting[5])
	r.observeDeletedVolume(toolscache.DeletedFinalStateUnknown{Obj: waiting[6]})
	equal(t, "admitted after volumes failed or were deleted", r.pass(), "team/4", "team/5", "team/6")

	if !r.Admit(here, claim("team", "6")).Admitted {
		t.Error("an admitted claim is delayed when it enters again")
	}
	if r.Admit(here, claim("team", "7")).Admitted {
		t.Error("a waiting claim is admitted only because it enters again")
	}
	r.bind(waiting[7:10]...)
	equal(t, "admitted after the last claims were bound", r.pass(), "team/7", "team/8", "team/9")
	r.shows(0)
}

// A claim counts from its admission, not only once it has a volume. Otherwise, a burst would be
// admitted before its first volume exists.
func TestClaimsCountBeforeTheirVolumes(t *testing.T) {
	r := newRig(t)
	for i := range limit {
		if !r.Admit(here, claim("crowd", fmt.Sprint(i))).Admitted {
			t.Fatalf("claim %d is delayed", i)
		}
	}
	late, later := claim("team", "late"), claim("team", "later")
	r.held(late, later)
	equal(t, "no admission before a volume exists", r.pass())

	made := r.volumes(1)
	r.observeDeletedVolume(made[0]) // The volume belongs to another claim.
	made[0].Spec.ClaimRef.UID = claim("crowd", "0").UID
	r.observe(made[0])
	r.bind(made...)
	equal(t, "admitted after a claim was bound", r.pass(), "team/late")
	r.clock.Step(admittedCountsFor - 3*admissionInterval)
	r.pass() // reports some claims
	if r.Admit(here, later).Admitted {
		t.Error("claims without a volume stop counting too early")
	}
	r.clock.Step(2 * admissionInterval)
	if r.pass(); !r.Admit(here, later).Admitted {
		t.Error("claims without a volume still count")
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
	equal(t, "admitted claims", r.pass(), "crowd/0", "team/one", "other/one", "crowd/1", "team/two")
	r.bind(waiting[5:7]...)
	equal(t, "then", r.pass(), "crowd/2", "crowd/3")
}

// Volumes that are never bound, for example because a member creates them too small, do not
// delay others forever.
func TestUnboundVolumesStopCounting(t *testing.T) {
	r := newRig(t)
	r.volumes(limit)
	first := claim("team", "first")
	r.held(first)
	r.clock.Step(bindingCountsFor - admissionInterval)
	if r.pass(); r.Admit(here, first).Admitted {
		t.Error("waiting volumes stop counting too early")
	}
	if r.pass(); !r.Admit(here, first).Admitted {
		t.Error("volumes that are never bound still count")
	}
}

// The PV controller alone determines how long a burst takes, and only as many claims are in
// progress as are needed to keep the controller busy.
func TestBursts(t *testing.T) {
	for name, tc := range map[string]struct {
		claims, members, perSecond, delay int // delay is the provisioning time in seconds
		seconds, underWay                 int // the maximum values that the test accepts
	}{
		"default rate limit":   {claims: 1000, members: 2, perSecond: 7, delay: 2, seconds: 146, underWay: limit},
		"four members":         {claims: 5000, members: 4, perSecond: 7, delay: 2, seconds: 718, underWay: limit},
		"a fast PV controller": {claims: 5000, members: 4, perSecond: 20, delay: 10, seconds: 261, underWay: limit + limit/5},
		"a slow PV controller": {claims: 1000, members: 4, perSecond: 2, delay: 10, seconds: 511, underWay: limit},
		"slow provisioners":    {claims: 5000, members: 4, perSecond: 7, delay: 30, seconds: 746, underWay: 4 * limit},
	} {
		t.Run(name, func(t *testing.T) {
			seconds, underWay := burst(t, tc.claims, tc.members, tc.perSecond, tc.delay)
			if seconds > tc.seconds || underWay > tc.underWay {
				t.Errorf("all claims are bound after %d seconds, with at most %d in progress; want at most %d and %d", seconds, underWay, tc.seconds, tc.underWay)
			}
		})
	}
}

// burst creates 60 claims a second, places them when the queue admits them, and creates their
// volumes after a delay. The PV controller binds the volumes one by one.
func burst(t *testing.T, n, members, perSecond, delay int) (seconds, underWay int) {
	t.Helper()
	r := newRig(t)
	queues := map[string]workQueue{}
	for i := range members {
		name := fmt.Sprint("member-", i)
		queues[name] = link(t.Context(), t, r.Queue, name)
	}
	due := map[int][]*corev1.PersistentVolume{} // keyed by second
	placed := map[string]bool{}
	place := func(member, name string) {
		c := claim(member, name)
		if placed[name] || !r.Admit(member, c).Admitted {
			return
		}
		placed[name] = true
		pv := &corev1.PersistentVolume{}
		pv.Name, pv.Labels = name, map[string]string{v1alpha1.LabelClusterID: member}
		pv.Spec.ClaimRef = &corev1.ObjectReference{UID: c.UID}
		due[seconds+delay] = append(due[seconds+delay], pv)
	}
	var waiting []*corev1.PersistentVolume
	made, bound := 0, 0
	for ; bound < n && seconds < 100*n; seconds++ {
		for range min(60, n-made) {
			place(fmt.Sprint("member-", made%members), fmt.Sprint(made))
			made++
		}
		for _, pv := range due[seconds] {
			r.observe(pv)
		}
		waiting = append(waiting, due[seconds]...)
		now := min(perSecond, len(waiting))
		r.bind(waiting[:now]...)
		waiting, bound = waiting[now:], bound+now
		underWay = max(underWay, len(placed)-bound)
		r.clock.Step(admissionInterval)
		r.admitWaiting()
		for member, q := range queues {
			for q.Len() > 0 {
				request, _ := q.Get()
				q.Done(request)
				place(member, request.Name)
			}
		}
	}
	return seconds, underWay
}

// A member whose volumes cannot be bound takes no more than its share of the limit from the others
// (I7).
func TestMembersHaveTheirShare(t *testing.T) {
	r := newRig(t)
	elsewhere := link(t.Context(), t, r.Queue, there)
	r.volumes(2 * limit)
	few := r.volumesOf(there, limit/2-1)
	r.held(claim("team", "here"))
	if !r.Admit(there, claim("team", "below")).Admitted {
		t.Error("another member's volumes delay a claim below its member's share")
	}
	if r.Admit(there, claim("team", "at")).Admitted {
		t.Error("a claim at its member's share is not delayed")
	}
	equal(t, "no admission above the share", r.pass())
	if elsewhere.Len() > 0 {
		t.Error("a claim above its member's share is admitted")
	}
	r.observeDeletedVolume(few[0])
	equal(t, "no admission for the member above its share", r.pass())
	if elsewhere.Len() != 1 {
		t.Error("another member's volumes block a claim below its member's share")
	}
}

func TestCapacity(t *testing.T) {
	for name, tc := range map[string]struct {
		waiting map[string]int
		want    int
	}{
		"no claims in progress":                     {nil, limit},
		"only one member has claims in progress":    {map[string]int{here: limit - 7}, 7},
		"more claims in progress than the limit":    {map[string]int{here: limit + 7}, -7},
		"the unused part of the limit":              {map[string]int{here: 7, there: 20}, limit - 27},
		"at least an equal share":                   {map[string]int{here: 7, there: 3 * limit}, limit/2 - 7},
		"an equal share without claims in progress": {map[string]int{there: 3 * limit, "93aa": 1}, limit / 3},
	} {
		r := newRig(t)
		for member, n := range tc.waiting {
			r.volumesOf(member, n)
		}
		if got := r.remainingCapacity(here); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
	r := newRig(t)
	for i := range 2 * limit {
		r.volumesOf(fmt.Sprint(i), 1)
	}
	if r.remainingCapacity(here) != 1 {
		t.Error("a member has no capacity if there are many members")
	}
}

func TestLeavingUnblocksOthers(t *testing.T) {
	r := newRig(t)
	waiting := r.volumes(limit)
	gone, stays := claim("team", "gone"), claim("team", "stays")
	r.held(gone, stays)
	r.Remove(here, client.ObjectKeyFromObject(gone))
	r.Remove(there, client.ObjectKeyFromObject(stays)) // another member's queue
	recreated := stays.DeepCopy()
	recreated.UID = "another"
	r.held(recreated)
	r.bind(waiting[:1]...)
	equal(t, "admitted claims", r.pass(), "team/stays")
	if !r.Admit(here, recreated).Admitted {
		t.Error("a re-created claim is delayed after its admission")
	}
	r.held(stays) // the earlier object, with a different UID
}

func TestClaimsWaitUntilTheLinkEnds(t *testing.T) {
	r := newRig(t)
	waiting := r.volumes(limit)
	r.held(claim("team", "first"))
	before := r.queues[here]
	r.queue = link(t.Context(), t, r.Queue, here)
	r.held(claim("team", "second"))
	r.closeMemberQueue(here, before)
	r.bind(waiting[0])
	equal(t, "admitted claims", r.pass(), "team/second")

	r.held(claim("team", "third"))
	r.closeMemberQueue(here, r.queues[here])
	if !r.Admit(here, claim("team", "fourth")).Admitted {
		t.Error("a claim waits although the link has ended")
	}
}

func TestLongWaitsAreReported(t *testing.T) {
	r := newRig(t)
	r.volumes(limit + 1)
	const n = reportsPerInterval + 2
	for i := range n {
		r.held(claim("team", fmt.Sprint(i)))
	}
	if r.clock.Step(unreportedWait - 2*admissionInterval); len(r.pass()) > 0 {
		t.Error("reported too early")
	}
	reported := map[string]bool{}
	for range 3 {
		for _, name := range r.pass() {
			reported[name] = true
			i := name[len("team/"):]
			turn := r.Admit(here, claim("team", i))
			if turn.Admitted || !turn.Report || turn.Volumes != limit+1 || turn.Claims != n {
				t.Errorf("%s gets %+v", name, turn)
			}
			if r.Admit(here, claim("team", i)).Report {
				t.Errorf("%s is reported twice", name)
			}
		}
		if len(reported) == reportsPerInterval && reported["team/0"] {
			t.Error("the claims at the front of the queue are reported first")
		}
	}
	if len(reported) != n {
		t.Errorf("only %d of %d waiting claims are reported", len(reported), n)
	}
}

// Only volumes that the PV controller still has to bind count.
func TestAwaitsBinding(t *testing.T) {
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
		"just created":               {phase(""), true},
		"Pending":                    {phase(corev1.VolumePending), true},
		"Available, with a claimRef": {phase(corev1.VolumeAvailable), true},
		"Bound":                      {phase(corev1.VolumeBound), false},
		"Released":                   {phase(corev1.VolumeReleased), false},
		"Failed":                     {phase(corev1.VolumeFailed), false},
		"no claimRef":                {made(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }), false},
		"the claimRef has no UID":    {made(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" }), false},
		"being deleted":              {made(func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = &metav1.Time{} }), false},
	} {
		if got := awaitsBinding(tc.pv); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		g := New(clock.RealClock{}, limit)
		q := link(ctx, t, g, here)
		ended := make(chan error)
		go func() { ended <- g.Start(ctx) }()
		r := &rig{Queue: g, t: t, clock: clocktesting.NewFakeClock(time.Now()), queue: q}
		for range 2 { // the queue is empty in between
			waiting := r.volumes(limit)
			r.held(claim("team", fmt.Sprint(r.made)))
			r.bind(waiting...)
			time.Sleep(2 * admissionInterval) //nolint:forbidigo // by synctest's clock
			equal(t, "admitted claims", r.come(), fmt.Sprint("team/", r.made))
			time.Sleep(admittedCountsFor) //nolint:forbidigo // by synctest's clock
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if err := g.MemberSource(here, here).Start(ctx, q); err != nil || len(g.queues) > 0 {
			t.Errorf("%d queues remain after the link ended (%v)", len(g.queues), err)
		}
	})
}
