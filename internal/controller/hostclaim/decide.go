package hostclaim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/wording"
)

// selectedNodeKind classifies the node that is selected for a claim.
type selectedNodeKind int

const (
	noNode selectedNodeKind = iota
	virtualNode
	// hostNode means that the node exists, but is not a virtual node.
	hostNode
	// missingNode means that the node does not exist, and no registration has this node name.
	missingNode
)

// observed is the input of decide.
type observed struct {
	claim        *corev1.PersistentVolumeClaim // nil if it does not exist
	class        *storagev1.StorageClass       // nil if it does not exist
	selectedNode selectedNodeKind
	// members are the members in which the claim can be placed. leaving are the others.
	members, leaving []placement.Candidate
	// memberHasClass reports whether a member has a class.
	memberHasClass func(registration, class string) bool
	// namespace is the claim's namespace.
	namespace placement.Namespace
	// lacksVolume reports whether the claim names a volume that does not exist in the host.
	lacksVolume bool
	// podUnschedulable reports whether a Pod that uses the claim cannot be scheduled.
	podUnschedulable bool
	// source is the claim's data source, or nil. pods are the claim's Pods that cannot be scheduled;
	// they are set only if the claim has a data source.
	source *placement.CopySource
	pods   []waitingPod
	// handledByPopulator reports whether a populator of the host handles the kind of the source. It is read only if
	// no member does.
	handledByPopulator bool
	now                time.Time
}

// decision contains what to report, if anything, and whether to remove the selected node.
type decision struct {
	reason, note string // empty if there is nothing to report
	unselect     bool
	again        time.Duration // 0 to wait for the next event
}

func problemDecision(reason, format string, args ...any) decision {
	return decision{reason: reason, note: fmt.Sprintf(format, args...)}
}

// waitsForVolume reports whether the claim is neither bound nor being bound. A pending claim that names a
// volume counts too: it waits for that volume, but gets no promise from a class that provisions
// promises.
func waitsForVolume(claim *corev1.PersistentVolumeClaim) bool {
	named := claim.Spec.VolumeName
	return claim.DeletionTimestamp == nil && hostpv.ClassNameOf(claim) != "" &&
		(named == "" || claim.Status.Phase == corev1.ClaimPending && named != hostpv.PromiseName(claim.UID))
}

func decideForClaim(o observed) decision {
	if o.claim == nil || !waitsForVolume(o.claim) || !hostpv.IsXylemClass(o.class) {
		return decision{}
	}
	class, err := hostpv.ReadClassParameters(o.class)
	if o.claim.Spec.VolumeName != "" && class.Provisioning != v1alpha1.ProvisioningPromise {
		return o.decideVolumeNotFound()
	}
	var refusal *mirror.Refusal
	switch {
	case errors.As(err, &refusal):
		return problemDecision(refusal.Reason, "%s", refusal.Message)
	case err != nil:
		return problemDecision(v1alpha1.ReasonClassInvalid, "%v", err)
	case class.Provisioning == v1alpha1.ProvisioningPromise:
		return o.decideForPromise()
	case !hostpv.WaitsForConsumer(o.class):
		return problemDecision(v1alpha1.ReasonImmediate, "StorageClass %q binds immediately, before a member is chosen for the Pod. Use a class with volumeBindingMode %s. The mode of a class is immutable, so create another class",
			o.class.Name, storagev1.VolumeBindingWaitForFirstConsumer)
	}
	if o.sourceDeterminesMember() {
		return o.decideBySource()
	}
	d := o.decideBySelection(class.PlacementTimeout)
	if d.reason == v1alpha1.ReasonDataSourceUnsupported && o.handledByPopulator {
		return decision{} // the populator binds the claim, to a volume that it fills
	}
	if d.reason == "" && o.selectedNode == noNode && hostpv.IsClassNamedOnlyByAnnotation(o.claim) {
		return problemDecision(v1alpha1.ReasonClassInvalid, "only the annotation %s names StorageClass %q, which makes kube-scheduler 1.37 panic. Run `%s`",
			corev1.BetaStorageClassAnnotation, o.class.Name, hostpv.SetClassFieldCommand(o.claim.Namespace, o.claim.Name, o.class.Name))
	}
	return d
}

