package sharing

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/proof"
)

// The model has one shared volume, the member that owns it, and another member that may have a
// copy. The search visits every reachable state. The decisions are those of NextCopyStep, on real objects.
// The model contains the guards of EnsureCopy, MaintainCopy and root_pv: live proofs, resourceVersions and the
// lock of a Sharer.

// phase is the phase of the host PV.
type phase uint8

const (
	noPV phase = iota
	boundPV
	releasedPV
	availablePV // an admin removed its claimRef
)

// hostSide is the state of the host. Claims of the host are numbered. 0 means that there is none.
type hostSide struct {
	pv                    phase
	uid, ref, claim       uint8
	own, record, deleting bool
	pod                   bool // a Pod in the member needs the claim
}

// claimCopy is the claim of the copy. of and claim identify the host PV and the host's claim.
type claimCopy struct {
	uid, of, claim uint8 // uid is 0 if the claim does not exist
	bound, lost    bool
	deleting       bool
}

type volumeCopy struct {
	ref, of, claim uint8 // ref is the UID of its claim, or 0 if the PV does not exist
	deleting       bool
	deletes        bool // its reclaim policy is Delete
}

type podPhase uint8

const (
	noPod podPhase = iota
	pendingPod
	runningPod
)

// memberSide is the state of the member that has the copy.
type memberSide struct {
	claim claimCopy
	pv    volumeCopy
	pod   podPhase
}

// fate is the state of the owner's volume.
type fate uint8

const (
	kept   fate = iota
	doomed      // its reclaim policy is Delete
	destroyed
)

// creation is a request that EnsureCopy has decided to send after its live reads.
type creation struct {
	step           uint8 // 1 creates the claim, 2 the PV
	of, claim, ref uint8
}

type world struct {
	host, seenHost     hostSide
	member, seenMember memberSide
	pending            creation
	volume             fate
	stale              bool  // the leaf Pod's root is gone
	last               uint8 // the last claim that the host created
	mirrored           bool  // leaf_pv has created a host PV
	// backup is an earlier state of the host. A restore returns to it once.
	backup              hostSide
	backed, restored    bool
	suspended           bool // the restore is not confirmed
	lost, blind, excuse bool // see confirm; excuse means that the host or its admin used a destroyed volume
}

// variant is a variant of the code and of the environment.
type variant struct {
	next func(Observed) (Step, *mirror.Refusal)
	// ignoresRecords, unprovenDrop, unlocked and unprovenPolicy remove one safeguard each.
	ignoresRecords, unprovenDrop, unlocked, unprovenPolicy bool
	restores, claims, forced, policies                     bool
	until                                                  string // the problem that ends the search
}

const claims = 2 // of the host

// observed returns the objects of a state.
func observed(h hostSide, m memberSide, wanted bool) Observed {
	o := Observed{Place: here(), Class: hostClass(), MemberClass: memberClass(), WantedByPod: wanted}
	if h.pv != noPV {
		pv := sharedPV()
		pv.UID = types.UID(fmt.Sprint("host-", h.uid))
		pv.Spec.ClaimRef = nil
		if h.ref != 0 {
			pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: claimUID(h.ref)}
		}
		pv.Status.Phase = map[phase]corev1.PersistentVolumePhase{boundPV: corev1.VolumeBound, releasedPV: corev1.VolumeReleased, availablePV: corev1.VolumeAvailable}[h.pv]
		if h.record {
			pv = hostpv.VolumeWithCopyIn(pv, o.Place.ClusterID)
		}
		if h.deleting {
			pv.DeletionTimestamp = &metav1.Time{}
		}
		o.Host = pv
	}
	copyOf := func(of, claim uint8) mirror.VolumeCopy {
		return mirror.VolumeCopy{HostID: o.Place.HostID, Volume: sharedPV().Name, VolumeUID: types.UID(fmt.Sprint("host-", of)), ClaimUID: claimUID(claim)}
	}
	deletion := func(deleting bool) *metav1.Time {
		if deleting {
			return &metav1.Time{}
		}
		return nil
	}
	if c := m.claim; c.uid != 0 {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: copyUID(c.uid), DeletionTimestamp: deletion(c.deleting)}}
		claim.Spec.VolumeName = CopyVolumeName(o.Place.HostID, sharedPV())
		claim.Status.Phase = corev1.ClaimPending
		if c.bound {
			claim.Status.Phase = corev1.ClaimBound
		}
		if c.lost {
			claim.Status.Phase = corev1.ClaimLost
		}
		copyOf(c.of, c.claim).StampCopy(claim)
		o.Claim = claim
	}
	if v := m.pv; v.ref != 0 {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: CopyVolumeName(o.Place.HostID, sharedPV()), DeletionTimestamp: deletion(v.deleting)}}
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: copyUID(v.ref)}
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		if v.deletes {
			pv.Spec.PersistentVolumeReclaimPolicy = deletes
		}
		copyOf(v.of, v.claim).StampCopy(pv)
		o.Volume = pv
	}
	return o
}

