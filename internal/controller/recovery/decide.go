package recovery

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// observed is the input of decide. A nil field means that the object does not exist.
type observed struct {
	member mirror.Member
	now    time.Time
	// nominated reports whether the host's scheduler sets status.nominatedNodeName before it binds a
	// Pod.
	nominated bool
	// namespace is the claims' namespace.
	namespace placement.Namespace
	// claim is the claim of the request, or nil if it does not exist.
	claim *claim
	// group contains the claims that must be in the same member: claim, the other claims of its Pods,
	// the claims of other Pods that use those, and so on. It lacks deleted claims.
	group []claim
	// shared are the host PVs of the Pods' other claims with shared volumes, which several members can
	// use.
	shared []*corev1.PersistentVolume
	// pods are the Pods that use a claim of the group, have not finished, and are not bound to a
	// node yet.
	pods []corev1.Pod
	// places contains all members that have a virtual node.
	places []place
}

// claim is a root claim and its class.
type claim struct {
	root *corev1.PersistentVolumeClaim
	// class is nil unless it is one of Xylem's classes, in mirror mode.
	class   *storagev1.StorageClass
	timeout time.Duration
	// making reports whether an abandoned call of this member's provisioner may still create the
	// claim's volume.
	making bool
	// started reports whether this member's provisioner may be creating the claim's volume. Unlike
	// making, it includes a first call that has not failed yet.
	started bool
	// source is the claim's data source, or nil if it has none.
	source *datasource.Source
}

// pinned reports whether only one member, the one with the data source, can create the claim.
func (c claim) pinned() bool { return c.source != nil && c.source.Placed() }

// place is a member with a virtual node, to which claims can be reassigned.
type place struct {
	placement.Member
	// capacity is the largest volume for which capacity is published, by host class.
	capacity map[string]resource.Quantity
}

// decision is the next step. The types below are the only ones.
type decision interface{ decision() }

type (
	// nothing means that the claim needs no action for the duration again, or, if again is 0, until
	// the next event.
	nothing struct{ again time.Duration }
	// settle removes recovery's annotations from a claim that has its volume.
	settle struct{}
	// lower publishes less capacity here, so that the claim no longer fits.
	lower struct{}
	// move reassigns the claims to a node.
	move struct {
		claims []claim
		to     *corev1.Node
		tried  report.Tried
		why    *mirror.Refusal // nil if the claims follow another claim
	}
	// free lets the scheduler select among all members again, because a round has ended.
	free struct {
		claims []claim
		tried  report.Tried
	}
	// stay records that no other member remains.
	stay struct {
		claims []claim
		tried  report.Tried
		why    *mirror.Refusal
	}
)

func (nothing) decision() {}
func (settle) decision()  {}
func (lower) decision()   {}
func (move) decision()    {}
func (free) decision()    {}
func (stay) decision()    {}

// followTime is the minimum time for the scheduler to follow a reassigned claim. The scheduler
// detects within a second that its PreBind has failed, and backs off for up to ten seconds
// (kube-scheduler's podMaxBackoffSeconds).
const followTime = 15 * time.Second

// cut is the maximum by which a time shrinks when it is truncated to seconds.
const cut = time.Second

// lookAgain is the delay until Xylem checks whether the lower capacity is published. The watch
// usually reports it earlier.
const lookAgain = time.Second

func decide(o observed) decision {
	switch {
	case o.claim == nil || o.claim.root.DeletionTimestamp != nil:
		return nothing{}
	case o.claim.root.Spec.VolumeName != "":
		return o.settled()
	case o.claim.class == nil:
		return nothing{}
	}
	if d, follows := o.followSource(); follows {
		return d
	}
	if d, follows := o.follow(); follows {
		return d
	}
	if !o.here(*o.claim) {
		return nothing{}
	}
	if d, split := o.rejoin(); split {
		return d
	}
	why, until := o.trouble()
	switch {
	case why == nil && (o.waits() || o.unwatched()):
		return nothing{o.claim.timeout} // events of Pods without a node do not reach the member's controllers
	case why == nil:
		return nothing{}
	}
	if wait := until.Sub(o.now); wait > 0 {
		return nothing{wait} // a driver that lacks capacity in one topology segment may have it in another
	}
	return o.recover(why)
}

