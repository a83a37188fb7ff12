package rootpvc

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
)

// observed is all that a decision is taken on; nil is absent.
type observed struct {
	member mirror.Member
	rules  placement.Rules
	// node is the member's in the host.
	node *corev1.Node
	// root claim, and its class in the host.
	root  *corev1.PersistentVolumeClaim
	class *storagev1.StorageClass
	// leaf claim of ours by that name, for whichever root its origin says.
	leaf   *corev1.PersistentVolumeClaim
	origin mirror.Origin
	// leafClass is the leaf claim's class in the member.
	leafClass *storagev1.StorageClass
	// volume is the snapshot of the volume that the claim is decided on, if there is one.
	volume *volume.Snapshot
	// leafVolume is the PV that the leaf claim names, or, if it names none, the one that was
	// made for it.
	leafVolume *corev1.PersistentVolume
	// mirror is the host PV of this member that was made for the root, which is not bound yet.
	mirror *corev1.PersistentVolume
	// restores says when the two clusters were last restored.
	restores fencing.Restores
	// lost: the root is bound to a promise, its own or one that it uses again, and the
	// host has no PV of that name.
	lost bool
	// boundAway: the PV that the root is bound to was seen, is not this member's, and does
	// not record the leaf claim's volume.
	boundAway bool
	// promise is the host PV that the root is bound to, if it is a promise without a
	// disk; landed are the root's Pods in this member. class is the promise's own
	// record.
	promise *corev1.PersistentVolume
	landed  []corev1.Pod
	// asked is the leaf PV that the root asks for by name, made for an earlier claim
	// of its name; no PV of the host stands for it, or has that name.
	asked *corev1.PersistentVolume
	// rivals are other members that have a volume of that name for such a claim.
	rivals []string
	// tenant is the UID of the root's namespace.
	tenant types.UID
	// placedName is the registration of the other member that the root is placed in.
	placedName string
	// namespace in the member, and the names of its storage classes.
	namespace     *corev1.Namespace
	memberClasses []string
	// attempt: how the claim does here while it has no volume.
	attempt attempt
}

// decision is what to do next. The set is closed.
type decision interface{ decision() }

type (
	// nothing to do; problem, if any, is what the user has to know meanwhile.
	nothing struct{ problem *mirror.Refusal }
	// abstain: another controller takes the next step, whose event comes here.
	abstain struct{}
	// doubt: the member has a volume for a claim that was never placed there, as far as it
	// is known. The problem is reported once a live read shows the same.
	doubt struct{ problem *mirror.Refusal }
	// inUse: another claim of the member may have the claim's volume. The problem is reported
	// once a live read shows that claim.
	inUse struct{ problem *mirror.Refusal }
	// place records that the claim's volume is to be in this member.
	place struct{}
	// unselect takes the scheduler's choice back, so that it chooses anew.
	unselect struct{ problem *mirror.Refusal }
	// create the leaf claim.
	create struct{ leaf *corev1.PersistentVolumeClaim }
	// grow the leaf claim's request.
	grow struct{ to resource.Quantity }
	// nudge makes the member's PV controller look at a leaf claim again whose volume
	// points at it by now: it queues such a claim only at its next resync.
	nudge struct{}
	// withdraw the leaf claim, which is not bound. If rootGone, the root's
	// absence is to be proven first.
	withdraw struct{ rootGone bool }
	// destroyUnmirrored deletes a leaf claim whose volume the host never knew,
	// once root and mirror are proven absent.
	destroyUnmirrored struct{}
	// deleteRetained deletes a leaf claim whose volume stands at Retain and that no
	// host PV stands for, once the root is proven absent: the data stay, an orphan.
	deleteRetained struct{}
	// deleteLeft deletes a leaf claim that names another claim's volume, and does not have it,
	// once the root is proven absent, and that the data stay.
	deleteLeft struct{}
	// deleteLost deletes a leaf claim that has lost its volume, or names one that went before
	// they were bound, once root and volume are proven absent, and no PV of the host stands
	// for it: nothing is left of it.
	deleteLost struct{}
	// adopt makes the leaf claim that holds the volume asked for the root's own.
	adopt struct{}
	// unplace takes placed-in off, once the member is proven empty of the claim.
	unplace struct{}
)

func (nothing) decision()           {}
func (abstain) decision()           {}
func (doubt) decision()             {}
func (inUse) decision()             {}
func (place) decision()             {}
func (unselect) decision()          {}
func (create) decision()            {}
func (grow) decision()              {}
func (nudge) decision()             {}
func (withdraw) decision()          {}
func (destroyUnmirrored) decision() {}
func (deleteRetained) decision()    {}
func (deleteLeft) decision()        {}
func (deleteLost) decision()        {}
func (adopt) decision()             {}
func (unplace) decision()           {}