func claimUID(n uint8) types.UID { return types.UID(fmt.Sprint("claim-", n)) }
func copyUID(n uint8) types.UID  { return types.UID(fmt.Sprint("copy-", n)) }

// needed reports whether a host needs a copy, as copies.IsCopyNeeded does.
func (h hostSide) needed(of, claim uint8) bool {
	return h.pv != noPV && h.pv != releasedPV && h.uid == of && h.ref != 0 && h.ref == claim
}

func (m memberSide) copies() bool { return m.claim.uid != 0 || m.pv.ref != 0 }

// settleHost deletes the host PV once nothing keeps it.
func (w *world) settleHost() {
	if h := &w.host; h.pv != noPV && h.deleting && !h.own && !h.record && h.pv != boundPV {
		h.pv, h.uid, h.ref, h.deleting = noPV, 0, 0, false
	}
}

// settleMember completes deletions. pvc-protection keeps a claim while a Pod uses it. pv-protection
// keeps a PV while its claim is bound.
func (w *world) settleMember() {
	m := &w.member
	if m.claim.deleting && m.pod != runningPod {
		m.claim = claimCopy{}
	}
	if m.pv.deleting && (m.claim.uid != m.pv.ref || !m.claim.bound) {
		m.pv = volumeCopy{}
	}
}

// edge is a transition. A user, an admin or an accident causes it, unless it is automatic.
type edge struct {
	name      string
	automatic bool
	to        world
	wrong     string
	counted   bool // a lost record caused a loss, and the restore was confirmed before Xylem could act
}

type decision struct {
	host   hostSide
	member memberSide
	wanted bool
}

type answer struct {
	step    Step
	refused bool
}

type search struct {
	variant
	memo map[decision]answer
	// buffer is the memory of the last result of edges.
	buffer []edge
}

func (s *search) decide(h hostSide, m memberSide, wanted bool) answer {
	// Next observes neither Pods nor the finalizer of root_pv, nor whether the host's claim exists.
	h.pod, h.own, h.claim, m.pod = false, false, 0, noPod
	d := decision{h, m, wanted}
	a, known := s.memo[d]
	if !known {
		step, refusal := s.next(observed(h, m, wanted))
		a = answer{step, refusal != nil}
		s.memo[d] = a
	}
	return a
}

// edges returns the transitions from a state. They are valid until the next call.
func (s *search) edges(w world) []edge {
	all := s.buffer[:0]
	add := func(name string, automatic bool, change func(*world) string) {
		to := w
		wrong := change(&to)
		to.settleHost()
		to.settleMember()
		if to.host != w.host {
			to.seenHost = w.host // the cache lags by one step
		}
		if to.member != w.member {
			to.seenMember = w.member
		}
		if to != w || wrong != "" {
			all = append(all, edge{name: name, automatic: automatic, to: to, wrong: wrong, counted: wrong != "" && w.blind})
		}
	}
	all = append(all, caughtUp(w)...)
	s.xylem(w, add)
	kubernetes(w, add)
	s.people(w, add)
	s.buffer = all
	return all
}

// caughtUp returns the transitions of the caches.
func caughtUp(w world) []edge {
	var all []edge
	if w.seenHost != w.host {
		to := w
		to.seenHost = w.host
		all = append(all, edge{name: "the host's cache catches up", automatic: true, to: to})
	}
	if w.seenMember != w.member {
		to := w
		to.seenMember = w.member
		all = append(all, edge{name: "the member's cache catches up", automatic: true, to: to})
	}
	return all
}

