package leafpv

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// observed is all that a decision is taken on; nil is absent.
type observed struct {
	member mirror.Member
	// leaf PV, and whether it carries our stamp.
	leaf    *corev1.PersistentVolume
	stamped bool
	// leftBehind: a provisioner finished it for a claim that had been withdrawn, in
	// a namespace of ours, and its policy keeps it.
	leftBehind bool
	// claim is the leaf claim of ours that names the PV; origin is its origin,
	// else the PV's own stamp.
	claim               *corev1.PersistentVolumeClaim
	claimOrigin, origin mirror.Origin
	// root claim of the origin, UID checked, and its class.
	root  *corev1.PersistentVolumeClaim
	class *storagev1.StorageClass
	// host PV that stands for this very leaf PV; nameTaken: there is none, and
	// another PV has its name.
	host      *corev1.PersistentVolume
	nameTaken bool
}

type decision interface{ decision() }

type (
	nothing struct{}
	// orphan: stamped, and without a root. Reported, never destroyed here.
	orphan struct{}
	// surplus: the root has, or is to have, its volume elsewhere.
	surplus struct{ why string }
	// patchLeaf stamps the leaf PV, holds it at Retain, or points it at its new claim.
	patchLeaf struct{ after *corev1.PersistentVolume }
	// create the host PV.
	create struct{ host *corev1.PersistentVolume }
	// patchHost keeps the host PV current.
	patchHost struct{ after *corev1.PersistentVolume }
)

func (nothing) decision()   {}
func (orphan) decision()    {}
func (surplus) decision()   {}
func (patchLeaf) decision() {}
func (create) decision()    {}
func (patchHost) decision() {}

func isOrphan(d decision) bool {
	switch d.(type) {
	case orphan, surplus:
		return true
	}
	return false
}

func decide(o observed) decision {
	switch {
	case o.leaf != nil && o.leftBehind:
		return orphan{}
	case o.leaf == nil, o.claim == nil && !o.stamped:
		return nothing{} // gone, or none of ours
	case o.leaf.DeletionTimestamp != nil:
		return nothing{}
	case o.root == nil:
		return o.withoutRoot()
	}
	if why := o.elsewhere(); why != "" {
		return surplus{why}
	}
	if o.claim == nil {
		return nothing{} // root_pvc makes the leaf claim anew
	}
	if ref := o.leaf.Spec.ClaimRef; ref == nil || ref.UID != o.claim.UID {
		return o.repoint()
	}
	if o.leaf.Status.Phase != corev1.VolumeBound || o.claim.Status.Phase != corev1.ClaimBound {
		return nothing{} // the member's part
	}
	if after := held(o.leaf, o.claimOrigin); !equality.Semantic.DeepEqual(o.leaf, after) {
		return patchLeaf{after}
	}
	if o.host == nil {
		return o.create()
	}
	return o.current()
}

// withoutRoot: a host PV without a claim is kept current all the same; its
// finalizer is put back if it was let go of when its cluster was deregistered.
// Where either side retains, the leaf PV stands at Retain: also if it was put to
// Delete when both sides said so, and an admin chose Retain then.
func (o observed) withoutRoot() decision {
	switch {
	case !o.stamped && o.leaf.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain:
		return patchLeaf{held(o.leaf, o.claimOrigin)} // it outlives its claim, and is not to be forgotten
	case !o.stamped:
		return nothing{} // never mirrored: root_pvc withdraws it
	case o.host == nil:
		return orphan{}
	case o.host.Annotations[v1alpha1.AnnotationAbandon] == "true":
		return nothing{} // the leaf PV is its member's
	case (o.host.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || policyOf(o.leaf) != corev1.PersistentVolumeReclaimDelete) &&
		o.leaf.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		after := o.leaf.DeepCopy()
		after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		return patchLeaf{after}
	}
	return o.current()
}

