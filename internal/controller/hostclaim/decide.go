package hostclaim

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// namedAtMost bounds how many members a message names: an event's note has
// 1,024 bytes at most, and nobody reads the fiftieth.
const namedAtMost = 5

// selection is what the scheduler, or somebody else, selected for a claim.
type selection int

const (
	none selection = iota
	virtual
	// plain: the node is there, and no virtual one.
	plain
	// missing: there is no such node, and no registration that will make it.
	missing
)

// observed is all that is known of a claim.
type observed struct {
	claim    *corev1.PersistentVolumeClaim // nil: gone
	class    *storagev1.StorageClass       // nil: there is none of that name
	selected selection
	members  []index.Member
	// stuck: a Pod that uses the claim cannot be scheduled.
	stuck bool
	// source is what the claim is to be created from; nil if it has no data source. Only of such
	// a claim, pods are those that cannot be scheduled.
	source *placement.Source
	pods   []waitingPod
	now    time.Time
}

// decision is what to do: say something, or nothing; and whether to take the
// selected node off.
type decision struct {
	reason, note string // empty: nothing
	unselect     bool
	again        time.Duration // 0: when something changes
}

func say(reason, format string, args ...any) decision {
	return decision{reason: reason, note: fmt.Sprintf(format, args...)}
}

// waiting: nobody has bound the claim yet, or means to. One that names a volume
// waits for it, which is no good to a claim that something is to be promised to.
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
		return decision{}
	}
	var refusal *mirror.Refusal
	switch {
	case errors.As(err, &refusal):
		return say(refusal.Reason, "%s", refusal.Message)
	case err != nil:
		return say(v1alpha1.ReasonClassInvalid, "%v", err)
	case class.Provisioning == v1alpha1.ProvisioningPromise:
		return o.promised()
	case o.class.VolumeBindingMode == nil || *o.class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer:
		return say(v1alpha1.ReasonImmediate, "StorageClass %q binds immediately, before a member is chosen for the Pod. Use a class with volumeBindingMode %s; a class cannot change its mode, so create another one",
			o.class.Name, storagev1.VolumeBindingWaitForFirstConsumer)
	}
	if o.bySource() {
		return o.sourced()
	}
	return o.unsourced(class.PlacementTimeout)
}

// promised reports why nothing can be promised to a claim. Otherwise, the controller promise binds
// it at once, wherever members are.
func (o observed) promised() decision {
	refusal := hostpv.PromiseRefusal(o.claim, o.class)
	if refusal == nil && o.claim.Spec.VolumeName == "" {
		refusal = o.locate().Refusal
	}
	if refusal == nil {
		return decision{}
	}
	return say(refusal.Reason, "%s", refusal.Message)
}

// unsourced reports on a claim that the scheduler chooses the member for.
func (o observed) unsourced(timeout time.Duration) decision {
	switch o.selected {
	case plain:
		return unselected(o, "which belongs to this cluster: StorageClass %q has volumes in members only, whose nodes have the label %s=true",
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
	d := say(v1alpha1.ReasonSelectedNode, "the scheduler chose node %q, %s. Xylem removes the annotation selected-node, and the scheduler chooses again",
		o.claim.Annotations[route.AnnSelectedNode], fmt.Sprintf(format, args...))
	d.unselect = true
	return d
}

// unplaced reports why no member can be selected.
func unplaced(o observed) decision {
	if len(o.members) == 0 {
		return say(v1alpha1.ReasonNoMembers, "no member is registered: StorageClass %q has volumes in members only. Create a ClusterRegistration", o.class.Name)
	}
	var away, offering, lacking, refusing []string
	var refusal *mirror.Refusal
	connecting := 0
	for _, m := range o.members {
		answer := m.Answer(placement.Request{Namespace: o.claim.Namespace, Class: o.class, Source: o.kind()})
		_, offers := m.Largest[o.class.Name]
		switch {
		case answer.Refusal != nil && !answer.ByClass(): // whether it is connected or not
			refusing, refusal = append(refusing, m.Registration), cmp.Or(refusal, answer.Refusal)
		case !m.Connected && m.Connecting:
			connecting++
		case !m.Connected:
			away = append(away, m.Registration)
		case answer.ByClass():
			lacking = append(lacking, fmt.Sprintf("member %q is excluded by the class's allowedTopologies", m.Registration))
		case offers:
			offering = append(offering, m.Registration)
		default:
			lacking = append(lacking, fmt.Sprintf("member %q has no StorageClass %q (by %s)", m.Registration, answer.Class, answer.Rule))
		}
	}
	switch {
	case len(offering)+len(lacking)+connecting > 0:
	case refusal != nil: // the scheduler does not know about it, and would choose one of them
		return say(refusal.Reason, "%s%s%s", refusal.Message, others("the same is true of", refusing[1:]), others("not connected:", away))
	default:
		return say(v1alpha1.ReasonNoneConnected, "no registered member is connected (%s). `kubectl get clusterregistrations` shows the causes", some(away, ", "))
	}
	switch {
	case !o.stuck || len(lacking) == 0:
		return decision{}
	case len(offering) == 0:
		return say(v1alpha1.ReasonNotOffered, "no connected member offers StorageClass %q: %s. Create the class there, or map another one in the ClusterRegistration (spec.storage.classes)%s",
			o.class.Name, some(lacking, "; "), others("not connected:", away))
	}
	return say(v1alpha1.ReasonNotOffered, "a Pod of this claim cannot be scheduled, and only some members offer StorageClass %q: %s do; %s. If the Pod needs one that lacks it, create the class there, or map another in the ClusterRegistration (spec.storage.classes)%s",
		o.class.Name, some(offering, ", "), some(lacking, "; "), others("not connected:", away))
}

func others(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s %s", what, some(names, ", "))
}

// some names the first few.
func some(names []string, separator string) string {
	if len(names) <= namedAtMost {
		return strings.Join(names, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(names[:namedAtMost], separator), separator, len(names)-namedAtMost)
}