type adder func(name string, automatic bool, change func(*world) string)

func (s *search) xylem(w world, add adder) {
	s.ensure(w, add)
	if w.pending.step == 0 || s.unlocked {
		s.reduce(w, add)
	}
	s.owner(w, add)
	h := w.seenHost
	c := w.seenMember.claim
	if h.pod && w.member.pod == noPod && h.claim != 0 && h.claim == h.ref && h.record && c.uid != 0 && c.bound && !c.lost && !c.deleting && c.of == h.uid && c.claim == h.claim {
		add("root_pod creates the leaf Pod", true, func(w *world) string {
			w.member.pod, w.stale = pendingPod, !w.host.pod
			return ""
		})
	}
	if w.member.pod != noPod && w.stale && w.seenHost.pod == w.host.pod {
		add("root_pod deletes the leaf Pod", true, func(w *world) string {
			w.member.pod, w.stale = noPod, false
			return ""
		})
	}
}

// ensure adds the steps of EnsureCopy, which decides from live reads and sends its create request in a
// later step.
func (s *search) ensure(w world, add adder) {
	if w.pending.step != 0 {
		add("Ensure sends its request", true, func(w *world) string { return w.create() })
		return
	}
	h := w.seenHost
	c := w.seenMember.claim
	ready := c.uid != 0 && c.bound && !c.lost && !c.deleting && c.of == h.uid && c.claim == h.claim && h.record
	if !h.pod || h.claim == 0 || h.ref != h.claim || h.pv == noPV || ready || w.seenMember.pod == runningPod {
		return
	}
	switch s.decide(w.host, w.member, true).step {
	case Record:
		add("Ensure records the copy", true, func(w *world) string {
			w.host.record, w.lost, w.blind = true, false, false
			return ""
		})
	case CreateClaim:
		add("Ensure decides to create the claim", true, func(w *world) string {
			w.pending = creation{step: 1, of: w.host.uid, claim: w.host.ref}
			return ""
		})
	case CreateVolume:
		add("Ensure decides to create the PV", true, func(w *world) string {
			w.pending = creation{step: 2, of: w.host.uid, claim: w.host.ref, ref: w.member.claim.uid}
			return ""
		})
	case None, Ready, SetRetain, DeleteClaim, DeleteVolume, DropRecord:
	}
}

// create sends the pending request.
func (w *world) create() string {
	p := w.pending
	w.pending = creation{}
	wrong := ""
	if w.volume == destroyed && !w.excuse {
		wrong = "a copy of a destroyed volume is created"
	}
	switch {
	case p.step == 1 && w.member.claim.uid == 0:
		uid := uint8(1)
		for uid == w.member.pv.ref || uid == w.seenMember.pv.ref || uid == w.seenMember.claim.uid {
			uid++
		}
		w.member.claim = claimCopy{uid: uid, of: p.of, claim: p.claim}
	case p.step == 2 && w.member.pv.ref == 0:
		w.member.pv = volumeCopy{ref: p.ref, of: p.of, claim: p.claim}
	default:
		return "" // AlreadyExists
	}
	return wrong
}

// reduce adds the steps of MaintainCopy, which decides from the caches. Before each write, live reads prove
// that it is allowed. Preconditions prove that the cached object is unchanged.
func (s *search) reduce(w world, add adder) {
	h, m := w.seenHost, w.seenMember
	switch s.decide(h, m, false).step {
	case Record:
		if h == w.host {
			add("Reduce records the copy", true, func(w *world) string {
				w.host.record, w.lost, w.blind = true, false, false
				return ""
			})
		}
	case SetRetain:
		if m.pv == w.member.pv {
			add("Reduce sets the PV to Retain", true, func(w *world) string {
				w.member.pv.deletes = false
				return ""
			})
		}
	case DeleteClaim:
		reclaims := w.member.pv.deletes && w.member.pv.ref == m.claim.uid
		if m.claim == w.member.claim && !w.suspended && (!w.host.needed(m.claim.of, m.claim.claim) || m.claim.lost) && (!reclaims || s.unprovenPolicy) {
			add("Reduce deletes the claim", true, func(w *world) string {
				w.member.claim.deleting = true
				if reclaims {
					return destroyedThroughCopy
				}
				return ""
			})
		}
	case DeleteVolume:
		if m.pv == w.member.pv && !m.pv.deletes && !w.suspended && w.member.claim.uid != m.pv.ref {
			add("Reduce deletes the PV", true, func(w *world) string {
				w.member.pv.deleting = true
				return ""
			})
		}
	case DropRecord:
		if h == w.host && (!w.member.copies() || s.unprovenDrop) {
			add("Reduce drops the record", true, func(w *world) string {
				w.host.record = false
				return ""
			})
		}
	case None, Ready, CreateClaim, CreateVolume:
	}
}