// elsewhere says why the leaf's volume is not the root's: I3.
func (o observed) elsewhere() string {
	if placed := o.root.Annotations[v1alpha1.AnnotationPlacedIn]; placed != o.member.ClusterID {
		if placed == "" && o.host != nil && o.root.Spec.VolumeName == o.host.Name {
			return "" // bound to it already: root_pvc records the place
		}
		return fmt.Sprintf("the claim is placed in cluster %q", placed)
	}
	if name := o.root.Spec.VolumeName; name != "" && (o.host == nil && name != o.hostName() || o.host != nil && name != o.host.Name) {
		return "the claim is bound to volume " + name
	}
	return ""
}

// repoint points a volume at the leaf claim that asks for it, in one update,
// never passing through Available: only when the host says that the claim's
// root is bound to this volume. One that is Bound is in use, perhaps by a claim
// of the member's own, or is about to be Released, which wakes us.
func (o observed) repoint() decision {
	if !o.stamped || o.leaf.Status.Phase == corev1.VolumeBound || o.host == nil || o.host.Spec.ClaimRef == nil || o.host.Spec.ClaimRef.UID != o.root.UID || o.claim.DeletionTimestamp != nil {
		return nothing{}
	}
	after := held(o.leaf, o.claimOrigin)
	after.Spec.ClaimRef = &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim",
		Namespace: o.claim.Namespace, Name: o.claim.Name, UID: o.claim.UID,
	}
	return patchLeaf{after}
}

// held is the leaf PV with the stamp of its origin and policy Retain, and with a
// note of the policy that the member had given it.
func held(leaf *corev1.PersistentVolume, origin mirror.Origin) *corev1.PersistentVolume {
	after := leaf.DeepCopy()
	if after.Annotations[v1alpha1.AnnotationReclaimPolicy] == "" {
		after.Annotations = with(after.Annotations, v1alpha1.AnnotationReclaimPolicy, string(leaf.Spec.PersistentVolumeReclaimPolicy))
	}
	origin.Stamp(after)
	after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	return after
}

// policyOf is the reclaim policy that the member gave the leaf PV.
func policyOf(leaf *corev1.PersistentVolume) corev1.PersistentVolumeReclaimPolicy {
	return corev1.PersistentVolumeReclaimPolicy(leaf.Annotations[v1alpha1.AnnotationReclaimPolicy])
}

func (o observed) hostName() string {
	return mirror.HostVolumeName(o.leaf.Name, o.member.ClusterID, o.nameTaken)
}

func (o observed) create() decision {
	host := mirror.HostVolume(o.leaf, o.root, mirror.Policy(o.class, policyOf(o.leaf)), o.member)
	host.Name = o.hostName()
	return create{host}
}

// current keeps the host PV at what the leaf PV has become: capacity, volume
// attributes; the registration's present name; our finalizer; and Retain where
// the member retains.
func (o observed) current() decision {
	if o.host.DeletionTimestamp != nil || o.host.Annotations[v1alpha1.AnnotationAbandon] == "true" {
		return nothing{}
	}
	after := o.host.DeepCopy()
	controllerutil.AddFinalizer(after, v1alpha1.FinalizerLeafVolume)
	after.Labels = with(after.Labels, v1alpha1.LabelCluster, o.member.Registration)
	delete(after.Annotations, v1alpha1.AnnotationClusterGone)
	if policyOf(o.leaf) != corev1.PersistentVolumeReclaimDelete {
		after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	change := mirror.VolumeDrift(o.host, o.leaf)
	if change.Capacity != nil {
		after.Spec.Capacity = change.Capacity
	}
	if change.VolumeAttributesClassName != nil {
		after.Spec.VolumeAttributesClassName = change.VolumeAttributesClassName
	}
	if equality.Semantic.DeepEqual(o.host, after) {
		return nothing{}
	}
	return patchHost{after}
}

func with(m map[string]string, key, value string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// rootKey of the origin, for messages.
func (o observed) rootKey() types.NamespacedName { return o.origin.Root }
