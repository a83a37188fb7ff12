package backlog

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// overtaken is how much younger a volume that was bound has to be, by the host's API
// server's clock, for another one not to count any more: the PV controller looks at all
// every 15 s, and at new ones as they come, so that something else keeps that one. Where
// it is that far behind, it need not be so: then too few are counted for a while.
const overtaken = 2 * time.Minute

// volumes are the host's PVs that wait for its PV controller, whoever made them.
type volumes struct {
	waiting map[string]volume // by name
	newest  time.Time         // of those that are bound
	bound   map[string]int    // of each member, of those that were seen to wait, since it was last asked
}

type volume struct {
	member string // its cluster ID; empty for volumes that are not ours
	made   time.Time
}

func newVolumes() volumes {
	return volumes{waiting: map[string]volume{}, bound: map[string]int{}}
}

// see takes note of a PV as it is now.
func (v *volumes) see(pv *corev1.PersistentVolume) {
	made := pv.CreationTimestamp.Time
	if awaitsBinding(pv) {
		v.waiting[pv.Name] = volume{pv.Labels[v1alpha1.LabelClusterID], made}
		return
	}
	if pv.Status.Phase == corev1.VolumeBound {
		if waited, did := v.waiting[pv.Name]; did {
			v.bound[waited.member]++
		}
		if made.After(v.newest) {
			v.newest = made
		}
	}
	delete(v.waiting, pv.Name)
}

// count those of each member that wait, less those that were overtaken.
func (v *volumes) count() tally {
	t := tally{}
	for _, one := range v.waiting {
		if v.newest.Sub(one.made) <= overtaken {
			t[one.member]++
		}
	}
	return t
}

// boundSince is how many of a member were bound since it was last asked.
func (v *volumes) boundSince(member string) int {
	n := v.bound[member]
	delete(v.bound, member)
	return n
}

// tally of the volumes that wait, by member.
type tally map[string]int

func (t tally) all() int {
	n := 0
	for _, of := range t {
		n += of
	}
	return n
}

// share is how many volumes of a member may wait while its claims are placed as they
// come: what others leave of the limit, and its part among those that have any at the
// least. So one whose volumes cannot be bound holds no other member's claims back.
func (t tally) share(member string) int {
	members := len(t)
	if t[member] == 0 {
		members++
	}
	return max(limit-(t.all()-t[member]), limit/members, 1)
}

// awaitsBinding reports whether a PV was made for a claim that it is not bound to yet.
func awaitsBinding(pv *corev1.PersistentVolume) bool {
	if pv.DeletionTimestamp != nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == "" {
		return false
	}
	phase := pv.Status.Phase
	return phase == "" || phase == corev1.VolumePending || phase == corev1.VolumeAvailable
}