// owner contains the steps of leaf_pv and root_pv in the member that owns the volume.
func (s *search) owner(w world, add adder) {
	h := w.host
	ended := h.pv == releasedPV && h.ref != h.claim
	covered := ended && h.own && (!h.record || s.ignoresRecords) && !w.suspended
	switch {
	case h.pv == noPV && h.claim == 1 && w.volume == kept:
		add("leaf_pv creates the host PV", true, func(w *world) string {
			uid := uint8(1)
			if w.mirrored {
				uid = 2
			}
			w.host.pv, w.host.uid, w.host.ref, w.host.own, w.host.record, w.mirrored = boundPV, uid, 1, true, false, true
			return ""
		})
	case covered && w.volume == kept:
		add("root_pv sets the volume to Delete", true, func(w *world) string {
			w.volume = doomed
			return ""
		})
	case covered && w.volume == doomed:
		add("root_pv deletes the leaf claim, and the member destroys the volume", true, func(w *world) string {
			w.volume = destroyed
			if w.member.copies() {
				return destroyedInUse
			}
			return ""
		})
	case covered && h == w.seenHost:
		add("root_pv drops the host PV", true, func(w *world) string {
			w.host.own, w.host.deleting = false, true
			return ""
		})
	case w.volume == doomed && !ended:
		add("leaf_pv sets the volume to Retain", true, func(w *world) string {
			w.volume = kept
			return ""
		})
	}
	if h.pv == availablePV && h.deleting && h.own {
		add("root_pv drops its finalizer", true, func(w *world) string {
			w.host.own = false
			return ""
		})
	}
}

// kubernetes contains the steps of the controllers of both clusters.
func kubernetes(w world, add adder) {
	if w.host.pv == boundPV && w.host.claim != w.host.ref {
		add("the host releases the PV", true, func(w *world) string {
			w.host.pv = releasedPV
			return ""
		})
	}
	if w.host.pv == availablePV && w.host.claim != 0 && !w.host.deleting {
		add("the host binds the PV to another claim", true, func(w *world) string {
			w.host.pv, w.host.ref = boundPV, w.host.claim
			w.excuse = w.excuse || w.volume == destroyed
			return ""
		})
	}
	c, v := w.member.claim, w.member.pv
	switch {
	case c.uid != 0 && (!c.bound || c.lost) && v.ref == c.uid && !v.deleting:
		add("the member binds the claim", true, func(w *world) string {
			w.member.claim.bound, w.member.claim.lost = true, false
			return ""
		})
	case c.uid != 0 && c.bound && !c.lost && v.ref != c.uid:
		add("the member reports the claim as Lost", true, func(w *world) string {
			w.member.claim.lost = true
			return ""
		})
	}
	if w.member.pod == pendingPod && c.bound && !c.lost && !c.deleting {
		add("the leaf Pod starts", true, func(w *world) string {
			w.member.pod = runningPod
			return ""
		})
	}
}