func refuse(reason, format string, args ...any) nothing {
	return nothing{&mirror.Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// chosen reports whether a claim names the member: by the scheduler's choice, or
// by its placement.
func chosen(claim *corev1.PersistentVolumeClaim, m mirror.Member) bool {
	return claim.Annotations[route.AnnSelectedNode] == m.NodeName || claim.Annotations[v1alpha1.AnnotationPlacedIn] == m.ClusterID
}

// speaks reports whether the root's Placed condition is this member's to keep:
// of an unbound claim, the member that the scheduler chose; else the one that it
// is placed in. If two members kept it, they would write for ever (I5).
func (o observed) speaks() bool {
	if o.root == nil {
		return false
	}
	selected, placed := o.root.Annotations[route.AnnSelectedNode], o.root.Annotations[v1alpha1.AnnotationPlacedIn]
	switch {
	case o.root.Spec.VolumeName == "" && selected != "":
		return selected == o.member.NodeName
	case placed != "":
		return placed == o.member.ClusterID
	case o.root.Spec.VolumeName != "":
		return o.asked != nil && len(o.rivals) == 0
	}
	return true // nobody has it: what was said of it is taken back
}

func decide(o observed) decision {
	switch {
	case o.volume != nil:
		return o.planned(volume.Next(o.volume))
	case o.root == nil, o.leaf != nil && o.leaf.DeletionTimestamp != nil:
		return nothing{} // the end of a leaf claim enqueues it
	case o.promise != nil:
		return o.promised()
	case o.root.Spec.VolumeName != "":
		return o.boundElsewhere()
	case terminating(o.mirror):
		return o.terminated(fmt.Sprintf("PersistentVolume %q", o.mirror.Name))
	default:
		return o.unbound()
	}
}

// planned is the decision that a plan says.
func (o observed) planned(plan volume.Plan) decision {
	switch {
	case plan.Owner != volume.RootPVC && (plan.Step == volume.None || plan.Phase == volume.Idle):
		return nothing{} // nothing that the claim waits for
	case plan.Owner != volume.RootPVC:
		return abstain{}
	case plan.Step == volume.DeleteLeft:
		return deleteLeft{}
	case o.handedOn() && (plan.Step != volume.None || !o.planIsForRoot()):
		return nothing{} // the end of the leaf claim enqueues it
	}
	return o.step(plan)
}

// planIsForRoot reports whether the volume is the root's, and no other claim's.
func (o observed) planIsForRoot() bool {
	return o.root != nil && o.volume.Root != nil && o.volume.Root.UID == o.root.UID
}

// step is the decision by which a plan's step of this controller is taken.
func (o observed) step(plan volume.Plan) decision {
	switch plan.Step {
	case volume.Place:
		return place{}
	case volume.CreateClaim:
		return o.createFor(o.volume.Name)
	case volume.Nudge:
		return nudge{}
	case volume.Grow:
		to, _ := pvc.Growth(o.root, o.leaf)
		return grow{to}
	case volume.Withdraw:
		return withdraw{rootGone: o.volume.Root == nil}
	case volume.DestroyUnmirrored:
		return destroyUnmirrored{}
	case volume.DeleteRetained:
		return deleteRetained{}
	case volume.DeleteLost:
		return deleteLost{}
	case volume.AdoptClaim:
		if o.asked == nil {
			return nothing{} // a PV of that name has come since, whose event enqueues it
		}
		return o.readopt(true)
	default: // a wait, or another controller's step
	}
	if plan.Phase == volume.InUse {
		return inUse{plan.Tell}
	}
	return nothing{plan.Tell}
}

// handedOn reports whether the volume of a stale leaf claim is another claim's by now, for
// which the plan is, and which may have another name.
func (o observed) handedOn() bool {
	return o.leaf != nil && (o.root == nil || o.root.UID != o.origin.UID) && (o.volume.Claim == nil || o.volume.Claim.UID != o.leaf.UID)
}

// refresh root and leaf claim from the snapshot, which was read after them.
func (o *observed) refresh() {
	if o.volume == nil || o.handedOn() {
		return
	}
	if o.volume.Root != nil {
		o.root = o.volume.Root
	}
	if o.volume.Claim != nil {
		o.leaf, o.origin = o.volume.Claim, o.volume.Origin
	}
}

// readopt gives the root the volume that it asks for, if it may have it. Of one
// that was released, leaf_pv makes the host PV once the claim is placed.
func (o observed) readopt(kept bool) decision {
	placed := o.root.Annotations[v1alpha1.AnnotationPlacedIn]
	switch {
	case !hostclass.Own(o.class):
		return nothing{} // none of our classes
	case placed != "" && placed != o.member.ClusterID:
		return o.elsewhere(placed)
	case len(o.rivals) > 0:
		return refuse(v1alpha1.ReasonAmbiguousVolume, "volume %s is in member %s and in %s as well, each made for an earlier claim of this name: have all but the right one removed there",
			o.asked.Name, o.member.Registration, strings.Join(o.rivals, ", "))
	}
	if refusal := o.there().Adoptable(o.root, o.class, o.tenant, o.asked, kept); refusal != nil {
		return nothing{refusal}
	}
	switch {
	case placed == "":
		return place{}
	case kept:
		return adopt{}
	}
	return nothing{}
}

// leavesVolume reports whether a volume may be being made for the leaf claim that
// outlives it: its class retains, and its provisioner has been asked.
func (o observed) leavesVolume() bool {
	if o.leafClass == nil {
		return true // not known any more
	}
	asked := o.leaf.Annotations[route.AnnSelectedNode] != "" ||
		ptr.Deref(o.leafClass.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingImmediate
	return asked && ptr.Deref(o.leafClass.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete) == corev1.PersistentVolumeReclaimRetain
}

// boundElsewhere: the root is bound, or meant to be, to a volume that is not
// this member's. What is bound here is a surplus: reported, never used.
func (o observed) boundElsewhere() decision {
	switch {
	case o.leaf == nil && o.asked != nil:
		return o.readopt(false)
	case o.leaf == nil && o.boundAway && o.root.Annotations[v1alpha1.AnnotationPlacedIn] == o.member.ClusterID:
		return unplace{} // the member that has the volume waits for it
	case o.leaf == nil:
		return nothing{}
	case o.leaf.Spec.VolumeName == "":
		return withdraw{}
	case o.lost, o.root.Spec.VolumeName == hostpv.PromiseName(o.root.UID) && !o.boundAway:
		return nothing{} // its promise is not seen yet, or lost, and is made again
	case o.root.Spec.VolumeName == o.leaf.Spec.VolumeName,
		o.root.Spec.VolumeName == hostpv.Name(o.leaf.Spec.VolumeName, o.member.ClusterID, true):
		return nothing{} // about to be bound to its mirror, or its mirror is lost
	}
	if !o.boundAway {
		return refuse(v1alpha1.ReasonVolumeMismatch, "the claim names volume %q, and its counterpart in member %q is bound to volume %q: Xylem cannot tell which one holds the claim's data. "+
			"Check PersistentVolume %q in the host, and keep both until you know", o.root.Spec.VolumeName, o.member.Registration, o.leaf.Spec.VolumeName, o.root.Spec.VolumeName)
	}
	return refuse(v1alpha1.ReasonSurplusVolume, "member %q has volume %q for the claim beside the one that is used: the claim is bound to volume %q elsewhere. "+
		"Xylem keeps its data. If nobody needs them, delete claim \"%s/%s\" in that member",
		o.member.Registration, o.leaf.Spec.VolumeName, o.root.Spec.VolumeName, o.leaf.Namespace, o.leaf.Name)
}

// unplaced decides on the leaf claim of a root that has no placement. Xylem records the
// placement first, so either the host was restored from an older state, or somebody in the
// member created the claim with our stamp on it, to have the root there (I8).
func (o observed) unplaced() decision {
	volume := o.leaf.Spec.VolumeName
	switch {
	case volume != "" && o.rules.Allows(volume), !o.restores.HostUnconfirmed && o.leaf.CreationTimestamp.Time.Before(o.restores.Host):
		return place{}
	case volume == "":
		return withdraw{} // nothing was made, and the claim goes its way from the start
	case o.restores.HostUnconfirmed:
		return doubt(refuse(v1alpha1.ReasonAdoptionUnconfirmed, "member %q has volume %q for this claim, which is placed nowhere: the host was restored, perhaps from before the claim was placed. "+
			"Confirm the restore as ClusterRegistration %q asks, and Xylem uses the volume if it is older than that", o.member.Registration, volume, o.member.Registration))
	}
	return doubt(refuse(v1alpha1.ReasonAdoptionUnconfirmed, "member %q has volume %q for this claim, which Xylem never placed there: somebody in that member may have created it. "+
		"Xylem does not use it. If it is the claim's own, an admin can allow it: `kubectl annotate clusterregistration %s %s=%s`. Else the member's admin has to remove claim \"%s/%s\" there",
		o.member.Registration, volume, o.member.Registration, v1alpha1.AnnotationAdopt, volume, o.leaf.Namespace, o.leaf.Name))
}

// unmade: nothing is made for the claim yet, here or elsewhere, as far as it is known.
func (o observed) unmade() bool { return o.root.Spec.VolumeName == "" && o.leaf == nil }

// unasked: the scheduler has chosen a node, and the PV controller, which acts on that
// as we do, has not asked for the volume yet.
func (o observed) unasked() bool {
	_, asked := o.root.Annotations[volumehelpers.AnnStorageProvisioner]
	return o.unmade() && o.root.Annotations[route.AnnSelectedNode] != "" && !asked
}

// fresh: unmade, and new to all members: a claim that was steered has waited in one before.
func (o observed) fresh() bool {
	return o.unmade() && o.root.Annotations[v1alpha1.AnnotationSteeredTo] == ""
}

func (o observed) unbound() decision {
	placed := o.root.Annotations[v1alpha1.AnnotationPlacedIn]
	if o.root.Annotations[route.AnnSelectedNode] != o.member.NodeName {
		return o.unwanted(placed) // whatever has become of the class
	}
	switch {
	case !hostclass.Own(o.class):
		return nothing{}
	case o.root.DeletionTimestamp != nil:
		return nothing{} // a Pod still holds it; its end wakes us
	case placed != "" && placed != o.member.ClusterID:
		return o.elsewhere(placed)
	case o.leaf != nil && placed == "":
		if o.restores.HostUnconfirmed {
			return place{} // the scheduler asks for it here, whether the host forgot that or not
		}
		return o.unplaced()
	case o.leaf != nil:
		return o.made()
	case placed == "" && !o.attempt.agreed(o.root, o.member):
		return nothing{} // steered here by us: the scheduler has still to agree
	}
	if !hostclass.Mirrors(o.class) ||
		ptr.Deref(o.class.VolumeBindingMode, storagev1.VolumeBindingImmediate) != storagev1.VolumeBindingWaitForFirstConsumer {
		return nothing{} // host_claim says why
	}
	next := o.createFor("")
	if _, ready := next.(create); ready && placed == "" {
		return place{}
	}
	return next
}

// unwanted: the scheduler has not chosen this member, or no longer does. A leaf
// that is bound already stays: its volume is mirrored, and the scheduler goes by
// that (I3: there is to be one).
func (o observed) unwanted(placed string) decision {
	switch {
	case o.leaf == nil && placed == o.member.ClusterID:
		return unplace{}
	case o.leaf != nil && o.leaf.Spec.VolumeName != "" && placed == "":
		return o.unplaced()
	case o.leaf != nil && o.leaf.Spec.VolumeName == "":
		return withdraw{}
	case terminating(o.leafVolume):
		return o.made()
	}
	return nothing{}
}

// terminating reports whether somebody has deleted a PV. While it is Bound, Kubernetes keeps it;
// the PV controller binds no other claim to it.
func terminating(pv *corev1.PersistentVolume) bool { return pv != nil && pv.DeletionTimestamp != nil }

func (o observed) terminated(what string) decision {
	return refuse(v1alpha1.ReasonVolumeTerminating, "%s, which was made for the claim, is being deleted, so that the claim cannot be bound to it any more. Delete the claim and create it again", what)
}

// made: the leaf claim is there. What comes next is the member's part, unless it fails.
func (o observed) made() decision {
	if terminating(o.leafVolume) {
		return o.terminated(fmt.Sprintf("volume %q in member %q", o.leafVolume.Name, o.member.Registration))
	}
	return nothing{o.attempt.failure(o.member)}
}

func (o observed) elsewhere(placed string) decision {
	return nothing{volume.PlacedElsewhere(placed, o.placedName, o.member)}
}

// there is the member as a place for the claim.
func (o observed) there() placement.Member {
	return placement.Member{Member: o.member, Rules: o.rules, Node: o.node, Inside: &placement.Inside{Classes: o.memberClasses, Namespace: o.namespace}}
}

// createFor makes the leaf claim, for a volume if one is named, or says why not.
func (o observed) createFor(volume string) decision {
	q := placement.Request{Namespace: o.root.Namespace}
	if volume == "" {
		q.Class = o.class
	}
	answer := o.there().Answer(q)
	name := answer.Class
	if volume != "" {
		name = o.volume.Leaf.Spec.StorageClassName
	}
	switch {
	case answer.ByClass() && o.promise == nil: // of a promise, the Pod is bound, and no scheduler is asked again
		return unselect{answer.Refusal}
	case answer.Refusal != nil:
		return nothing{answer.Refusal}
	}
	leaf, err := pvc.Translate(o.root, &name, o.member)
	if err != nil {
		refusal := &mirror.Refusal{}
		errors.As(err, &refusal)
		return nothing{refusal}
	}
	if answer.Waits {
		return nothing{} // leaf_namespace makes it, and its watch wakes us
	}
	if volume != "" {
		leaf = pvc.WithVolume(leaf, volume)
		// A volume that is still to grow binds at its present size, and grows then.
		if capacity := o.volume.Leaf.Spec.Capacity[corev1.ResourceStorage]; leaf.Spec.Resources.Requests.Storage().Cmp(capacity) > 0 {
			leaf.Spec.Resources.Requests[corev1.ResourceStorage] = capacity
		}
	}
	return create{leaf}
}
