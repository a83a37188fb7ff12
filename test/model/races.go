package model

import "strings"

// race is an allowed difference between ends: the first of two moves decides. Prefixes of names
// identify the moves.
type race struct{ why, one, other string }

// races are the reviewed races. Each is between Xylem and a user who removes the object of its
// step, or between two controllers of Kubernetes. Each entry lists the ends that its first move can
// lead to.
var races = []race{
	{
		"a claim is deleted while its volume is about to be mirrored: once the volume has its stamp, only a host PV can be evidence for its destruction (I2), so it stays as a reported orphan",
		"host: the claim is deleted", "leaf_pv: create *v1.PersistentVolume in the host",
	},
	{
		"a leaf claim is deleted while its volume is about to be mirrored: the next leaf claim gets this volume, or another one, in which case this one is reported as an orphan",
		"member: the claim is deleted", "leaf_pv: create *v1.PersistentVolume in the host",
	},
	{
		"a leaf claim is deleted, and the member's PV controller releases the volume before it is mirrored",
		"member: the PV controller releases the PV", "leaf_pv: create *v1.PersistentVolume in the host",
	},
	{
		"a leaf claim is deleted while its volume is about to be stamped: a volume that its member retains stays, with or without the stamp",
		"member: the claim is deleted", "leaf_pv: patch *v1.PersistentVolume in the member",
	},
	{
		"an object that is stamped or mirrored was deleted while the cache was stale: the step uses the old or the current state of the volume",
		"the cache catches up", "leaf_pv: ",
	},
	{
		"an admin sets Retain on a volume whose destruction has begun: the member's provisioner destroys it first, or Xylem sets it to Retain",
		"member: the provisioner destroys the disk", "leaf_pv: patch *v1.PersistentVolume in the member",
	},
	{
		"a restored host has no record of the claim's placement: the scheduler selects the node again before or after the leaf claim is withdrawn",
		"host: the scheduler selects the member's node", "root_pvc: delete *v1.PersistentVolumeClaim in the member",
	},
	{
		"the leaf PV of a withdrawn leaf claim was deleted: the provisioner finds its disk again for the leaf claim, or does not",
		"member: the provisioner creates a volume", "root_pvc: delete *v1.PersistentVolumeClaim in the member",
	},
	{
		"an admin sets a host PV to Recycle that its member retains: the PV controller fails to recycle it, or Xylem sets it to Retain first. Its phase is Failed or Released, which are both valid ends",
		"host: the PV controller cannot recycle the PV", "leaf_pv: patch *v1.PersistentVolume in the host",
	},
	{
		"in Kubernetes: a deleted PV is removed before or after its provisioner has destroyed its disk",
		"member: the PV is no longer protected", "member: the provisioner destroys the disk",
	},
	{
		"in Kubernetes: a deleted PV is removed before it is bound to its claim, or is bound and stays",
		"member: the PV is no longer protected", "member: the PV controller binds the PV",
	},
}

// histories has the number of ends that a single disruption may have, depending on its time.
// Other disruptions have the same end whenever they happen.
var histories = map[string]int{
	// Possible ends: no object is left; the volume was mirrored and its policy applies; it was not
	// mirrored and its member retains it; or it had its stamp and is an orphan.
	"a user deletes the claim": 4,
	// If the volume exists first, the claim is bound to it. Otherwise, the other member has the
	// claim, and this member has no volume, a stamped one, or an unstamped one that it retains.
	"the scheduler selects a node of the other member": 4,
	// If the volume was mirrored, the next leaf claim gets it. Otherwise, that leaf claim gets
	// another volume, and this one is deleted, or remains with or without the stamp.
	"the member's admin deletes the leaf claim": 3,
	// The PV is deleted and provisioned again. Or it is bound and remains Terminating, from before
	// the stamp, before the mirror, or after it.
	"the member's admin deletes the leaf PV": 4,
	// The re-created PV is mirrored, or the host PV represents the earlier one.
	"the leaf PV is re-created under its name": 2,
	// The host PV was bound to its claim and stays Terminating; or its claim does not get it,
	// whether or not the PV controller has begun.
	"an admin deletes the host PV": 3,
}

// raced returns why moves may lead to different ends: for each pair of ends, a race has a move that
// leads to either. It returns "" if no race explains a pair.
func raced(sides [][]string) string {
	var whys []string
	for i := range sides {
		for j := range i {
			why := between(sides[i], sides[j])
			if why == "" {
				return ""
			}
			whys = append(whys, why)
		}
	}
	return whys[0]
}

func between(a, b []string) string {
	for _, r := range races {
		if begins(a, r.one) && begins(b, r.other) || begins(a, r.other) && begins(b, r.one) {
			return r.why
		}
	}
	return ""
}

func begins(moves []string, with string) bool {
	for _, m := range moves {
		if strings.HasPrefix(m, with) {
			return true
		}
	}
	return false
}
