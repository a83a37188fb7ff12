package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/internal/cli/command"
	moveobjects "github.com/xylem-io/xylem/internal/cli/move/objects"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// moving is the progress of `kubectl xylem move` for the first claim. The model's member has both the old
// disk and the copy, because a Link only sees its own disks. Package moves checks the command itself. Here, it
// only makes its writes, until neither disk has a claim.
type moving uint8

const (
	noMove  moving = iota
	copying        // the copy is empty or incomplete
	copied         // the copy is complete, and the command swaps the disks
	swapped        // the command has deleted both claims
)

const (
	// copyOfMove is the index in claimNames of the copy's claim, and copyUID its UID.
	copyOfMove = names - 1
	copyUID    = types.UID("r-copy")
)

// moves reports whether a user moves the first claim. The command rejects claims of promise classes.
func (m *Model) moves() bool { return m.bounds.Needs && !m.bounds.Promises }

// beginMoves adds the initial worlds of the search. The first claim is bound, and users have just created the clone and
// begun the move. An admin of the host may have offered the existing volume to any claim.
func (s *search) beginMoves(ctx context.Context, w world) {
	m := s.model
	w.roots[0] = m.objects.keep(m.newRoot(0, rootUIDs[0]))
	w = s.settled(ctx, w)
	from := m.diskFor(w, 0)
	if from < 0 {
		panic("the first claim has no volume:\n" + m.describe(w))
	}
	old := m.objects.pv(w.hostState.pvs[from])
	for _, offered := range []bool{false, true} {
		to := w
		if offered {
			n := slices.Index(hostNames[:], leafNames[m.own()])
			host := asking(hostNames[n], w.hostPolicy.reclaim(), m.objects.pv(w.memberState.pvs[m.own()]))
			host.UID, host.CreationTimestamp = hostUIDs[n][0], before
			to.hostState.pvs[n] = m.objects.keep(host)
			to = s.settled(ctx, to)
		}
		claim := m.move(m.objects.claim(to.roots[0]), old).CopyClaim(old)
		claim.UID, claim.CreationTimestamp, claim.Finalizers = copyUID, before, []string{pvcProtection}
		claim.Status.Phase = corev1.ClaimPending
		to.roots[1], to.roots[copyOfMove], to.moving = m.objects.keep(m.newRoot(1, rootUIDs[1])), m.objects.keep(claim), copying
		s.visit(to, -1, fmt.Sprintf("a move of a bound claim, its clone, and an existing volume, which the host offers: %t; the host's class has policy %s, the member's %s",
			offered, w.hostPolicy.reclaim(), w.leafPolicy.reclaim()))
	}
}

// settled makes the first possible move of Xylem or Kubernetes until there is none.
func (s *search) settled(ctx context.Context, w world) world {
	for {
		var to *world
		for _, step := range s.take(ctx, w) {
			if to == nil && step.wrote != (written{}) {
				next := w
				next.hostState, next.memberState = step.to.hostState, step.to.memberState
				to = &next
			}
		}
		if to == nil {
			moves := s.model.kubernetes(w)
			if len(moves) == 0 {
				return w
			}
			to = &moves[0].to
		}
		w = s.model.marked(*to)
	}
}

// swaps checks that the search contains moves that succeed. Otherwise, it could not find their defects.
func swaps(_ context.Context, s *search) error {
	if slices.ContainsFunc(s.worlds, func(w world) bool { return w.damage != "" }) {
		return nil // which is a finding
	}
	if !slices.ContainsFunc(s.worlds, func(w world) bool { return w.moving == swapped && w.disks[0] && w.disks[1] }) {
		return errors.New("no move ends with two disks")
	}
	return nil
}

// move returns the record of the move of a claim with an old volume.
func (m *Model) move(root *corev1.PersistentVolumeClaim, old *corev1.PersistentVolume) *moveobjects.Record {
	place := moveobjects.Place{Registration: here.Registration, ClusterID: here.ClusterID}
	r := &moveobjects.Record{ID: "move", Copy: claimNames[copyOfMove], From: place, To: place, Old: moveobjects.DiskOf(old), Claim: newRoot(claimNames[0], "")}
	if root != nil {
		r.Claim, r.ClaimUID = moveobjects.ClaimManifest(root), root.UID
	}
	return r
}

// checkCopy returns the command's own check of the copy's volume.
func (m *Model) checkCopy(ctx context.Context) func(world, *moveobjects.Record) error {
	return func(w world, r *moveobjects.Record) error {
		live := reader{contents: contents{m, hostSide, func() state { return w.state }}, live: true}
		host := &moveobjects.Client{Cluster: &command.Cluster{Client: writer{reader: live}, Config: &rest.Config{}}, Namespace: namespace}
		_, err := moveobjects.NewObjectWriter(host, nil, r.Claim.Name).CopyDisk(ctx, r)
		return err
	}
}

