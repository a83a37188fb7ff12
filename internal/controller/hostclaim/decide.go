package hostclaim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index/registered"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/placement/copysource"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/text"
)

// selection classifies the node that is selected for a claim.
type selection int

const (
	none selection = iota
	virtual
	// plain means that the node exists, but is not a virtual node.
	plain
	// missing means that the node does not exist, and no registration has this node name.
	missing
)

// observed is the input of decide.
type observed struct {
	claim    *corev1.PersistentVolumeClaim // nil if it does not exist
	class    *storagev1.StorageClass       // nil if it does not exist
	selected selection
	// members are the members in which the claim can be placed. leaving are the others.
	members, leaving []registered.Member
	// has reports whether a member has a class.
	has func(registration, class string) bool
	// namespace is the claim's namespace.
	namespace placement.Namespace
	// lacksVolume reports whether the claim names a volume that does not exist in the host.
	lacksVolume bool
	// stuck reports whether a Pod that uses the claim cannot be scheduled.
	stuck bool
	// source is the claim's data source, or nil. pods are the claim's Pods that cannot be scheduled;
	// they are set only if the claim has a data source.
	source *copysource.Source
	pods   []waitingPod
	// populated reports whether a populator of the host handles the kind of the source. It is read only if
	// no member does.
	populated bool
	now       time.Time
}

// decision contains what to report, if anything, and whether to remove the selected node.
type decision struct {
	reason, note string // empty if there is nothing to report
	unselect     bool
	again        time.Duration // 0 to wait for the next event
}

func eventWith(reason, format string, args ...any) decision {
	return decision{reason: reason, note: fmt.Sprintf(format, args...)}
}

// waiting reports whether the claim is neither bound nor being bound. A pending claim that names a
// volume counts too: it waits for that volume, but gets no promise from a class that provisions
// promises.
func waiting(claim *corev1.PersistentVolumeClaim) bool {
	named := claim.Spec.VolumeName
	return claim.DeletionTimestamp == nil && hostclass.NameOf(claim) != "" &&
		(named == "" || claim.Status.Phase == corev1.ClaimPending && named != hostpv.PromiseName(claim.UID))
}

func decide(o observed) decision {
	if o.claim == nil || !waiting(o.claim) || !hostclass.Own(o.class) {
		return decision{}
	}
	class, err := hostclass.Read(o.class)
	if o.claim.Spec.VolumeName != "" && class.Provisioning != v1alpha1.ProvisioningPromise {
		return o.volumeNotFound()
	}
	var refusal *mirror.Refusal
	switch {
	case errors.As(err, &refusal):
		return eventWith(refusal.Reason, "%s", refusal.Message)
	case err != nil:
		return eventWith(v1alpha1.ReasonClassInvalid, "%v", err)
	case class.Provisioning == v1alpha1.ProvisioningPromise:
		return o.promised()
	case !hostclass.WaitsForConsumer(o.class):
		return eventWith(v1alpha1.ReasonImmediate, "StorageClass %q binds immediately, before a member is chosen for the Pod. Use a class with volumeBindingMode %s. The mode of a class is immutable, so create another class",
			o.class.Name, storagev1.VolumeBindingWaitForFirstConsumer)
	}
	if o.bySource() {
		return o.sourced()
	}
	d := o.unsourced(class.PlacementTimeout)
	if d.reason == v1alpha1.ReasonDataSourceUnsupported && o.populated {
		return decision{} // the populator binds the claim, to a volume that it fills
	}
	if d.reason == "" && o.selected == none && hostclass.NamedOnlyByAnnotation(o.claim) {
		return eventWith(v1alpha1.ReasonClassInvalid, "only the annotation %s names StorageClass %q, which makes kube-scheduler 1.37 panic. Run `%s`",
			corev1.BetaStorageClassAnnotation, o.class.Name, hostclass.NameInField(o.claim.Namespace, o.claim.Name, o.class.Name))
	}
	return d
}