// people contains everything that users, admins and accidents may cause.
func (s *search) people(w world, add adder) {
	add("a user creates or deletes the Pod", false, func(w *world) string {
		w.host.pod = !w.host.pod
		w.stale = w.member.pod != noPod // a new Pod with this name is another root
		return ""
	})
	if w.host.claim != 0 && !w.host.pod {
		add("the host's claim is deleted", false, func(w *world) string {
			w.host.claim = 0
			return ""
		})
	}
	if s.claims && w.host.claim == 0 && w.last < claims {
		add("a user creates another claim", false, func(w *world) string {
			w.last++
			w.host.claim = w.last
			return ""
		})
	}
	if w.host.pv != noPV {
		add("a user deletes the host PV", false, func(w *world) string {
			w.host.deleting = true
			w.blind = w.blind || w.lost && !w.host.record // the API server does not allow another finalizer
			return ""
		})
	}
	if w.host.pv == releasedPV {
		add("an admin frees the host PV", false, func(w *world) string {
			w.host.pv, w.host.ref = availablePV, 0
			return ""
		})
	}
	add("the member's admin deletes the claim", false, func(w *world) string {
		w.member.claim.deleting = w.member.claim.uid != 0
		return ""
	})
	add("the member's admin deletes the PV", false, func(w *world) string {
		w.member.pv.deleting = w.member.pv.ref != 0
		return ""
	})
	if s.policies && w.member.pv.ref != 0 {
		add("the member's admin sets the PV to Delete", false, func(w *world) string {
			w.member.pv.deletes = true
			return ""
		})
	}
	if s.forced {
		add("the member's admin deletes the PV and its finalizers", false, func(w *world) string {
			w.member.pv = volumeCopy{}
			return ""
		})
	}
	add("the manager restarts", false, func(w *world) string {
		w.pending = creation{}
		return ""
	})
	if s.restores {
		s.disasters(w, add)
	}
}

// disasters contains a backup of the host, its restore, and the confirmation of the restore.
func (s *search) disasters(w world, add adder) {
	if !w.backed && !w.restored {
		add("an admin backs up the host", false, func(w *world) string {
			w.backed, w.backup = true, w.host
			return ""
		})
	}
	if w.backed {
		add("the host is restored", false, func(w *world) string {
			w.lost = w.member.copies() && !w.backup.record || w.pending.step != 0
			w.host, w.backed, w.backup, w.restored, w.suspended = w.backup, false, hostSide{}, true, true
			w.excuse = true
			w.stale = w.stale || w.member.pod != noPod && !w.host.pod
			return ""
		})
	}
	if w.suspended {
		add("an admin confirms the restore", false, func(w *world) string {
			w.suspended = false
			// The loss is excused if Xylem could record the copy, but has not done so yet, as for a
			// member that is away, and if nobody could record it.
			impossible := w.host.pv == noPV || w.host.deleting || w.pending.step != 0
			w.blind = w.lost && (impossible || s.decide(w.host, w.member, false).step == Record)
			return ""
		})
	}
}

// unsettled returns why a state must not be final, or "".
func (s *search) unsettled(w world) string {
	h, m := w.host, w.member
	switch {
	case w.suspended:
		return "" // until an admin confirms the restore
	case m.pv.deletes:
		return "a PV with policy Delete remains"
	case m.pv.ref != 0 && m.claim.uid == 0:
		return "a PV without a claim remains"
	case m.claim.uid != 0 && !h.needed(m.claim.of, m.claim.claim) && m.pod != runningPod:
		return "an obsolete claim remains"
	case m.pv.ref != 0 && !h.needed(m.pv.of, m.pv.claim) && m.pod != runningPod:
		return "an obsolete PV remains"
	case h.record && !m.copies() && h.pv != boundPV:
		return "a record without a copy remains"
	case h.pv == boundPV && m.copies() && !h.record && !h.deleting:
		return "a copy is not recorded"
	case h.pod && h.pv == boundPV && h.claim == h.ref && m.pod != runningPod && !s.decide(h, m, true).refused:
		return "a Pod neither runs nor reports why it has no copy"
	}
	return ""
}

// result is the outcome of a search.
type result struct {
	states, transitions, counted, final int
	problems                            []string
}

