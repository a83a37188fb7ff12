package orphan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// leafVolume contains the facts about a leaf PV that determine whether it is an orphan.
type leafVolume struct {
	name string
	uid  types.UID
	// origin is the root for which the volume was created. It comes from the volume's own stamp if
	// stamped, or else from its leaf claim's stamp or the record of withdrawn claims.
	origin  mirror.Origin
	stamped bool
	// createdForWithdrawnClaim means that the volume has no stamp, was created for a withdrawn leaf claim, and has
	// policy Retain.
	createdForWithdrawnClaim bool
}

// evidence is the result of all live reads.
type evidence struct {
	member mirror.Member
	// hostVolumes maps the UID of a leaf PV to the host PV that represents it.
	hostVolumes map[types.UID]hostVolumeRecord
	// promisedClaims contains the UIDs of the claims that are bound to this member's promises without a
	// disk.
	promisedClaims map[types.UID]bool
	// lostPromises contains the promises, by name, to which roots are bound but which the host lacks.
	lostPromises map[string]bool
	// rootClaims contains the host's claims for which the member has a volume whose root must be read.
	rootClaims map[types.NamespacedName]*corev1.PersistentVolumeClaim
	// destructionSuspended means that destruction is suspended, so volumes that would be deleted remain.
	destructionSuspended bool
}

// rootFinder identifies the root of a leaf PV.
type rootFinder struct {
	hostID string
	// claims contains, by UID, the origins of the member's claims that have this host's stamp.
	// withdrawn contains the leaf claims that were withdrawn while a provisioner may have been
	// creating a volume.
	claims    map[types.UID]mirror.Origin
	withdrawn map[types.UID]account.WithdrawnClaim
}

// factsOfVolume returns the facts about a leaf PV, or false if it is not Xylem's or is being deleted.
// A PV without a stamp is Xylem's if the UID in its claimRef is that of a claim that Xylem created.
// The member's API server assigned this UID. Names and namespaces do not count, because others in
// the member can use them too (I4, I8).
func (o rootFinder) factsOfVolume(pv *corev1.PersistentVolume) (leafVolume, bool) {
	v := leafVolume{name: pv.Name, uid: pv.UID}
	if pv.DeletionTimestamp != nil {
		return v, false
	}
	if v.origin, v.stamped = mirror.LeafOriginFromHost(o.hostID, pv); v.stamped {
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
	v.origin, v.createdForWithdrawnClaim = mirror.Origin{HostID: o.hostID, Root: types.NamespacedName{Namespace: namespace, Name: name}}, true
	return v, true
}

// hostVolumeRecord is a host PV's record of its leaf PV.
type hostVolumeRecord struct {
	name string
	// leafName is the name of the leaf PV.
	leafName string
	// released means that the PV is Released or Failed, because its claim was deleted. claim is
	// the claim's UID.
	released bool
	claimUID types.UID
}

// needsRootClaim reports whether the volume's root claim must be read. A Released host PV may be the
// second one of an existing claim.
func (e evidence) needsRootClaim(v leafVolume) bool {
	m, mirrored := e.hostVolumes[v.uid]
	return !mirrored || m.released
}

// judgeVolume returns why a leaf volume is an orphan. It returns nil if a host PV represents it (one of
// an existing claim, or one kept as Released), or if it is about to be mirrored or deleted.
func (e evidence) judgeVolume(v leafVolume) *account.Orphan {
	if !e.needsRootClaim(v) || v.stamped && e.promisedClaims[v.origin.UID] {
		return nil // a stamped volume of a promised claim is about to fulfill the promise
	}
	root := e.rootClaims[v.origin.Root]
	m, mirrored := e.hostVolumes[v.uid]
	if mirrored && (root == nil || root.UID != m.claimUID || root.Spec.VolumeName == "" || root.Spec.VolumeName == m.name) {
		return nil // kept as released, or about to be destroyed
	}
	reason, message := "", ""
	switch {
	case mirrored:
		reason, message = account.SurplusVolume, fmt.Sprintf("claim %q is bound to volume %q", v.origin.Root, root.Spec.VolumeName)
	case v.createdForWithdrawnClaim:
		reason, message = account.WithdrawnLate, fmt.Sprintf("the provisioner created the volume after Xylem had withdrawn claim %q, and the volume's policy is Retain", v.origin.Root)
	case root != nil && root.UID == v.origin.UID:
		if message = e.whyNotOwnedByRoot(v, root); message == "" {
			return nil
		}
		reason = account.SurplusVolume
	case !v.stamped && !e.destructionSuspended:
		return nil // never mirrored: root_pvc withdraws it
	case root == nil:
		reason, message = account.RootGone, v.describeMissingRoot()
	default:
		reason, message = account.RootReplaced, fmt.Sprintf("claim %q, for which the volume was provisioned, has been replaced by another one with that name, and no PersistentVolume in the host represents the volume", v.origin.Root)
	}
	return &account.Orphan{Volume: v.name, UID: v.uid, Root: v.origin.Root, Reason: reason, Message: message}
}

// describeMissingRoot describes the root that the host lacks: a claim, or an admin's PV.
func (v leafVolume) describeMissingRoot() string {
	if v.origin.Root.Namespace == "" {
		return fmt.Sprintf("the host no longer has PersistentVolume %q, which an admin created for the volume", v.origin.Root.Name)
	}
	return fmt.Sprintf("the host has neither claim %q, for which the volume was provisioned, nor a PersistentVolume that represents the volume", v.origin.Root)
}

// whyNotOwnedByRoot returns why the volume does not belong to its existing root (I3), or "" if it does. A
// root that is neither bound nor placed will be placed in the member that has its volume.
func (e evidence) whyNotOwnedByRoot(v leafVolume, root *corev1.PersistentVolumeClaim) string {
	if placed := root.Annotations[v1alpha1.AnnotationPlacedIn]; placed != "" && placed != e.member.ClusterID {
		return fmt.Sprintf("claim %q is placed in another member (cluster ID %s)", v.origin.Root, placed)
	}
	if name := root.Spec.VolumeName; name != "" && !hostpv.IsHostVolumeNameFor(name, v.name, e.member.ClusterID) && !e.isClaimPromise(name, root.UID) && !e.representsEarlierVolume(v, name) {
		return fmt.Sprintf("claim %q is bound to volume %q", v.origin.Root, name)
	}
	return ""
}

// representsEarlierVolume reports whether the host PV with that name represents an earlier leaf PV with the
// volume's name. The volume may be the claim's own disk, which leaf_pv reports.
func (e evidence) representsEarlierVolume(v leafVolume, host string) bool {
	for _, m := range e.hostVolumes {
		if m.name == host && m.leafName == v.name {
			return true
		}
	}
	return false
}

// isClaimPromise reports whether the PV with that name is the claim's promise, and no other volume
// fulfills it. A promise reused from an earlier claim counts only if the host has lost it.
func (e evidence) isClaimPromise(name string, claim types.UID) bool {
	if e.lostPromises[name] {
		return true
	}
	if name != hostpv.PromiseName(claim) {
		return false
	}
	for _, m := range e.hostVolumes {
		if m.name == name {
			return false
		}
	}
	return true
}

// orphansAmong returns the orphans among the volumes, sorted by name.
func (e evidence) orphansAmong(volumes []leafVolume) []account.Orphan {
	var found []account.Orphan
	for _, v := range volumes {
		if o := e.judgeVolume(v); o != nil {
			found = append(found, *o)
		}
	}
	slices.SortFunc(found, func(a, b account.Orphan) int { return strings.Compare(a.Volume, b.Volume) })
	return found
}