const (
	// missingAfter is how old a claim must be before host_claim reports that its volume does not exist.
	// leaf_pv may be about to create the host PV of an orphan that the claim requests.
	missingAfter = 30 * time.Second
	// missingAgain is how often host_claim checks whether the volume exists that a Pending claim names,
	// because the volume's creation and deletion do not enqueue the claim.
	missingAgain = time.Minute
)

// volumeNotFound reports that the volume that the claim names does not exist. Once the claim is placed,
// or if a member has an orphan that the claim may not adopt, root_pvc reports instead.
func (o observed) volumeNotFound() decision {
	all := slices.Concat(o.members, o.leaving)
	connecting := slices.ContainsFunc(all, func(m registered.Member) bool { return m.Connecting })
	rest := o.claim.CreationTimestamp.Add(missingAfter).Sub(o.now)
	switch {
	case !o.lacksVolume:
		return decision{again: missingAgain}
	case o.claim.Annotations[v1alpha1.AnnotationPlacedIn] != "":
		return placedAway(o)
	case report.ClaimProblem(o.claim, v1alpha1.ClaimPlaced) != nil:
		return decision{}
	case rest > 0:
		return decision{again: rest}
	case connecting && !o.reportsNotFound(): // the member may have the orphan
		return decision{again: missingAfter}
	}
	var away []string
	for _, m := range all {
		if lost(m) {
			away = append(away, m.Registration)
		}
	}
	d := eventWith(v1alpha1.ReasonVolumeNotFound, "PersistentVolume %q, which the claim names, does not exist. If a member has an orphan with this name (status.orphans of its ClusterRegistration), the claim's events report why the claim is not bound to it. "+
		"Otherwise, create the PersistentVolume, or delete the claim, and create it again with another spec.volumeName, or without one to get a new volume%s",
		o.claim.Spec.VolumeName, others("members that are not connected may have such an orphan:", away))
	d.again = missingAgain
	return d
}

// reportsNotFound reports whether the claim already shows that its volume does not exist.
func (o observed) reportsNotFound() bool {
	shown := report.ClaimProblem(o.claim, v1alpha1.ClaimPlaceable)
	return shown != nil && shown.Reason == v1alpha1.ReasonVolumeNotFound
}

// promised reports why the claim cannot be bound to a promise. If nothing prevents that, the
// controller promise binds it immediately, even if no member is connected.
func (o observed) promised() decision {
	refusal := hostpv.PromiseRefusal(o.claim, o.class)
	if refusal == nil && o.claim.Spec.VolumeName == "" {
		refusal = o.locate().Refusal
	}
	if refusal == nil {
		return decision{}
	}
	return eventWith(refusal.Reason, "%s", refusal.Message)
}

// unsourced returns the decision for a claim whose member the scheduler chooses.
func (o observed) unsourced(timeout time.Duration) decision {
	switch o.selected {
	case plain:
		return unselected(o, "which belongs to the host: volumes of StorageClass %q exist only in members, whose nodes have the label %s=true",
			o.class.Name, v1alpha1.LabelVirtualNode)
	case missing:
		return unselected(o, "which does not exist")
	case virtual:
		return away(o, timeout)
	case none:
	}
	return unplaced(o)
}

func unselected(o observed, format string, args ...any) decision {
	d := eventWith(v1alpha1.ReasonSelectedNode, "node %q was selected for the claim, %s. Xylem removes the annotation selected-node, so that another node can be selected",
		o.claim.Annotations[route.AnnSelectedNode], fmt.Sprintf(format, args...))
	d.unselect = true
	return d
}

