package orphan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/account/withdrawn"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// volume contains the facts about a leaf PV that determine whether it is an orphan.
type volume struct {
	name string
	uid  types.UID
	// origin is the root for which the volume was created. It comes from the volume's own stamp if
	// stamped, or else from its leaf claim's stamp or the record of withdrawn claims.
	origin  mirror.Origin
	stamped bool
	// withdrawn means that the volume has no stamp, was created for a withdrawn leaf claim, and has
	// policy Retain.
	withdrawn bool
}

// evidence is the result of all live reads.
type evidence struct {
	member mirror.Member
	// mirrors maps the UID of a leaf PV to the host PV that represents it.
	mirrors map[types.UID]mirrorOf
	// promised contains the UIDs of the claims that are bound to this member's promises without a
	// disk.
	promised map[types.UID]bool
	// lost contains the promises, by name, to which roots are bound but which the host lacks.
	lost map[string]bool
	// roots contains the host's claims for which the member has a volume whose root must be read.
	roots map[types.NamespacedName]*corev1.PersistentVolumeClaim
	// suspended means that destruction is suspended, so volumes that would be deleted remain.
	suspended bool
}

// owners identifies the root of a leaf PV.
type owners struct {
	hostID string
	// claims contains, by UID, the origins of the member's claims that have this host's stamp.
	// withdrawn contains the leaf claims that were withdrawn while a provisioner may have been
	// creating a volume.
	claims    map[types.UID]mirror.Origin
	withdrawn map[types.UID]withdrawn.Claim
}

// volume returns the facts about a leaf PV, or false if it is not Xylem's or is being deleted.
// A PV without a stamp is Xylem's if the UID in its claimRef is that of a claim that Xylem created.
// The member's API server assigned this UID. Names and namespaces do not count, because others in
// the member can use them too (I4, I8).
func (o owners) volume(pv *corev1.PersistentVolume) (volume, bool) {
	v := volume{name: pv.Name, uid: pv.UID}
	if pv.DeletionTimestamp != nil {
		return v, false
	}
	if v.origin, v.stamped = mirror.OriginIn(o.hostID, pv); v.stamped {
		return v, true
	}
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return v, false
	}
	if origin, ours := o.claims[ref.UID]; ours {
		v.origin = origin
		return v, true
	}
	claim, ours := o.withdrawn[ref.UID]
	if !ours || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		return v, false // with any other policy, the member's own controllers destroy it
	}
	namespace, name, named := strings.Cut(claim.Root, "/")
	if !named { // the record was full, so the name is missing
		namespace, name = ref.Namespace, ref.Name
	}
	v.origin, v.withdrawn = mirror.Origin{HostID: o.hostID, Root: types.NamespacedName{Namespace: namespace, Name: name}}, true
	return v, true
}

// mirrorOf is a host PV's record of its leaf PV.
type mirrorOf struct {
	name string
	// leaf is the name of the leaf PV.
	leaf string
	// released means that the PV is Released or Failed, because its claim was deleted. claim is
	// the claim's UID.
	released bool
	claim    types.UID
}

// needsRoot reports whether the volume's root claim must be read. A Released host PV may be the
// second one of an existing claim.
func (e evidence) needsRoot(v volume) bool {
	m, mirrored := e.mirrors[v.uid]
	return !mirrored || m.released
}

// judge returns why a leaf volume is an orphan. It returns nil if a host PV represents it (one of
// an existing claim, or one kept as Released), or if it is about to be mirrored or deleted.
func (e evidence) judge(v volume) *account.Orphan {
	if !e.needsRoot(v) || v.stamped && e.promised[v.origin.UID] {
		return nil // a stamped volume of a promised claim is about to fulfill the promise
	}
	root := e.roots[v.origin.Root]
	m, mirrored := e.mirrors[v.uid]
	if mirrored && (root == nil || root.UID != m.claim || root.Spec.VolumeName == "" || root.Spec.VolumeName == m.name) {
		return nil // kept as released, or about to be destroyed
	}
	reason, message := "", ""
	switch {
	case mirrored:
		reason, message = account.Surplus, fmt.Sprintf("claim %q is bound to volume %q", v.origin.Root, root.Spec.VolumeName)
	case v.withdrawn:
		reason, message = account.WithdrawnLate, fmt.Sprintf("the provisioner created the volume after Xylem had withdrawn claim %q, and the volume's policy is Retain", v.origin.Root)
	case root != nil && root.UID == v.origin.UID:
		if message = e.elsewhere(v, root); message == "" {
			return nil
		}
		reason = account.Surplus
	case !v.stamped && !e.suspended:
		return nil // never mirrored: root_pvc withdraws it
	case root == nil:
		reason, message = account.RootGone, v.rootGone()
	default:
		reason, message = account.RootReplaced, fmt.Sprintf("claim %q, for which the volume was provisioned, has been replaced by another one with that name, and no PersistentVolume in the host represents the volume", v.origin.Root)
	}
	return &account.Orphan{Volume: v.name, UID: v.uid, Root: v.origin.Root, Reason: reason, Message: message}
}

// rootGone describes the root that the host lacks: a claim, or an admin's PV.
func (v volume) rootGone() string {
	if v.origin.Root.Namespace == "" {
		return fmt.Sprintf("the host no longer has PersistentVolume %q, which an admin created for the volume", v.origin.Root.Name)
	}
	return fmt.Sprintf("the host has neither claim %q, for which the volume was provisioned, nor a PersistentVolume that represents the volume", v.origin.Root)
}

// elsewhere returns why the volume does not belong to its existing root (I3), or "" if it does. A
// root that is neither bound nor placed will be placed in the member that has its volume.
func (e evidence) elsewhere(v volume, root *corev1.PersistentVolumeClaim) string {
	if placed := root.Annotations[v1alpha1.AnnotationPlacedIn]; placed != "" && placed != e.member.ClusterID {
		return fmt.Sprintf("claim %q is placed in another member (cluster ID %s)", v.origin.Root, placed)
	}
	if name := root.Spec.VolumeName; name != "" && !hostpv.IsNameFor(name, v.name, e.member.ClusterID) && !e.promises(name, root.UID) && !e.recreated(v, name) {
		return fmt.Sprintf("claim %q is bound to volume %q", v.origin.Root, name)
	}
	return ""
}

// recreated reports whether the host PV with that name represents an earlier leaf PV with the
// volume's name. The volume may be the claim's own disk, which leaf_pv reports.
func (e evidence) recreated(v volume, host string) bool {
	for _, m := range e.mirrors {
		if m.name == host && m.leaf == v.name {
			return true
		}
	}
	return false
}

// promises reports whether the PV with that name is the claim's promise, and no other volume
// fulfills it. A promise reused from an earlier claim counts only if the host has lost it.
func (e evidence) promises(name string, claim types.UID) bool {
	if e.lost[name] {
		return true
	}
	if name != hostpv.PromiseName(claim) {
		return false
	}
	for _, m := range e.mirrors {
		if m.name == name {
			return false
		}
	}
	return true
}

// judged returns the orphans among the volumes, sorted by name.
func (e evidence) judged(volumes []volume) []account.Orphan {
	var found []account.Orphan
	for _, v := range volumes {
		if o := e.judge(v); o != nil {
			found = append(found, *o)
		}
	}
	slices.SortFunc(found, func(a, b account.Orphan) int { return strings.Compare(a.Volume, b.Volume) })
	return found
}