// diskFor returns the index of the host PV that a move's claim is, or was, bound to, or -1.
func (m *Model) diskFor(w world, c int) int {
	return slices.IndexFunc(w.hostState.pvs[:], func(i id) bool {
		pv := m.objects.pv(i)
		return pv != nil && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.Name == claimNames[c] && pv.Spec.ClaimRef.UID != ""
	})
}

// restoredSince reports whether a cluster was restored. The command then continues no move.
func (ms *moves) restoredSince() bool { return ms.from.memberRestored || ms.from.hostRestored }

// command makes the next write of the command, as its record and the current objects require.
func (ms *moves) command() {
	m, w := ms.model, ms.from
	if w.moving == noMove || w.moving == swapped || ms.restoredSince() {
		return
	}
	root, claim := m.objects.claim(w.roots[0]), m.objects.claim(w.roots[copyOfMove])
	from, to := m.diskFor(w, 0), m.diskFor(w, copyOfMove)
	if from < 0 || to < 0 {
		return // the command waits for the copy's volume, or reports that a volume was deleted
	}
	r := m.move(root, m.objects.pv(w.hostState.pvs[from]))
	if claim != nil && claim.DeletionTimestamp == nil && m.copyDisk(w, r) != nil {
		return // the command waits, or reports the problem
	}
	retain := func(what string, n int) bool {
		pv := m.objects.pv(w.hostState.pvs[n])
		if r.Retains(pv) {
			return false
		}
		ms.add("the command sets the "+what+" to Retain", func(to *world) { to.hostState.pvs[n] = m.objects.changePV(to.hostState.pvs[n], r.Retain) })
		return true
	}
	remove := func(what string, c int) bool {
		if claim := m.objects.claim(w.roots[c]); claim == nil || claim.DeletionTimestamp != nil {
			return claim != nil
		}
		ms.add("the command deletes the "+what, func(to *world) {
			to.roots[c] = m.objects.changeClaim(to.roots[c], func(claim *corev1.PersistentVolumeClaim) { claim.DeletionTimestamp = &deleted })
		})
		return true
	}
	switch {
	case w.moving == copying:
		if !ms.hasDisk(root) || !ms.hasDisk(claim) {
			return
		}
		ms.add("the command copies the data", func(to *world) {
			if to.moving = copied; m.diskOf(w, claim) == m.own() {
				to.damage = "I2: a move overwrites a volume that existed before"
			}
		})
	case retain("copy", to), retain("old volume", from), remove("claim", 0), remove("copy's claim", copyOfMove):
	default:
		ms.add("the command has deleted both claims", func(to *world) { to.moving = swapped })
	}
}

// hasDisk reports whether a claim exists, is not being deleted, and has a disk.
func (ms *moves) hasDisk(claim *corev1.PersistentVolumeClaim) bool {
	return claim != nil && claim.DeletionTimestamp == nil && ms.model.diskOf(ms.from, claim) >= 0
}

// stopMove ends a move because a user or admin deletes or changes one of its claims or volumes. They decide about the
// data then.
func (w *world) stopMove(name string) {
	if name == claimNames[0] || name == claimNames[copyOfMove] {
		w.moving = noMove
	}
}

// movesOf returns why the move of the first claim needs a volume: it is the old disk, or the copy.
func (m *Model) movesOf(w world, n int) []string {
	if w.moving == noMove {
		return nil
	}
	for _, c := range []int{0, copyOfMove} {
		host := m.diskFor(w, c)
		if host < 0 {
			continue
		}
		if _, name, _, ours := hostpv.LeafOfHostVolume(m.objects.pv(w.hostState.pvs[host])); ours && name == leafNames[n] {
			return []string{"I2: destroyed although a move has not ended"}
		}
	}
	return nil
}

// selects reports whether a claim's selector, if any, selects a host PV.
func selects(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	selector, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector)
	return claim.Spec.Selector == nil || err == nil && selector.Matches(labels.Set(pv.Labels))
}

// bindFree makes the move of the member's PV controller that binds the copy's leaf claim to the existing
// volume. The leaf claim has no selector.
func (ms *moves) bindFree(c int) {
	m := ms.model
	n := m.own()
	claim, pv := m.objects.claim(ms.from.claims[c]), m.objects.pv(ms.from.memberState.pvs[n])
	if !m.moves() || c != copyOfMove || claim == nil || claim.DeletionTimestamp != nil || claim.Spec.VolumeName != "" || claim.Spec.Selector != nil ||
		pv == nil || pv.Spec.ClaimRef != nil || pv.Status.Phase != corev1.VolumeAvailable || pv.DeletionTimestamp != nil {
		return
	}
	ms.add("member: the PV controller selects a free PV for the claim", func(to *world) {
		to.memberState.pvs[n] = m.objects.changePV(to.memberState.pvs[n], func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef = reference(claim)
			metav1.SetMetaDataAnnotation(&pv.ObjectMeta, volumehelpers.AnnBoundByController, "yes")
		})
	})
}