// settled returns the decision for a bound claim. Once the claim has its volume, recovery removes
// its annotations, because events have already reported what they record. A claim that is bound to
// a promise has its volume once the promise is fulfilled. Until then, leaf_pod needs the attempted
// members.
func (o observed) settled() decision {
	root := o.claim.root
	if hostpv.NamesPromise(root.Spec.VolumeName) && !report.PromiseKept(root) {
		return nothing{}
	}
	if root.Annotations[v1alpha1.AnnotationPlacedIn] == o.member.ClusterID && noted(root) {
		return settle{}
	}
	return nothing{}
}

// noted reports whether the claim has annotations about its reassignment or about attempted
// members.
func noted(root *corev1.PersistentVolumeClaim) bool {
	_, steered := root.Annotations[v1alpha1.AnnotationSteeredTo]
	_, tried := root.Annotations[v1alpha1.AnnotationTried]
	return steered || tried
}

// here reports whether the scheduler or Xylem selected this member for a claim.
func (o observed) here(c claim) bool {
	return c.root.Spec.VolumeName == "" && c.root.Annotations[route.AnnSelectedNode] == o.member.NodeName
}

// followSource reassigns claims to the member that has the data source of another claim of their
// group, because their Pod can only run there.
func (o observed) followSource() (decision, bool) {
	var to string
	var behind []claim
	for _, c := range o.group {
		node := c.root.Annotations[v1alpha1.AnnotationSteeredTo]
		switch {
		case c.class == nil || c.root.Spec.VolumeName != "":
			return nil, false
		case c.pinned() && (node == "" || node != c.root.Annotations[route.AnnSelectedNode] || to != "" && to != node):
			return nil, false // the source's member is not selected yet, or the sources are in several members
		case c.pinned():
			to = node
		case o.here(c):
			behind = append(behind, c)
		}
	}
	if to == "" || to == o.member.NodeName || len(behind) == 0 {
		return nil, false
	}
	for _, p := range o.places {
		if p.NodeName == to {
			tried := report.TriedOf(behind[0].root)
			tried.Moved = o.now.Unix()
			return move{claims: behind, to: p.Node, tried: tried}, true
		}
	}
	return nil, false
}

// follow reassigns claims to the member to which another claim of their group was reassigned later.
// This happens if the manager was killed between the two writes.
func (o observed) follow() (decision, bool) {
	for _, ahead := range o.group {
		to := ahead.root.Annotations[v1alpha1.AnnotationSteeredTo]
		if to == "" || to == o.member.NodeName || to != ahead.root.Annotations[route.AnnSelectedNode] || ahead.root.Spec.VolumeName != "" {
			continue
		}
		tried := report.TriedOf(ahead.root)
		var behind []claim
		for _, c := range o.group {
			moved := report.TriedOf(c.root).Moved
			if o.here(c) && (moved < tried.Moved || moved == tried.Moved && o.member.NodeName < to) {
				behind = append(behind, c)
			}
		}
		for i := range o.places {
			if o.places[i].NodeName == to && len(behind) > 0 && movable(o.group) {
				return move{claims: behind, to: o.places[i].Node, tried: tried}, true
			}
		}
	}
	return nil, false
}

// rejoin reassigns the claim to the member in which another claim of its group has its volume. Both
// were to be reassigned together, but the other claim's volume had just been created. Their Pod can
// only run where that volume is.
func (o observed) rejoin() (decision, bool) {
	var at string
	for _, c := range o.group {
		placed := c.root.Annotations[v1alpha1.AnnotationPlacedIn]
		switch {
		case c.root.Spec.VolumeName == "":
		case c.class == nil, placed == "", placed == o.member.ClusterID, at != "" && at != placed:
			return nil, false // the volume is not Xylem's, or is in this member, or the volumes are in several members
		default:
			at = placed
		}
	}
	for _, p := range o.places {
		if at != "" && p.ClusterID == at {
			tried := report.TriedOf(o.claim.root)
			tried.Moved = o.now.Unix()
			return move{claims: []claim{*o.claim}, to: p.Node, tried: tried}, true
		}
	}
	return nil, false
}

