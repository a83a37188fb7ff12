package deregistration

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/route"
)

// empty is a host without objects.
type empty struct{ client.Client }

func (empty) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (empty) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// linked is a fleet with one member.
type linked struct {
	Fleet
	state  fleet.State
	claims []mirror.Origin
	fails  error
}

func (l linked) MemberState(string) (fleet.State, bool) { return l.state, true }

func (linked) ListLeafPods(context.Context, string) ([]string, error) { return nil, nil }

func (linked) ListLeavesOfPods(context.Context, string) ([]string, error) { return nil, nil }

func (l linked) ListLeafClaims(context.Context, string) ([]mirror.Origin, error) {
	return l.claims, l.fails
}

// Claims whose placement was lost in a restore of the host are restored before their member leaves (I3).
func TestLacking(t *testing.T) {
	origin := mirror.Origin{Root: client.ObjectKey{Namespace: "shop", Name: "data"}, UID: "root"}
	down := errors.New("no route to host")
	for name, tc := range map[string]struct {
		leaves []mirror.Origin
		uid    types.UID
		placed string
		fails  error
		want   []string
	}{
		"the member has the leaf of a claim that is not placed": {leaves: []mirror.Origin{origin}, uid: "root", want: []string{"shop/data"}},
		"the claim is placed":                          {leaves: []mirror.Origin{origin}, uid: "root", placed: leftID},
		"the claim was created again":                  {leaves: []mirror.Origin{origin}, uid: "later"},
		"the leaf's root is gone":                      {leaves: []mirror.Origin{{Root: client.ObjectKey{Namespace: "shop", Name: "gone"}, UID: "root"}}, uid: "root"},
		"the member has no leaves":                     {uid: "root"},
		"the member does not respond to the live list": {uid: "root", fails: down},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: tc.uid, Annotations: map[string]string{v1alpha1.AnnotationPlacedIn: tc.placed}}}
			r := &Deregisterer{Client: host{claims: []corev1.PersistentVolumeClaim{*claim}}, Fleet: linked{claims: tc.leaves, fails: tc.fails}}
			cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "left"}, Status: v1alpha1.ClusterRegistrationStatus{ClusterID: leftID}}
			got, err := r.listUnplacedClaims(t.Context(), cr)
			if !slices.Equal(got, tc.want) || !errors.Is(err, tc.fails) {
				t.Errorf("got %v, %v, want %v, %v", got, err, tc.want, tc.fails)
			}
			l := remainingObjects{connected: true, unplacedClaims: got}
			if next := l.nextStep(); (next == stepWaitForPlacements) != (len(tc.want) > 0) {
				t.Errorf("the next step is %d", next)
			}
			if l.forced = true; l.nextStep() != stepFinish {
				t.Errorf("forced, the next step is %d", l.nextStep())
			}
		})
	}
}

// A new process does not abandon a member that it has not tried to reach yet.
func TestConnecting(t *testing.T) {
	away := access.ConnectionProblemf(v1alpha1.ReasonUnreachable, "no route to host")
	for name, tc := range map[string]struct {
		state    fleet.State
		unlinked bool
		cluster  string
		want     bool
	}{
		"the manager has just started":               {cluster: leftID, want: true},
		"the first attempt failed":                   {state: fleet.State{Problem: away, ConsecutiveFailures: 1}, cluster: leftID, want: true},
		"the caches are not synced yet":              {state: fleet.State{Connected: true}, cluster: leftID, want: true},
		"the link works":                             {state: fleet.State{Connected: true, Synced: true, Leaving: true}, cluster: leftID},
		"the link is older than the deregistration":  {state: fleet.State{Connected: true, Synced: true}, cluster: leftID, want: true},
		"the member is lost":                         {state: fleet.State{Problem: away, ConsecutiveFailures: 3}, cluster: leftID},
		"this process has ended the link on purpose": {cluster: leftID, unlinked: true},
		"the member has never connected":             {},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Deregisterer{Client: empty{}, Fleet: linked{state: tc.state}, EndedLinks: &sync.Map{}}
			cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "left", UID: "uid-left"}, Status: v1alpha1.ClusterRegistrationStatus{ClusterID: tc.cluster}}
			if tc.unlinked {
				r.EndedLinks.Store(cr.UID, nil)
			}
			l, err := r.observeRemaining(t.Context(), cr)
			if err != nil {
				t.Fatal(err)
			}
			if l.connectionPending != tc.want {
				t.Errorf("connecting is %t", l.connectionPending)
			}
		})
	}
}

// Until the manager knows whether the host serves snapshots, a deregistration does not continue
// without them.
func TestSnapshotsUnknown(t *testing.T) {
	r := &Deregisterer{Client: empty{}, Fleet: linked{state: fleet.State{Connected: true, Synced: true, Leaving: true}}, EndedLinks: &sync.Map{}, Snapshots: route.NewOptionalCache()}
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "left"}, Status: v1alpha1.ClusterRegistrationStatus{ClusterID: leftID}}
	if _, err := r.observeRemaining(t.Context(), cr); !errors.Is(err, route.ErrServedUnknown) {
		t.Errorf("the error is %v", err)
	}
	r.Snapshots.MarkNotServed()
	if _, err := r.observeRemaining(t.Context(), cr); err != nil {
		t.Errorf("the host does not serve snapshots: %v", err)
	}
}