func (s *search) run() result {
	start := world{host: hostSide{claim: 1}, last: 1}
	start.seenHost = start.host
	s.memo = map[decision]answer{}
	numbers := map[world]int32{start: 0}
	states := []world{start}
	parents, via := []int32{-1}, []string{""}
	var next [][]int32 // automatic
	var r result
	trace := func(n int32, last string) string {
		var steps []string
		if last != "" {
			steps = append(steps, last)
		}
		for ; n > 0; n = parents[n] {
			steps = append(steps, via[n])
		}
		slices.Reverse(steps)
		return strings.Join(steps, "; ")
	}
	report := func(why string, n int32, last string) {
		if !slices.ContainsFunc(r.problems, func(p string) bool { return strings.HasPrefix(p, why) }) {
			r.problems = append(r.problems, fmt.Sprintf("%s: %s\n%+v", why, trace(n, last), states[n]))
		}
	}
	found := func() bool {
		return s.until != "" && slices.ContainsFunc(r.problems, func(p string) bool { return strings.HasPrefix(p, s.until) })
	}
	for n := int32(0); int(n) < len(states) && !found(); n++ {
		var automatic []int32
		for _, e := range s.edges(states[n]) {
			r.transitions++
			switch {
			case e.counted:
				r.counted++
			case e.wrong != "":
				report(e.wrong, n, e.name)
			}
			to, known := numbers[e.to]
			if !known {
				to = int32(len(states))
				numbers[e.to] = to
				states, parents, via = append(states, e.to), append(parents, n), append(via, e.name)
			}
			if e.automatic {
				automatic = append(automatic, to)
			}
		}
		next = append(next, automatic)
		if len(automatic) == 0 {
			r.final++
			if why := s.unsettled(states[n]); why != "" {
				report(why, n, "")
			}
		}
	}
	if n := s.livelock(next, states); n >= 0 {
		report("automatic steps repeat forever", n, "")
	}
	r.states = len(states)
	return r
}

// livelock returns a state from which automatic steps repeat forever, or -1.
func (s *search) livelock(next [][]int32, states []world) int32 {
	if len(next) < len(states) {
		return -1 // the search has ended early
	}
	return (&components{edges: next, states: states}).livelock()
}

// components finds the strongly connected components of the automatic transitions, with Tarjan's
// algorithm.
type components struct {
	edges      [][]int32
	states     []world
	order, low []int32
	on         []bool
	stack      []int32
	visited    int32
	found      int32
}

// livelock returns a state of a component that automatic steps need not leave although both caches
// catch up, or -1.
func (c *components) livelock() int32 {
	c.order, c.low, c.on, c.found = make([]int32, len(c.edges)), make([]int32, len(c.edges)), make([]bool, len(c.edges)), -1
	for n := range c.edges {
		if c.order[n] == 0 && c.found < 0 {
			c.visit(int32(n))
		}
	}
	return c.found
}

func (c *components) visit(n int32) {
	c.visited++
	c.order[n], c.low[n], c.on[n] = c.visited, c.visited, true
	c.stack = append(c.stack, n)
	for _, to := range c.edges[n] {
		switch {
		case c.order[to] == 0:
			c.visit(to)
			c.low[n] = min(c.low[n], c.low[to])
		case c.on[to]:
			c.low[n] = min(c.low[n], c.order[to])
		}
	}
	if c.low[n] != c.order[n] {
		return
	}
	first := len(c.stack) - 1
	for c.stack[first] != n {
		first--
	}
	component := c.stack[first:]
	c.stack = c.stack[:first]
	// In a component with a current state of each cache, the caches can catch up forever.
	host, member := false, false
	for _, m := range component {
		c.on[m] = false
		host = host || c.states[m].seenHost == c.states[m].host
		member = member || c.states[m].seenMember == c.states[m].member
	}
	if len(component) > 1 && host && member {
		c.found = n
	}
}

// Whatever users, admins and accidents do, Xylem destroys no volume of which a member has a copy, no
// copy remains forever, and no step repeats forever. The exception is a restore of the host that
// loses the record of a copy: if an admin confirms it before Xylem could record the copy again, for
// example because the member is away, Xylem may destroy the volume.
func TestModel(t *testing.T) {
	for name, v := range map[string]variant{
		"two claims":                             {next: NextCopyStep, claims: true, forced: true},
		"a restored host":                        {next: NextCopyStep, restores: true},
		"an admin who changes the copy's policy": {next: NextCopyStep, policies: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := (&search{variant: v}).run()
			t.Logf("%d states, %d transitions, %d final states; %d losses after a restore that was confirmed too early", r.states, r.transitions, r.final, r.counted)
			for _, problem := range r.problems {
				t.Error(problem)
			}
			if v.restores && r.counted == 0 {
				t.Error("the search found no loss after a restore, so it is not thorough")
			}
		})
	}
}