// unplaced reports why no member can be selected.
func unplaced(o observed) decision {
	if len(o.members) == 0 {
		return o.withoutMembers()
	}
	var away, offering, lacking, unpublished, refusing, rules []string
	var refusal *mirror.Refusal
	connecting := 0
	for _, m := range o.members {
		answer := m.Answer(placement.Request{Namespace: o.namespace, Class: o.class, Source: o.kind()})
		_, offers := m.Largest[o.class.Name]
		switch {
		case answer.Refusal != nil && !answer.ByClass(): // whether or not it is connected
			refusing, refusal = append(refusing, m.Registration), cmp.Or(refusal, answer.Refusal)
			if rule := m.Excludes(o.namespace); rule != "" && answer.Refusal.Reason == v1alpha1.ReasonNamespaceNotAdmitted {
				rules = append(rules, fmt.Sprintf("member %q does not admit namespace %q: %s", m.Registration, o.namespace.Name, rule))
			}
		case !m.Connected && m.Connecting:
			connecting++
		case !m.Connected:
			away = append(away, m.Registration)
		case answer.ByClass():
			lacking = append(lacking, fmt.Sprintf("member %q is excluded by the class's allowedTopologies", m.Registration))
		case offers:
			offering = append(offering, m.Registration)
		case o.has(m.Registration, answer.Class):
			unpublished = append(unpublished, m.Registration)
		default:
			lacking = append(lacking, fmt.Sprintf("member %q has no StorageClass %q (by %s)", m.Registration, answer.Class, answer.Rule))
		}
	}
	switch {
	case len(offering)+len(lacking)+len(unpublished)+connecting > 0:
	case len(rules) > 1 && len(rules) == len(refusing): // each member rejects the namespace by its own rule
		return eventWith(refusal.Reason, "no member can provision the claim: %s. Use another namespace, or ask an admin to change spec.namespaces of a ClusterRegistration, or the namespace's labels%s",
			some(rules, "; "), others("not connected:", away))
	case refusal != nil: // the scheduler does not observe the refusal, and would choose one of these members
		return eventWith(refusal.Reason, "%s%s%s", refusal.Message, others("the same applies to", refusing[1:]), others("not connected:", away))
	default:
		return eventWith(v1alpha1.ReasonNoneConnected, "no registered member is connected (%s). `kubectl get clusterregistrations` shows the causes", some(away, ", "))
	}
	return partlyOffered(o, offering, lacking, unpublished, away)
}

// withoutMembers reports that no member can get claims.
func (o observed) withoutMembers() decision {
	if len(o.leaving) > 0 {
		return eventWith(v1alpha1.ReasonMemberLeaving, "every registered member is being deregistered: volumes of StorageClass %q exist only in members. Register a member", o.class.Name)
	}
	return eventWith(v1alpha1.ReasonNoMembers, "no member is registered: volumes of StorageClass %q exist only in members. Create a ClusterRegistration", o.class.Name)
}

// partlyOffered reports which members lack the class, or its capacity in the host, if this may keep
// a Pod that uses the claim from being scheduled.
func partlyOffered(o observed, offering, lacking, unpublished, away []string) decision {
	switch {
	case !o.stuck || len(lacking)+len(unpublished) == 0:
		return decision{}
	case len(lacking) == 0:
		return eventWith(v1alpha1.ReasonCapacityUnpublished, "a Pod that uses this claim cannot be scheduled, and the host has no CSIStorageCapacity of StorageClass %q for some members that have the class (%s). If this does not change soon, see the events of these ClusterRegistrations%s%s",
			o.class.Name, some(unpublished, ", "), others("offered by", offering), others("not connected:", away))
	}
	for _, name := range unpublished {
		lacking = append(lacking, fmt.Sprintf("member %q has the class, but no CSIStorageCapacity in the host (see the events of its ClusterRegistration)", name))
	}
	if len(offering) == 0 {
		return eventWith(v1alpha1.ReasonNotOffered, "no connected member offers StorageClass %q: %s. Create the class in a member, or map %[1]q to another class in the ClusterRegistration (spec.storage.classes)%[3]s",
			o.class.Name, some(lacking, "; "), others("not connected:", away))
	}
	return eventWith(v1alpha1.ReasonNotOffered, "a Pod that uses this claim cannot be scheduled, and only some members offer StorageClass %q (%s): %s. If the Pod needs a member without the class, create the class in that member, or map %[1]q to another class in the ClusterRegistration (spec.storage.classes)%[4]s",
		o.class.Name, some(offering, ", "), some(lacking, "; "), others("not connected:", away))
}

func others(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s %s", what, some(names, ", "))
}

// some joins the first few names, and appends the number of the rest.
func some(names []string, separator string) string {
	return text.FirstNames(names, text.NamesListed, separator)
}
