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
		"a claim is deleted while its volume is about to be mirrored: once the volume has its stamp, only a host PV can be evidence that it may go (I2), and it stays as an orphan that is reported",
		"host: the claim goes", "leaf_pv: create *v1.PersistentVolume in the host",
	},
	{
		"a leaf claim is deleted while its volume is about to be mirrored: the next leaf claim gets this volume, or another one, and then this one is reported as an orphan",
		"member: the claim goes", "leaf_pv: create *v1.PersistentVolume in the host",
	},
	{
		"the same, and the member's PV controller has released the volume before it is mirrored",
		"member: the PV controller releases the PV", "leaf_pv: create *v1.PersistentVolume in the host",
	},
	{
		"a leaf claim is deleted while its volume is about to be stamped: a volume that its member retains stays with the stamp, or without",
		"member: the claim goes", "leaf_pv: patch *v1.PersistentVolume in the member",
	},
	{
		"what is stamped or mirrored was deleted while the cache lagged: the step takes the volume as it was, or as it is",
		"the cache catches up", "leaf_pv: ",
	},
	{
		"an admin has a volume retained whose destruction has begun: the member's provisioner destroys it first, or it is held",
		"member: the provisioner destroys the disk", "leaf_pv: patch *v1.PersistentVolume in the member",
	},
	{
		"a host that was restored has forgotten that the claim is placed: the scheduler asks for it again before its leaf claim is withdrawn, or after",
		"host: the scheduler selects the member's node", "root_pvc: delete *v1.PersistentVolumeClaim in the member",
	},
	{
		"a leaf PV was deleted whose leaf claim is withdrawn: the provisioner finds its disk again for the leaf claim, or nobody does",
		"member: the provisioner makes a volume", "root_pvc: delete *v1.PersistentVolumeClaim in the member",
	},
	{
		"an admin sets a host PV to Recycle that its member retains: the PV controller fails to recycle it, or Xylem sets it to Retain first. Its phase is Failed or Released, and both are ends",
		"host: the PV controller cannot recycle the PV", "leaf_pv: patch *v1.PersistentVolume in the host",
	},
	{
		"Kubernetes' own: a PV that is deleted goes before its provisioner has destroyed its disk, or after",
		"member: nothing protects the PV any more", "member: the provisioner destroys the disk",
	},
	{
		"Kubernetes' own: a PV that is deleted goes before it is bound to its claim, or is bound and stays",
		"member: nothing protects the PV any more", "member: the PV controller binds the PV",
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

// raced returns why moves may lead to different ends: for each two ends, a race has a move that
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