// trouble returns the evidence that this member cannot satisfy the claim, and the time until which
// the member may still try: the class's timeout after the evidence began, or after the claim was
// reassigned here. A problem with the registration's rules ends that time immediately.
func (o observed) trouble() (*mirror.Refusal, time.Time) {
	moved := time.Unix(report.TriedOf(o.claim.root).Moved, 0)
	if problem, since := report.FailedIn(o.claim.root, o.member.ClusterID); problem != nil {
		if report.FailsAtOnce(problem.Reason) {
			return problem, time.Time{}
		}
		return problem, slices.MaxFunc([]time.Time{since, moved}, time.Time.Compare).Add(o.claim.timeout + cut)
	}
	if o.waits() && len(o.pods) > 0 && !o.agreed() {
		return o.notFollowed(), moved.Add(max(o.claim.timeout, followTime) + cut)
	}
	if since, stranded := o.stranded(); stranded {
		return o.notFollowed(), slices.MaxFunc([]time.Time{since, moved}, time.Time.Compare).Add(max(o.claim.timeout, followTime) + cut)
	}
	return nil, time.Time{}
}

// stranded reports whether the claim's selection keeps its Pods from all other members, although
// none of them can be placed here, and since when. The scheduler never removes such a selection.
// This happens if the Pod was replaced, or if this member no longer suits it. A Pod with a
// scheduling gate does not count.
func (o observed) stranded() (since time.Time, is bool) {
	if !o.unwatched() || o.agreed() || slices.ContainsFunc(o.group, func(c claim) bool { return c.started }) {
		return since, false
	}
	for i := range o.pods {
		pod := &o.pods[i]
		if len(pod.Spec.SchedulingGates) > 0 {
			continue
		}
		c := podstatus.Condition(pod.Status.Conditions, corev1.PodScheduled)
		if c == nil || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable || podstatus.Pushed(pod) == corev1.ConditionTrue {
			return since, false
		}
		if is = true; c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since, is
}

// unwatched reports whether the claim is not placed in another member, and none of its Pods is
// nominated here. The events of such Pods do not reach the member's controllers.
func (o observed) unwatched() bool {
	placed := o.claim.root.Annotations[v1alpha1.AnnotationPlacedIn]
	return (placed == "" || placed == o.member.ClusterID) && (!o.nominated || !o.agreed())
}

// waits reports whether the claim was reassigned here and waits for the scheduler to follow,
// because root_pvc has not placed it.
func (o observed) waits() bool {
	return o.claim.root.Annotations[v1alpha1.AnnotationSteeredTo] == o.member.NodeName && o.claim.root.Annotations[v1alpha1.AnnotationPlacedIn] == ""
}

// agreed reports whether the scheduler is about to bind one of the Pods here.
func (o observed) agreed() bool {
	return slices.ContainsFunc(o.pods, func(pod corev1.Pod) bool {
		if o.nominated {
			return pod.Status.NominatedNodeName == o.member.NodeName
		}
		own := o.own()
		return own != nil && placement.Schedulable(&pod, own.Node)
	})
}

// notFollowed reports that the scheduler does not place the Pod here, with the scheduler's message.
func (o observed) notFollowed() *mirror.Refusal {
	said := "the scheduler reports no reason"
	pod := append(o.consumers(), o.pods...)[0]
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			said = c.Message
		}
	}
	return mirror.Refuse(v1alpha1.ReasonNotScheduled, "the scheduler does not place Pod %[2]q in member %[1]q: %[3]s", o.member.Registration, pod.Name, said)
}