const (
	// missingVolumeDelay is how old a claim must be before host_claim reports that its volume does not exist.
	// leaf_pv may be about to create the host PV of an orphan that the claim requests.
	missingVolumeDelay = 30 * time.Second
	// missingVolumeInterval is how often host_claim checks whether the volume exists that a Pending claim names,
	// because the volume's creation and deletion do not enqueue the claim.
	missingVolumeInterval = time.Minute
)

// decideVolumeNotFound reports that the volume that the claim names does not exist. Once the claim is placed,
// or if a member has an orphan that the claim may not adopt, root_pvc reports instead.
func (o observed) decideVolumeNotFound() decision {
	all := slices.Concat(o.members, o.leaving)
	connecting := slices.ContainsFunc(all, func(m placement.Candidate) bool { return m.Connecting })
	rest := o.claim.CreationTimestamp.Add(missingVolumeDelay).Sub(o.now)
	switch {
	case !o.lacksVolume:
		return decision{again: missingVolumeInterval}
	case o.claim.Annotations[v1alpha1.AnnotationPlacedIn] != "":
		return reportPlacedAway(o)
	case report.ClaimConditionProblem(o.claim, v1alpha1.ClaimPlaced) != nil:
		return decision{}
	case rest > 0:
		return decision{again: rest}
	case connecting && !o.showsVolumeNotFound(): // the member may have the orphan
		return decision{again: missingVolumeDelay}
	}
	var away []string
	for _, m := range all {
		if m.Disconnected() {
			away = append(away, m.Registration)
		}
	}
	d := problemDecision(v1alpha1.ReasonVolumeNotFound, "PersistentVolume %q, which the claim names, does not exist. If a member has an orphan with this name (status.orphans of its ClusterRegistration), the claim's events report why the claim is not bound to it. "+
		"Otherwise, create the PersistentVolume, or delete the claim, and create it again with another spec.volumeName, or without one to get a new volume%s",
		o.claim.Spec.VolumeName, describeNotConnected("members that are not connected may have such an orphan:", away))
	d.again = missingVolumeInterval
	return d
}

// showsVolumeNotFound reports whether the claim already shows that its volume does not exist.
func (o observed) showsVolumeNotFound() bool {
	shown := report.ClaimConditionProblem(o.claim, v1alpha1.ClaimPlaceable)
	return shown != nil && shown.Reason == v1alpha1.ReasonVolumeNotFound
}

// decideForPromise reports why the claim cannot be bound to a promise. If nothing prevents that, the
// controller promise binds it immediately, even if no member is connected.
func (o observed) decideForPromise() decision {
	refusal := hostpv.PromiseRefusal(o.claim, o.class)
	if refusal == nil && o.claim.Spec.VolumeName == "" {
		refusal = o.locateSource().Refusal
	}
	if refusal == nil {
		return decision{}
	}
	return problemDecision(refusal.Reason, "%s", refusal.Message)
}

// decideBySelection returns the decision for a claim whose member the scheduler chooses.
func (o observed) decideBySelection(timeout time.Duration) decision {
	switch o.selectedNode {
	case hostNode:
		return decideUnselect(o, "which belongs to the host: volumes of StorageClass %q exist only in members, whose nodes have the label %s=true",
			o.class.Name, v1alpha1.LabelVirtualNode)
	case missingNode:
		return decideUnselect(o, "which does not exist")
	case virtualNode:
		return decideForSelectedMember(o, timeout)
	case noNode:
	}
	return decideUnplaced(o)
}

func decideUnselect(o observed, format string, args ...any) decision {
	d := problemDecision(v1alpha1.ReasonSelectedNode, "node %q was selected for the claim, %s. Xylem removes the annotation selected-node, so that another node can be selected",
		o.claim.Annotations[route.AnnSelectedNode], fmt.Sprintf(format, args...))
	d.unselect = true
	return d
}