// The search finds what goes wrong without each safeguard.
func TestModelWithoutSafeguard(t *testing.T) {
	for name, test := range map[string]struct {
		variant
		found string
	}{
		"root_pv ignores the records of copies":         {variant{next: NextCopyStep, ignoresRecords: true}, destroyedInUse},
		"Reduce drops a record without proof":           {variant{next: NextCopyStep, unprovenDrop: true}, destroyedInUse},
		"Ensure and Reduce run concurrently":            {variant{next: NextCopyStep, unlocked: true}, destroyedInUse},
		"the claim is created before the record":        {variant{next: claimFirst}, destroyedInUse},
		"the PV is deleted before the claim":            {variant{next: volumeFirst}, "an obsolete claim remains"},
		"a Lost claim is kept":                          {variant{next: keepLost, forced: true}, "a Pod neither runs nor reports why it has no copy"},
		"a record is added only while the PV is needed": {variant{next: recordNeeded, restores: true}, destroyedInUse},
		"a record that is over is kept":                 {variant{next: keepRecord}, "a record without a copy remains"},
		"the claim is deleted before the policy is set": {variant{next: claimBeforePolicy, policies: true, unprovenPolicy: true}, destroyedThroughCopy},
		"the claim's PV is not read live":               {variant{next: NextCopyStep, policies: true, unprovenPolicy: true}, destroyedThroughCopy},
		"the policy is not set back":                    {variant{next: keepPolicy, policies: true}, "a PV with policy Delete remains"},
		"a record is dropped while the PV is bound":     {variant{next: dropEarly}, "automatic steps repeat forever"},
	} {
		t.Run(name, func(t *testing.T) {
			test.until = test.found
			r := (&search{variant: test.variant}).run()
			if !slices.ContainsFunc(r.problems, func(p string) bool { return strings.HasPrefix(p, test.found) }) {
				t.Errorf("the search did not find that %s; it found %q", test.found, r.problems)
			}
			t.Logf("%d states, %d transitions: %s", r.states, r.transitions, strings.Join(r.problems, "\n"))
		})
	}
}

// destroyedThroughCopy is a loss if the copy's admin also made a provisioner responsible for the PV.
const destroyedThroughCopy = "the member may destroy the volume through its copy"

const destroyedInUse = "the volume is destroyed although a member has a copy"

func claimFirst(o Observed) (Step, *mirror.Refusal) {
	step, refusal := NextCopyStep(o)
	if step == Record && o.WantedByPod && o.Claim == nil {
		return CreateClaim, refusal
	}
	return step, refusal
}

func volumeFirst(o Observed) (Step, *mirror.Refusal) {
	step, refusal := NextCopyStep(o)
	if step == DeleteClaim && o.Volume != nil {
		return DeleteVolume, refusal
	}
	return step, refusal
}

// keepPolicy does not set the PV to Retain, and continues with the other steps.
func keepPolicy(o Observed) (Step, *mirror.Refusal) {
	step, refusal := NextCopyStep(o)
	if step == SetRetain {
		return None, nil
	}
	return step, refusal
}

func claimBeforePolicy(o Observed) (Step, *mirror.Refusal) {
	step, refusal := NextCopyStep(o)
	if step == SetRetain && o.Claim != nil {
		o.Volume = o.Volume.DeepCopy()
		o.Volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		return NextCopyStep(o)
	}
	return step, refusal
}

func keepLost(o Observed) (Step, *mirror.Refusal) {
	if o.Claim != nil && o.Claim.Status.Phase == corev1.ClaimLost {
		return None, nil
	}
	return NextCopyStep(o)
}

func recordNeeded(o Observed) (Step, *mirror.Refusal) {
	step, refusal := NextCopyStep(o)
	if claim, claimed := o.claimCopyStamp(); step == Record && claimed && !proof.IsCopyNeeded(o.Host, claim) {
		o.Host = hostpv.VolumeWithCopyIn(o.Host, o.Place.ClusterID)
		return NextCopyStep(o)
	}
	return step, refusal
}

func keepRecord(o Observed) (Step, *mirror.Refusal) {
	step, refusal := NextCopyStep(o)
	if step == DropRecord {
		return None, refusal
	}
	return step, refusal
}

func dropEarly(o Observed) (Step, *mirror.Refusal) {
	step, refusal := NextCopyStep(o)
	if step == None && !o.WantedByPod && o.Host != nil && o.Claim == nil && o.Volume == nil && o.isCopyRecorded() {
		return DropRecord, refusal
	}
	return step, refusal
}
