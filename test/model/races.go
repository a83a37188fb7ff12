package model

import "strings"

// race is a permitted difference between ends: the end depends on which of two moves comes first.
// one and other are prefixes of the moves' names.
type race struct{ why, one, other string }

// races are the reviewed races. Each is between Xylem and a user who changes or deletes the object
// of Xylem's step, or between two controllers of Kubernetes. Each description names the possible
// ends.
var races = []race{
	{
		"a claim is deleted while its volume is about to be mirrored: once the volume is stamped, only a host PV can be evidence for its destruction (I2), so it is kept and reported as an orphan",
		"host: the claim is deleted", "leaf_pv: create *v1.PersistentVolume in the host",
	},
	{
		"a leaf claim is deleted while its volume is about to be mirrored: the next leaf claim gets this volume, or it gets another one and this volume is reported as an orphan",
		"member: the claim is deleted", "leaf_pv: create *v1.PersistentVolume in the host",
	},
	{
		"a leaf claim is deleted, and the member's PV controller releases the volume before it is mirrored",
		"member: the PV controller releases the PV", "leaf_pv: create *v1.PersistentVolume in the host",
	},
	{
		"a leaf claim is deleted while its volume is about to be stamped: a volume that its member retains is kept, with or without the stamp",
		"member: the claim is deleted", "leaf_pv: patch *v1.PersistentVolume in the member",
	},
	{
		"an object was deleted while the cache was stale, and is about to be stamped or mirrored: the step uses the old or the current state of the volume",
		"the cache catches up", "leaf_pv: ",
	},
	{
		"an admin sets Retain on a volume whose destruction has begun: the member's provisioner destroys it first, or Xylem sets it to Retain",
		"member: the provisioner destroys the disk", "leaf_pv: patch *v1.PersistentVolume in the member",
	},
	{
		"a restored host lost the record of the claim's placement: the scheduler selects the node again before or after the leaf claim is withdrawn",
		"host: the scheduler selects the member's node", "root_pvc: delete *v1.PersistentVolumeClaim in the member",
	},
	{
		"the leaf PV of a withdrawn leaf claim was deleted: the provisioner creates a PV for its disk again before the leaf claim is deleted, or it does not",
		"member: the provisioner creates a volume", "root_pvc: delete *v1.PersistentVolumeClaim in the member",
	},
	{
		"an admin sets policy Recycle on a host PV whose volume the member retains: the PV controller fails to recycle it, or Xylem sets it to Retain first. Its phase is then Failed or Released, and both are valid",
		"host: the PV controller cannot recycle the PV", "leaf_pv: patch *v1.PersistentVolume in the host",
	},
	{
		"in Kubernetes: a deleted PV is removed before or after its provisioner has destroyed its disk",
		"member: the PV is no longer protected", "member: the provisioner destroys the disk",
	},
	{
		"in Kubernetes: a deleted PV is removed before it is bound to its claim, or is bound and remains Terminating",
		"member: the PV is no longer protected", "member: the PV controller binds the PV",
	},
}

// histories contains the number of different ends that a single disruption can have, depending on
// when it happens. Other disruptions always have the same end.
var histories = map[string]int{
	// The possible ends are: no object is left; the volume was mirrored and its policy applies; it was
	// not mirrored and its member retains it; or it was stamped and is an orphan.
	"a user deletes the claim": 4,
	// If the volume existed before, the claim is bound to it. Otherwise, the other member has the
	// claim, and this member has no volume, a stamped one, or an unstamped one that it retains.
	"the scheduler selects a node of the other member": 4,
	// If the volume was mirrored, the next leaf claim gets it. Otherwise, that leaf claim gets
	// another volume, and this one is deleted, or remains with or without the stamp.
	"the member's admin deletes the leaf claim": 3,
	// The PV is deleted and provisioned again. Or it is bound and remains Terminating, deleted before
	// it was stamped, before it was mirrored, or afterwards.
	"the member's admin deletes the leaf PV": 4,
	// The re-created PV is mirrored, or the host PV represents the earlier one.
	"the leaf PV is re-created with the same name": 2,
	// The host PV was bound to its claim and remains Terminating; or the claim does not get it,
	// whether or not the PV controller had begun to bind it.
	"an admin deletes the host PV": 3,
}

// raced returns why moves may lead to different ends: each pair of ends needs a race between a move
// that leads to the one and a move that leads to the other. It returns "" if a pair lacks a race.
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