// placementQuery asks which members can create the claim. Any capacity suffices, because it may grow.
func (o observed) placementQuery() placement.Query {
	need := placement.ClaimNeed{Class: o.class}
	if o.source != nil {
		need.Source = &o.source.Of
	}
	return placement.Query{Namespace: o.namespace, Claims: []placement.ClaimNeed{need}, HasClass: o.memberHasClass}
}

// decideUnplaced reports why no member can be selected.
func decideUnplaced(o observed) decision {
	if len(o.members) == 0 {
		return o.decideWithoutMembers()
	}
	var away, offering []string
	var refusing, lacking []placement.Verdict
	connecting := false
	for _, v := range placement.OneOfEachMember(placement.Survey(o.placementQuery(), o.members)) {
		switch {
		case v.RuleObstacle != nil && !v.ExcludedByClass(): // whether or not it is connected
			refusing = append(refusing, v)
		case v.Disconnected():
			away = append(away, v.Registration)
		case !v.Connected:
			connecting = true
		case v.Obstacle() == nil:
			offering = append(offering, v.Registration)
		default:
			lacking = append(lacking, v)
		}
	}
	switch {
	case len(offering)+len(lacking) > 0:
		return o.decidePartlyOffered(offering, lacking, away)
	case connecting:
		return decision{}
	case len(refusing) == 1:
		return problemDecision(refusing[0].Obstacle().Reason, "%s%s", refusing[0].Refusal().Message, describeNotConnected("not connected:", away))
	case len(refusing) > 1: // the scheduler does not observe the rules, and would choose one of these members
		return obstaclesDecision(refusing[0].Obstacle().Reason, "no member can provision the claim", refusing, away)
	}
	return problemDecision(v1alpha1.ReasonNoneConnected, "no registered member is connected (%s). `kubectl get clusterregistrations` shows the causes", joinFirstNames(away, ", "))
}

// decideWithoutMembers reports that no member can get claims.
func (o observed) decideWithoutMembers() decision {
	if len(o.leaving) > 0 {
		return problemDecision(v1alpha1.ReasonMemberLeaving, "every registered member is being deregistered: volumes of StorageClass %q exist only in members. Register a member", o.class.Name)
	}
	return problemDecision(v1alpha1.ReasonNoMembers, "no member is registered: volumes of StorageClass %q exist only in members. Create a ClusterRegistration", o.class.Name)
}

// decidePartlyOffered reports which members lack the class, or its capacity in the host, if this may keep
// a Pod that uses the claim from being scheduled.
func (o observed) decidePartlyOffered(offering []string, lacking []placement.Verdict, away []string) decision {
	if !o.podUnschedulable || len(lacking) == 0 {
		return decision{}
	}
	reason := v1alpha1.ReasonCapacityUnpublished
	if slices.ContainsFunc(lacking, func(v placement.Verdict) bool { return v.Obstacle().Reason != reason }) {
		reason = v1alpha1.ReasonNotOffered
	}
	what := fmt.Sprintf("no connected member offers StorageClass %q", o.class.Name)
	if len(offering) > 0 {
		what = fmt.Sprintf("a Pod that uses this claim cannot be scheduled, and only some members offer StorageClass %q (%s)", o.class.Name, joinFirstNames(offering, ", "))
	}
	return obstaclesDecision(reason, what, lacking, away)
}

// obstaclesDecision reports the members' obstacles, what to do about them, and which members are away.
func obstaclesDecision(reason, what string, verdicts []placement.Verdict, away []string) decision {
	return problemDecision(reason, "%s: %s. %s%s", what, joinFirstNames(placement.Causes(verdicts), "; "), strings.Join(placement.Remedies(verdicts), ". "), describeNotConnected("not connected:", away))
}

// describeNotConnected appends the names of the members that are not connected, if any.
func describeNotConnected(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s %s", what, joinFirstNames(names, ", "))
}

func joinFirstNames(names []string, separator string) string {
	return wording.FirstNames(names, wording.NamesListed, separator)
}