// recover returns the decision after the member's timeout.
func (o observed) recover(why *mirror.Refusal) decision {
	waiting := nothing{o.claim.timeout}
	if len(o.pods) == 0 || !movable(o.group) || slices.ContainsFunc(o.group, func(c claim) bool { return c.making }) {
		return waiting // root_pvc reports the reason, except for slow provisioning
	}
	tried := report.TriedOf(o.claim.root).Begin(o.now)
	if tried.Until != 0 {
		return nothing{time.Unix(tried.Until, 0).Sub(o.now)}
	}
	claims := slices.DeleteFunc(slices.Clone(o.group), func(c claim) bool { return !o.here(c) })
	others := o.candidates()
	if len(others) > 0 && why.Reason == v1alpha1.ReasonOutOfSpace && o.fits(*o.claim, o.own()) {
		return lower{}
	}
	known := tried.Has(o.member.ClusterID)
	tried = tried.With(o.member, why)
	for _, p := range others {
		if !tried.Has(p.ClusterID) {
			tried.Moved = o.now.Unix()
			return move{claims, p.Node, tried, why}
		}
	}
	switch {
	case len(others) > 0:
		return free{claims, tried.End(o.now, o.claim.timeout)}
	case !known:
		return stay{claims, tried, why}
	}
	return waiting
}

// movable reports whether another member can satisfy the claims: all have Xylem's classes, and none
// has a volume, or a data source that ties it to one member.
func movable(group []claim) bool {
	return !slices.ContainsFunc(group, func(c claim) bool { return c.class == nil || c.root.Spec.VolumeName != "" || c.pinned() })
}

func (o observed) own() *place {
	if i := slices.IndexFunc(o.places, func(p place) bool { return p.NodeName == o.member.NodeName }); i >= 0 {
		return &o.places[i]
	}
	return nil
}

// candidates returns the other members that can satisfy the claims, starting with the one with the
// most capacity.
func (o observed) candidates() []place {
	found := slices.DeleteFunc(slices.Clone(o.places), func(p place) bool { return p.NodeName == o.member.NodeName || !o.suits(p) })
	slices.SortFunc(found, func(a, b place) int {
		return cmp.Or(-cmp.Compare(o.least(a), o.least(b)), cmp.Compare(a.NodeName, b.NodeName))
	})
	return found
}

// least returns the lowest of the capacities that a place has for the claims' classes.
func (o observed) least(p place) int64 {
	least := int64(math.MaxInt64)
	for _, c := range o.group {
		capacity := p.capacity[c.class.Name]
		least = min(least, capacity.Value())
	}
	return least
}

func (o observed) suits(p place) bool {
	for _, c := range o.group {
		if !o.fits(c, &p) || !p.Answer(placement.Request{Namespace: o.namespace, Class: c.class, Source: c.source}).Allowed() {
			return false
		}
	}
	for _, volume := range o.shared {
		if !p.Answer(placement.Request{Namespace: o.namespace, Volume: volume}).Allowed() {
			return false
		}
	}
	return p.MayRun(o.consumers()...)
}

// consumers returns the Pods for which the scheduler selected this member. If there are none, it
// returns all Pods without scheduling gates.
func (o observed) consumers() []corev1.Pod {
	chosen := slices.DeleteFunc(slices.Clone(o.pods), func(pod corev1.Pod) bool { return pod.Status.NominatedNodeName != o.member.NodeName })
	if len(chosen) > 0 {
		return chosen
	}
	return slices.DeleteFunc(slices.Clone(o.pods), func(pod corev1.Pod) bool { return len(pod.Spec.SchedulingGates) > 0 })
}

// fits reports whether a place publishes enough capacity for a claim.
func (o observed) fits(c claim, p *place) bool {
	if p == nil {
		return false
	}
	capacity, offered := p.capacity[c.class.Name]
	return offered && capacity.Cmp(c.root.Spec.Resources.Requests[corev1.ResourceStorage]) >= 0
}