// host is a host with claims, and with Pods on the virtual node.
type host struct {
	empty
	pods   []corev1.Pod
	claims []corev1.PersistentVolumeClaim
}

func (h host) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *corev1.PodList:
		list.Items = h.pods
	case *corev1.PersistentVolumeClaimList:
		list.Items = h.claims
	}
	return nil
}

func (h host) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	for i := range h.claims {
		if claim, ok := into.(*corev1.PersistentVolumeClaim); ok && key == client.ObjectKeyFromObject(&h.claims[i]) {
			h.claims[i].DeepCopyInto(claim)
			return nil
		}
	}
	return h.empty.Get(ctx, key, into, opts...)
}

// A user's finalizer on a Pod does not keep a deregistration, but a Pod whose leaf may still run does
// (I6).
func TestLeavingPods(t *testing.T) {
	const patient, kept = int64(30), int64(0)
	held := func(phase corev1.PodPhase, grace int64, change ...func(*corev1.Pod)) corev1.Pod {
		p := pod("held", phase, true)
		p.DeletionGracePeriodSeconds, p.Finalizers = &grace, []string{"example.com/keep"}
		p.Status.Conditions = []corev1.PodCondition{{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue}}
		for _, c := range change {
			c(&p)
		}
		return p
	}
	linkedState := fleet.State{Connected: true, Synced: true, Leaving: true}
	earlier := fleet.State{Connected: true, Synced: true}
	fresh := func(phase corev1.PodPhase) corev1.Pod { return pod("fresh", phase, false) }
	lost := fleet.State{Problem: access.ConnectionProblemf(v1alpha1.ReasonUnreachable, "no route to host"), ConsecutiveFailures: 3}
	for name, tc := range map[string]struct {
		state            fleet.State
		forced, unlinked bool
		pod              corev1.Pod
		counts           bool
	}{
		"finished, deleted, and kept by a finalizer":      {state: linkedState, pod: held(corev1.PodFailed, kept)},
		"kept by a finalizer after the link has ended":    {unlinked: true, pod: held(corev1.PodSucceeded, kept)},
		"kept by a finalizer in a lost member, forced":    {state: lost, forced: true, pod: held(corev1.PodFailed, kept)},
		"kept by a finalizer in an unreachable member":    {state: lost, pod: held(corev1.PodFailed, kept), counts: true},
		"kept by a finalizer, the manager is connecting":  {forced: true, pod: held(corev1.PodFailed, kept), counts: true},
		"deleted by force, and not finished yet":          {state: linkedState, pod: held(corev1.PodRunning, kept), counts: true},
		"deleted by force in a lost member, not finished": {state: lost, forced: true, pod: held(corev1.PodRunning, kept), counts: true},
		"finished, and its deletion is not complete":      {state: linkedState, pod: held(corev1.PodFailed, patient), counts: true},
		"finished, and not deleted":                       {state: linkedState, pod: held(corev1.PodFailed, kept, func(p *corev1.Pod) { p.DeletionTimestamp = nil }), counts: true},
		"finished, deleted, and without a finalizer":      {state: linkedState, pod: held(corev1.PodFailed, kept, func(p *corev1.Pod) { p.Finalizers = nil }), counts: true},

		"never pushed, in a member that is leaving": {state: linkedState, pod: fresh(corev1.PodPending)},
		"rejected, in a member that is leaving":     {state: linkedState, pod: fresh(corev1.PodFailed)},
		"re-created after the link has ended":       {unlinked: true, pod: fresh(corev1.PodPending)},
		"never pushed, in a lost member, forced":    {state: lost, forced: true, pod: fresh(corev1.PodPending)},
		"an earlier link may still push it (I6)":    {state: earlier, pod: fresh(corev1.PodPending), counts: true},
		"never pushed, in an unreachable member":    {state: lost, pod: fresh(corev1.PodPending), counts: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Deregisterer{Client: host{pods: []corev1.Pod{tc.pod}}, Fleet: linked{state: tc.state}, EndedLinks: &sync.Map{}}
			cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "left", UID: "uid-left"}, Status: v1alpha1.ClusterRegistrationStatus{ClusterID: leftID}}
			if tc.forced {
				cr.Annotations = map[string]string{v1alpha1.AnnotationForceDeregister: "true"}
			}
			if tc.unlinked {
				r.EndedLinks.Store(cr.UID, nil)
			}
			l, err := r.observeRemaining(t.Context(), cr)
			if err != nil {
				t.Fatal(err)
			}
			if counts := len(l.pods) > 0; counts != tc.counts {
				t.Errorf("the deregistration waits for the Pod: %t", counts)
			}
		})
	}
}
