package why

import (
	stdcmp "cmp"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/timeline"
)

const (
	clusterID  = "3f0c2a7e"
	memberNode = "kosmos-cluster38"
)

var now = metav1.NewTime(time.Date(2026, 11, 25, 5, 0, 0, 0, time.UTC))

func member(status metav1.ConditionStatus, reason, message string) v1alpha1.ClusterRegistration {
	r := v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "cluster38"}}
	r.Status.ClusterID = clusterID
	r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConnected, Status: status, Reason: reason, Message: message}}
	return r
}

// bindingTimedOut is the scheduler's message after the bind timeout.
const bindingTimedOut = `running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded`

func nominated(p *inspect.PodFacts) *inspect.PodFacts {
	p.Pod.Status.NominatedNodeName = memberNode
	return p
}

func claimCondition(kind corev1.PersistentVolumeClaimConditionType, reason, message string) corev1.PersistentVolumeClaimCondition {
	return corev1.PersistentVolumeClaimCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

func podCondition(kind corev1.PodConditionType, reason, message string) corev1.PodCondition {
	return corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

// pendingClaim returns a pending claim that a Pod waits for.
func pendingClaim(conditions ...corev1.PersistentVolumeClaimCondition) inspect.ClaimFacts {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root"}}
	c.Spec.StorageClassName = new("fast")
	c.Status.Phase, c.Status.Conditions = corev1.ClaimPending, conditions
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	return inspect.ClaimFacts{
		Key: types.NamespacedName{Namespace: "shop", Name: "data"}, Claim: c,
		Class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: v1alpha1.ProvisionerName, VolumeBindingMode: &mode},
	}
}

func boundClaim(conditions ...corev1.PersistentVolumeClaimCondition) inspect.ClaimFacts {
	c := pendingClaim(conditions...)
	c.Claim.Status.Phase, c.Claim.Spec.VolumeName = corev1.ClaimBound, "pvc-1"
	c.Claim.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: clusterID}
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", UID: "leaf"}}
	leaf.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-1"}
	c.Volume = hostpv.TranslateVolume(leaf, c.Claim, corev1.PersistentVolumeReclaimDelete, mirror.Member{Registration: "cluster38", ClusterID: clusterID, NodeName: memberNode, HostID: "host"})
	c.Volume.Name, c.Volume.Status.Phase = "pvc-1", corev1.VolumeBound
	return c
}

func with(c inspect.ClaimFacts, change func(*inspect.ClaimFacts)) inspect.ClaimFacts {
	change(&c)
	return c
}

func pod(phase corev1.PodPhase, node string, conditions ...corev1.PodCondition) *inspect.PodFacts {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "pod"}}
	p.Spec.NodeName, p.Status.Phase, p.Status.Conditions = node, phase, conditions
	return &inspect.PodFacts{Pod: p}
}

// scheduledBy returns a Pod that no scheduler has handled.
func scheduledBy(scheduler string) *inspect.PodFacts {
	p := pod(corev1.PodPending, "")
	p.Pod.Spec.SchedulerName = scheduler
	return p
}

func waitingContainer(p *inspect.PodFacts, reason, message string) *inspect.PodFacts {
	p.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	return p
}

// onNode adds a leaf Pod that is bound to a node in the member.
func onNode(p *inspect.PodFacts, node string) *inspect.PodFacts {
	p.Leaf, p.LeafKnown = p.Pod.DeepCopy(), true
	p.Leaf.Spec.NodeName = node
	p.Leaf.Annotations = map[string]string{v1alpha1.AnnotationRoot: "shop/app", v1alpha1.AnnotationRootUID: string(p.Pod.UID)}
	p.Leaf.Labels = map[string]string{v1alpha1.LabelHost: "host", v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}
	return p
}

// behind returns a Pod whose latest generation was not observed.
func behind(p *inspect.PodFacts) *inspect.PodFacts {
	p.Pod.Generation, p.Pod.Status.ObservedGeneration = 2, 1
	return p
}

func warned(p *inspect.PodFacts, ago time.Duration, reason, message string) *inspect.PodFacts {
	p.Events = append(p.Events, corev1.Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message, LastTimestamp: metav1.NewTime(now.Add(-ago))})
	return p
}

func TestOf(t *testing.T) {
	connected := member(metav1.ConditionTrue, v1alpha1.ReasonConnected, "")
	away := member(metav1.ConditionFalse, v1alpha1.ReasonUnreachable, "dial tcp 10.1.2.3:6443: i/o timeout. Check the network")
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	pushed := corev1.PodCondition{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonPushed}
	for name, tc := range map[string]struct {
		member *v1alpha1.ClusterRegistration // nil means that the member is connected
		pod    *inspect.PodFacts             // nil means that the subject is the claim
		claim  inspect.ClaimFacts            // without a name means that the Pod has no claim
		// want is the expected verdict, and reason is the expected reason of the first cause. says
		// lists substrings that the summary and the next step must contain.
		want   Verdict
		reason string
		says   []string
	}{
		"the node cannot hold a resize yet": {
			pod: pod(corev1.PodRunning, memberNode, pushed, ready, corev1.PodCondition{
				Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred, Message: "Node didn't have enough resource: cpu",
			}), claim: boundClaim(), want: Problem, reason: corev1.PodReasonDeferred,
			says: []string{"runs, but has a problem: Node didn't have enough resource: cpu", "Wait until the Pod's node"},
		},
		"the node can never hold a resize": {
			pod: pod(corev1.PodRunning, memberNode, pushed, ready, corev1.PodCondition{
				Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible, Message: "Node didn't have enough capacity: cpu",
			}), claim: boundClaim(), want: Problem, reason: corev1.PodReasonInfeasible, says: []string{"runs, but has a problem", "chooses another node"},
		},
		"a resize is in progress": {
			pod:   pod(corev1.PodRunning, memberNode, pushed, ready, corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue}),
			claim: boundClaim(), want: Well, says: []string{"runs in member"},
		},
		"a resize in progress fails": {
			pod: pod(corev1.PodRunning, memberNode, pushed, ready, corev1.PodCondition{
				Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, Reason: corev1.PodReasonError, Message: "memory usage is above the limit",
			}), claim: boundClaim(), want: Problem, reason: corev1.PodReasonError, says: []string{"memory usage is above the limit"},
		},
		"the member rejects a resize": {
			pod: warned(warned(behind(pod(corev1.PodRunning, memberNode, pushed, ready)), 2*time.Minute, v1alpha1.ReasonNotResized, "the Pod runs in member \"cluster38\" with its earlier resources, because the member does not let Xylem resize the Pod: exceeded quota. Ask the member's admin"),
				time.Minute, "Unhealthy", "a probe failed"),
			claim: boundClaim(), want: Problem, reason: v1alpha1.ReasonNotResized, says: []string{"runs, but has a problem", "exceeded quota", "Ask the member's admin"},
		},
		"the member rejected an earlier resize": {
			pod:   warned(pod(corev1.PodRunning, memberNode, pushed, ready), time.Minute, v1alpha1.ReasonNotResized, "exceeded quota"),
			claim: boundClaim(), want: Well, says: []string{"runs in member"},
		},
		"a running Pod": {
			pod: pod(corev1.PodRunning, memberNode, pushed, ready), claim: boundClaim(), want: Well, says: []string{`Pod "shop/app" runs in member "cluster38"`},
		},
		"a succeeded Pod": {pod: pod(corev1.PodSucceeded, memberNode, pushed), claim: boundClaim(), want: Well, says: []string{"has succeeded"}},
		"a bound claim":   {claim: boundClaim(), want: Well, says: []string{`Claim "shop/data" is bound to volume "pvc-1" in member "cluster38"`}},

		"no Pod uses the claim": {claim: pendingClaim(), want: Waiting, says: []string{"no Pod uses the claim yet", "Create a Pod"}},
		"the scheduler has not processed the Pod": {
			pod: pod(corev1.PodPending, ""), claim: pendingClaim(), want: Waiting, says: []string{"the scheduler has not chosen a node yet"},
		},
		"no scheduler has the Pod's schedulerName": {
			pod: scheduledBy("jupyterhub-user-scheduler"), claim: pendingClaim(), want: Waiting,
			says: []string{`no scheduler with the name "jupyterhub-user-scheduler" has handled the Pod yet`, "Check that such a scheduler runs"},
		},
		"a claim waits for a Pod whose schedulerName no scheduler has": {
			claim: with(pendingClaim(), func(c *inspect.ClaimFacts) { c.Pods = []inspect.PodFacts{*scheduledBy("jupyterhub-user-scheduler")} }), want: Waiting,
			says: []string{`the claim waits for Pod "app": no scheduler with the name "jupyterhub-user-scheduler"`, "Check that such a scheduler runs"},
		},
		"a claim is created again while a Pod runs that used an earlier one": {
			claim: with(pendingClaim(), func(c *inspect.ClaimFacts) {
				c.Pods = []inspect.PodFacts{*pod(corev1.PodRunning, memberNode, pushed, ready)}
			}), want: Waiting,
			says: []string{`Pod "app" already has node "kosmos-cluster38", so no scheduler selects a node for claim "data"`, "Delete the Pod"},
		},
		"the volume is being provisioned": {
			pod: pod(corev1.PodPending, ""), want: Waiting, says: []string{`the volume of claim "data" has not been provisioned in member "cluster38" yet`},
			claim: with(pendingClaim(), func(c *inspect.ClaimFacts) {
				c.Claim.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: clusterID}
			}),
		},
		"the Pod's earlier problem is solved": {
			pod:  pod(corev1.PodPending, memberNode, podCondition(v1alpha1.PodPushed, v1alpha1.ReasonVolumeAwaited, `waiting for the volume of claim "data" in member "cluster38"`)),
			want: Waiting, claim: boundClaim(), says: []string{`Xylem has not created the Pod in member "cluster38" yet`},
		},
		"the host lacked a Secret before, and the member rejects its copy": {
			pod: warned(pod(corev1.PodPending, memberNode, podCondition(v1alpha1.PodPushed, v1alpha1.ReasonReferenceAwaited, `waiting for copies in member "cluster38" (Secret "password")`)),
				time.Second, v1alpha1.ReasonRefusedByMember, `member "cluster38" does not allow Xylem to create Secret "password": no. Ask the member's admin to allow it`),
			want: Problem, reason: v1alpha1.ReasonRefusedByMember, claim: boundClaim(), says: []string{"does not allow", "Ask the member's admin to allow it"},
		},
		"the Pod's earlier problem is solved, but the member rejects its namespace": {
			pod: warned(warned(pod(corev1.PodPending, memberNode, podCondition(v1alpha1.PodPushed, v1alpha1.ReasonVolumeAwaited, `waiting for the volume of claim "data" in member "cluster38"`)),
				2*time.Second, v1alpha1.ReasonClaimNotBound, `no claim "data". Create it`),
				time.Second, v1alpha1.ReasonNamespaceRefused, `member "cluster38" rejects the creation of namespace "shop": no. Ask the member's admin to allow the namespace`),
			want: Problem, reason: v1alpha1.ReasonNamespaceRefused, claim: boundClaim(), says: []string{"rejects the creation", "Ask the member's admin to allow the namespace"},
		},
		"the containers are about to start": {pod: pod(corev1.PodPending, memberNode, pushed), claim: boundClaim(), want: Waiting, says: []string{`the containers have not started in member "cluster38" yet`}},

		"the Pod's claim does not exist": {
			pod:   pod(corev1.PodPending, "", podCondition(corev1.PodScheduled, corev1.PodReasonUnschedulable, `persistentvolumeclaim "data" not found`)),
			claim: with(pendingClaim(), func(c *inspect.ClaimFacts) { c.Claim, c.Class = nil, nil }),
			want:  Problem, reason: "NotFound", says: []string{`claim "shop/data" does not exist in the host`, "Create the claim"},
		},
		"the class does not exist": {
			pod: pod(corev1.PodPending, ""), claim: with(pendingClaim(), func(c *inspect.ClaimFacts) { c.Class, c.ClassAbsent = nil, true }),
			want: Problem, reason: "NotFound", says: []string{`the host has no StorageClass "fast"`, "Create the StorageClass"},
		},
		"a class of another provisioner": {
			claim: with(pendingClaim(), func(c *inspect.ClaimFacts) { c.Class.Provisioner = "ebs.csi.aws.com" }),
			want:  Problem, reason: "Foreign", says: []string{`provisioner "ebs.csi.aws.com"`},
		},
		"a toleration is missing": {
			pod: pod(corev1.PodPending, "", podCondition(corev1.PodScheduled, corev1.PodReasonUnschedulable, "0/3 nodes are available."),
				podCondition(v1alpha1.PodPlaceable, v1alpha1.ReasonTolerationMissing, `no member can run the Pod: member "a" has a taint. Add to the Pod's spec: tolerations: [x].`)),
			claim: pendingClaim(), want: Problem, reason: v1alpha1.ReasonTolerationMissing,
			says: []string{`Pod "shop/app" does not run: no member can run the Pod: member "a" has a taint`, "Add to the Pod's spec: tolerations: [x]."},
		},
		"the API server rejects the scheduler's choice": {
			pod: pod(corev1.PodPending, "", podCondition(corev1.PodScheduled, corev1.PodReasonSchedulerError,
				`running Bind plugin "DefaultBinder": pods "app" is forbidden: ValidatingAdmissionPolicy 'xylem-namespaces' with binding 'xylem-namespaces' denied request: member "a" does not admit namespace "shop": no. Use another namespace`)),
			claim: boundClaim(), want: Problem, reason: v1alpha1.ReasonNamespaceNotAdmitted, says: []string{`member "a" does not admit namespace "shop"`},
		},
		"the Pod's problem precedes the claim's, which only lists the members without its class": {
			pod: pod(corev1.PodPending, "", podCondition(corev1.PodScheduled, corev1.PodReasonUnschedulable, "0/3 nodes are available."),
				podCondition(v1alpha1.PodPlaceable, v1alpha1.ReasonTolerationMissing, "no member can run the Pod. Add to the Pod's spec: tolerations: [x].")),
			claim: pendingClaim(claimCondition(v1alpha1.ClaimPlaceable, v1alpha1.ReasonNotOffered, `only some members offer StorageClass "fast". Create the class in that member`)),
			want:  Problem, reason: v1alpha1.ReasonTolerationMissing, says: []string{"does not run: no member can run the Pod", "tolerations: [x]."},
		},
		"the scheduler's message precedes the claim's, which only lists the members without its class": {
			pod:   pod(corev1.PodPending, "", podCondition(corev1.PodScheduled, corev1.PodReasonUnschedulable, "0/3 nodes are available: insufficient cpu.")),
			claim: pendingClaim(claimCondition(v1alpha1.ClaimPlaceable, v1alpha1.ReasonNotOffered, `only some members offer StorageClass "fast". Create the class in that member`)),
			want:  Problem, reason: corev1.PodReasonUnschedulable, says: []string{"insufficient cpu"},
		},
		"the scheduler has chosen a node since its message": {
			pod: nominated(pod(corev1.PodPending, "", podCondition(corev1.PodScheduled, corev1.PodReasonUnschedulable, "0/3 nodes are available: insufficient cpu."))),
			claim: with(pendingClaim(), func(c *inspect.ClaimFacts) {
				c.Claim.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: clusterID, route.AnnSelectedNode: memberNode}
			}),
			want: Waiting, says: []string{`the volume of claim "data" has not been provisioned in member "cluster38" yet`},
		},
		"the scheduler no longer waits for the volume, and a queue in the member holds the Pod": {
			pod: warned(pod(corev1.PodPending, "", podCondition(corev1.PodScheduled, corev1.PodReasonSchedulerError, bindingTimedOut)),
				time.Second, v1alpha1.ReasonLeafPodGated, "the Pod waits in the member for the queue"),
			claim: pendingClaim(), want: Problem, reason: v1alpha1.ReasonLeafPodGated, says: []string{"waits in the member for the queue"},
		},
		"no member has the class, as the Pod and the claim report": {
			pod: pod(corev1.PodPending, "", podCondition(corev1.PodScheduled, corev1.PodReasonUnschedulable, "0/3 nodes are available."),
				podCondition(v1alpha1.PodPlaceable, v1alpha1.ReasonNotOffered, `no member can run the Pod: member "a" has no StorageClass "fast". Create the class in a member`)),
			claim: pendingClaim(claimCondition(v1alpha1.ClaimPlaceable, v1alpha1.ReasonNotOffered, `no connected member offers StorageClass "fast". Create the class in a member`)),
			want:  Problem, reason: v1alpha1.ReasonNotOffered, says: []string{`member "a" has no StorageClass "fast"`, "Create the class in a member."},
		},
		"the claim's problem precedes the Pod's": {
			pod:   pod(corev1.PodPending, "", podCondition(v1alpha1.PodPlaceable, v1alpha1.ReasonNoCapacity, "too small. Request less")),
			claim: pendingClaim(claimCondition(v1alpha1.ClaimPlaceable, v1alpha1.ReasonClassInvalid, `class "fast" has an unknown parameter. Correct it`)),
			want:  Problem, reason: v1alpha1.ReasonClassInvalid, says: []string{"unknown parameter", "Correct it."},
		},
		"the member is away": {
			member: &away, pod: pod(corev1.PodRunning, memberNode, pushed, podCondition(corev1.PodReady, v1alpha1.ReasonMemberAway, "the member is away")), claim: boundClaim(),
			want: Problem, reason: v1alpha1.ReasonMemberAway, says: []string{"runs, but is not ready"},
		},
		"a Pod without claims never started, and its member is away": {
			member: &away, pod: pod(corev1.PodPending, memberNode), want: Problem, reason: v1alpha1.ReasonUnreachable,
			says: []string{`Pod "shop/app" does not run: dial tcp 10.1.2.3:6443: i/o timeout`, "Check the network."},
		},
		"a Pod without claims, on a node of the host": {
			member: &away, pod: pod(corev1.PodPending, "plain"), want: Waiting, says: []string{`the kubelet of node "plain"`},
		},
		"a bound claim whose member is away": {
			member: &away, claim: boundClaim(), want: Problem, reason: v1alpha1.ReasonUnreachable, says: []string{"is bound, but not usable", "i/o timeout", "Check the network."},
		},
		"a provisioner's error, without a remedy in the message": {
			claim: pendingClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonOutOfSpace, "no space left")),
			want:  Problem, reason: v1alpha1.ReasonOutOfSpace, says: []string{"no space left", "free or add capacity"},
		},
		"the Pod's problem precedes the claim's condition that repeats it": {
			pod:   pod(corev1.PodPending, memberNode, podCondition(v1alpha1.PodPushed, v1alpha1.ReasonRefusedByMember, "the member does not let Xylem create the Pod. Change the Pod")),
			claim: pendingClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonPodRefused, `Pod "app": the member does not let Xyl…`)),
			want:  Problem, reason: v1alpha1.ReasonRefusedByMember, says: []string{"does not let Xylem create the Pod. Change the Pod."},
		},
		"the Pod's condition Pushed precedes its condition Placeable, which repeats it": {
			pod: pod(corev1.PodPending, "", podCondition(v1alpha1.PodPlaceable, v1alpha1.ReasonPodRefused, `claim "data": Pod "app": the member does not let Xylem create the Pod. Change the Pod`),
				podCondition(v1alpha1.PodPushed, v1alpha1.ReasonRefusedByMember, "the member does not let Xylem create the Pod. Change the Pod")),
			claim: pendingClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonPodRefused, `Pod "app": the member does not let Xylem create the Pod. Change the Pod`)),
			want:  Problem, reason: v1alpha1.ReasonRefusedByMember, says: []string{`does not run: the member does not let Xylem create the Pod. Change the Pod.`},
		},
		"the Pod's condition for all members precedes the claim's for one member": {
			pod:   pod(corev1.PodPending, "", podCondition(v1alpha1.PodPlaceable, v1alpha1.ReasonNamespaceNotAdmitted, `no member can run the Pod: member "a" does not admit it; member "b" does not admit it. Use another namespace`)),
			claim: pendingClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonNamespaceNotAdmitted, `member "a" does not admit it. Use another namespace`)),
			want:  Problem, reason: v1alpha1.ReasonNamespaceNotAdmitted, says: []string{`member "b" does not admit it`, "Use another namespace."},
		},
		"a claim requests a volume that does not exist": {
			claim: with(pendingClaim(), func(c *inspect.ClaimFacts) { c.Claim.Spec.VolumeName = "pvc-9" }),
			want:  Problem, reason: "NotFound", says: []string{`PersistentVolume "pvc-9"`, "does not exist in the host", "Restore the PersistentVolume"},
		},
		"a claim requests a volume that does not exist, and a member is away": {
			member: &away,
			claim:  with(pendingClaim(), func(c *inspect.ClaimFacts) { c.Claim.Spec.VolumeName = "pvc-9" }),
			want:   Problem, reason: "NotFound", says: []string{"not connected (cluster38)", "make that member reachable", "restore the PersistentVolume"},
		},
		"a claim requests a member's volume that does not match": {
			claim: with(pendingClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonVolumeMismatch, `volume "pvc-9" in member "cluster38" does not fit this claim: it has 1Gi`)),
				func(c *inspect.ClaimFacts) { c.Claim.Spec.VolumeName = "pvc-9" }),
			want: Problem, reason: v1alpha1.ReasonVolumeMismatch, says: []string{"it has 1Gi", "change the claim so that it matches"},
		},
		"the next step refers to another reason": {
			claim: pendingClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonPodRefused, `Pod "app": exceeded quota`)),
			want:  Problem, reason: v1alpha1.ReasonPodRefused, says: []string{inspect.ToDoOfXylem[v1alpha1.ReasonRefusedByMember]},
		},
		"the next step refers to the reason in the message": {
			claim: boundClaim(claimCondition(v1alpha1.ClaimPromise, v1alpha1.ReasonBroken, v1alpha1.ReasonOutOfSpace+": no space left")),
			want:  Problem, reason: v1alpha1.ReasonBroken, says: []string{inspect.ToDoOfXylem[v1alpha1.ReasonOutOfSpace]},
		},
		"a promise that is broken for the reason why the claim is not placed": {
			claim: boundClaim(claimCondition(v1alpha1.ClaimPromise, v1alpha1.ReasonBroken, v1alpha1.ReasonOutOfSpace+": no space left. Free some"),
				claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonOutOfSpace, "no space left. Free some")),
			want: Problem, reason: v1alpha1.ReasonOutOfSpace, says: []string{"is bound, but not usable: no space left. Free some"},
		},
		"an image that cannot be pulled": {
			pod: waitingContainer(pod(corev1.PodPending, memberNode, pushed), "ImagePullBackOff", `Back-off pulling image "mian"`), claim: boundClaim(),
			want: Problem, reason: "ImagePullBackOff", says: []string{`container "main" is waiting with reason ImagePullBackOff: Back-off pulling image "mian"`, "imagePullSecrets"},
		},
		"containers that are being created are not a problem": {
			pod: waitingContainer(pod(corev1.PodPending, memberNode, pushed), "ContainerCreating", ""), claim: boundClaim(), want: Waiting,
		},
		"a volume that cannot be attached": {
			pod:   waitingContainer(pod(corev1.PodPending, memberNode, pushed), "ContainerCreating", ""),
			claim: boundClaim(claimCondition(v1alpha1.ClaimAttached, v1alpha1.ReasonAttachFailed, `member "cluster38" cannot attach the volume to node "n1": the cable is loose. Ask the member's admin to check the driver`)),
			want:  Problem, reason: v1alpha1.ReasonAttachFailed, says: []string{`Pod "shop/app" does not run: member "cluster38" cannot attach the volume to node "n1": the cable is loose`, "Ask the member's admin to check the driver."},
		},
		"a volume that takes long to attach": {
			pod:   waitingContainer(pod(corev1.PodPending, memberNode, pushed), "ContainerCreating", ""),
			claim: boundClaim(claimCondition(v1alpha1.ClaimAttached, v1alpha1.ReasonAttaching, `member "cluster38" has been attaching the volume to node "n1" since noon`)),
			want:  Problem, reason: v1alpha1.ReasonAttaching, says: []string{"since noon", inspect.ToDoOfXylem[v1alpha1.ReasonAttaching]},
		},
		"an unused volume is not a problem": {
			claim: boundClaim(claimCondition(v1alpha1.ClaimAttached, v1alpha1.ReasonDetached, "not attached to any node")), want: Well,
		},
		"a volume that cannot be detached is not a problem of a running Pod": {
			pod: pod(corev1.PodRunning, memberNode, pushed, ready), want: Well,
			claim: boundClaim(claimCondition(v1alpha1.ClaimAttached, v1alpha1.ReasonDetachFailed, "busy")),
		},
		"a Pod with scheduling gates": {
			pod:   pod(corev1.PodPending, "", podCondition(corev1.PodScheduled, corev1.PodReasonSchedulingGated, "Scheduling is blocked due to non-empty scheduling gates")),
			claim: pendingClaim(), want: Problem, reason: corev1.PodReasonSchedulingGated, says: []string{"schedulingGates"},
		},
		"a failing readiness probe": {
			pod: pod(corev1.PodRunning, memberNode, pushed, podCondition(corev1.PodReady, "ContainersNotReady", "containers with unready status: [main]")), claim: boundClaim(),
			want: Problem, reason: "ContainersNotReady", says: []string{"runs, but is not ready: containers with unready status: [main]", "readiness probes"},
		},
		"the Pod's node in the member is not Ready": {
			pod: warned(pod(corev1.PodRunning, memberNode, pushed, podCondition(corev1.PodReady, "", "")), time.Second, "NodeNotReady", "Node is not ready"), claim: boundClaim(),
			want: Problem, reason: v1alpha1.ReasonNodeNotReady, says: []string{`Pod "shop/app" runs, but is not ready: the Pod's node in member "cluster38" is not Ready`, "Ask the member's admin"},
		},
		"the Pod's node in the member is not Ready, and the leaf Pod was read": {
			pod: onNode(pod(corev1.PodRunning, memberNode, pushed, podCondition(corev1.PodReady, "", "")), "worker-7"), claim: boundClaim(),
			want: Problem, reason: v1alpha1.ReasonNodeNotReady, says: []string{`runs, but is not ready: the Pod's node "worker-7" in member "cluster38" is not Ready`, "Ask the member's admin"},
		},
		"a bound claim whose Pod's node in the member is not Ready": {
			claim: with(boundClaim(), func(c *inspect.ClaimFacts) {
				c.Pods = []inspect.PodFacts{*pod(corev1.PodRunning, memberNode, pushed, podCondition(corev1.PodReady, "", ""))}
			}),
			want: Well,
		},
		"the Pod's node in the host is not Ready": {
			pod: pod(corev1.PodRunning, "plain", podCondition(corev1.PodReady, "", "")), claim: pendingClaim(),
			want: Problem, reason: v1alpha1.ReasonNodeNotReady, says: []string{`runs, but is not ready: the Pod's node "plain" is not Ready`, "kubelet"},
		},
		"a lost volume": {
			claim: with(boundClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonVolumeLost, "the member has no volume. Restore it")), func(c *inspect.ClaimFacts) { c.Claim.Status.Phase = corev1.ClaimLost }),
			want:  Problem, reason: v1alpha1.ReasonVolumeLost, says: []string{"has lost its volume", "Restore it."},
		},
		"a bound claim that cannot grow": {
			claim: boundClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonRefusedByMember, `member "cluster38" does not let Xylem grow the claim: exceeded quota. Change the claim`)),
			want:  Problem, reason: v1alpha1.ReasonRefusedByMember, says: []string{"is bound, but has a problem: ", "exceeded quota", "Change the claim."},
		},
		"a bound claim that Kubernetes cannot grow": {
			claim: boundClaim(corev1.PersistentVolumeClaimCondition{Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionTrue, Message: "the driver is out of space. Ask the admin"}),
			want:  Problem, says: []string{"is bound, but has a problem: the driver is out of space"},
		},
		"a bound claim whose volume is lost": {
			claim: boundClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonVolumeLost, "the member has no volume. Restore it")),
			want:  Problem, reason: v1alpha1.ReasonVolumeLost, says: []string{"is bound, but not usable: the member has no volume"},
		},
		"a Pod that no node fits, and whose claim cannot grow": {
			pod:   pod(corev1.PodPending, "", podCondition(corev1.PodScheduled, corev1.PodReasonUnschedulable, "0/3 nodes are available: insufficient cpu.")),
			claim: boundClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonRefusedByMember, "the member does not let Xylem grow the claim. Change the claim")),
			want:  Problem, reason: corev1.PodReasonUnschedulable, says: []string{"does not run: 0/3 nodes are available: insufficient cpu"},
		},
		"a Pod whose claim cannot grow, with a warning": {
			pod:   warned(pod(corev1.PodPending, memberNode, pushed), time.Second, "FailedMount", "the mount failed"),
			claim: boundClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonAttributesClassNotFound, "the member has no such class. Create it")),
			want:  Problem, reason: "FailedMount", says: []string{"the mount failed"},
		},
		"a Pod whose claim cannot grow, and which only waits": {
			pod:   pod(corev1.PodPending, memberNode, pushed),
			claim: boundClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonRefusedByMember, "the member does not let Xylem grow the claim. Change the claim")),
			want:  Waiting, reason: v1alpha1.ReasonRefusedByMember, says: []string{`the containers have not started in member "cluster38" yet`},
		},
		"a Pod whose bound claim has no counterpart, which the member rejects": {
			pod: pod(corev1.PodPending, memberNode),
			claim: with(boundClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonRefusedByMember, "the member does not let Xylem create the claim. Change the claim")),
				func(c *inspect.ClaimFacts) { c.LeafKnown = true }),
			want: Problem, reason: v1alpha1.ReasonRefusedByMember, says: []string{"does not run: the member does not let Xylem create the claim"},
		},
		"a Pod whose claim's volume is lost": {
			pod:   pod(corev1.PodPending, "", podCondition(corev1.PodScheduled, corev1.PodReasonUnschedulable, "0/3 nodes are available: insufficient cpu.")),
			claim: boundClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonVolumeLost, "the member has no volume. Restore it")),
			want:  Problem, reason: v1alpha1.ReasonVolumeLost, says: []string{"does not run: the member has no volume"},
		},
		"a claim is being deleted while a Pod uses it": {
			claim: with(boundClaim(), func(c *inspect.ClaimFacts) { c.Claim.DeletionTimestamp = &now }), want: Waiting, says: []string{"is still being deleted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := &inspect.Facts{Now: now.Time, Pod: tc.pod, Registrations: []v1alpha1.ClusterRegistration{connected}}
			if tc.claim.Key.Name != "" {
				facts.Claims = []inspect.ClaimFacts{tc.claim}
			}
			if tc.member != nil {
				facts.Registrations[0] = *tc.member
			}
			d := DiagnoseSubject(facts)
			if d.Verdict != tc.want {
				t.Errorf("got verdict %s, want %s: %s", d.Verdict, tc.want, d.Summary)
			}
			if tc.reason != "" && (len(d.Causes) == 0 || d.Causes[0].Reason != tc.reason) {
				t.Errorf("got causes %+v, want %s first", d.Causes, tc.reason)
			}
			for _, part := range tc.says {
				if text := d.Summary + ". " + d.ToDo; !strings.Contains(text, part) {
					t.Errorf("%q lacks %q", text, part)
				}
			}
			if d.Verdict == Problem && d.ToDo == "" {
				t.Error("the diagnosis is a problem without a next step")
			}
		})
	}
}

// TestProblemIsReportedOnce checks that conditions that quote a problem, even truncated, are not further
// causes.
func TestProblemIsReportedOnce(t *testing.T) {
	const problem = "the member does not let Xylem create the Pod: too many"
	d := DiagnoseSubject(&inspect.Facts{
		Now: now.Time, Registrations: []v1alpha1.ClusterRegistration{member(metav1.ConditionTrue, v1alpha1.ReasonConnected, "")},
		Pod: pod(corev1.PodPending, "", podCondition(v1alpha1.PodPushed, v1alpha1.ReasonRefusedByMember, problem+". Change the Pod"),
			podCondition(v1alpha1.PodPlaceable, v1alpha1.ReasonPodRefused, `claim "data": Pod "app": `+problem+". Change the Pod")),
		Claims: []inspect.ClaimFacts{
			pendingClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonNamespaceNotAdmitted, `Pod "app": the member does not let Xyl…`)),
			with(pendingClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonOutOfSpace, "no space")), func(c *inspect.ClaimFacts) { c.Claim.Name, c.Key.Name = "other", "other" }),
		},
	})
	var whats []string
	for _, c := range d.Causes {
		whats = append(whats, c.What)
	}
	if diff := cmp.Diff([]string{"no space", problem}, whats); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

// TestObstacles checks that messages of the scheduler's plugins have their own next steps.
func TestObstacles(t *testing.T) {
	for message, want := range map[string]string{
		"1 csi.xylem.io CSI driver is not installed on the node, 2 node(s) didn't match pod anti-affinity rules":                                                 "each member is one node",
		"1 node(s) didn't match pod topology spread constraints, 2 node(s) had untolerated taint(s)":                                                             "xylem.io/cluster",
		"3 node(s) didn't match pod topology spread constraints (missing required label)":                                                                        "spec.node.labels",
		"1 node(s) had untolerated taint(s), 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod": "ReadWriteOncePod",
		"1 node(s) didn't match Pod's node affinity/selector, 1 node(s) didn't match PersistentVolume's node affinity":                                           "kubectl xylem move",
		"PVC shop/app-scratch was not created for pod shop/app (pod is not owner)":                                                                               "belongs to another object",
		`waiting for ephemeral volume controller to create the persistentvolumeclaim "app-scratch"`:                                                              "quota",
		"2 Insufficient cpu":                 "reduce the Pod's requests",
		"2 node(s) have the wrong color":     inspect.ToDoOfKubernetes["Unschedulable"],
		"2 node(s) had untolerated taint(s)": "tolerations",
	} {
		d := DiagnoseSubject(&inspect.Facts{Now: now.Time, Pod: pod(corev1.PodPending, "", podCondition(corev1.PodScheduled, corev1.PodReasonUnschedulable, "0/3 nodes are available: "+message+"."))})
		if !strings.Contains(d.ToDo, want) || want != "reduce the Pod's requests" && strings.Contains(d.ToDo, "reduce the Pod's requests") {
			t.Errorf("%s: got next step %q, want one with %q", message, d.ToDo, want)
		}
	}
}

// TestTimes checks that the diagnosis of a claim includes its steps, and the diagnosis of a Pod
// does not include those of its claims.
func TestTimes(t *testing.T) {
	after := func(seconds int) metav1.Time { return metav1.NewTime(now.Add(time.Duration(seconds) * time.Second)) }
	mirrored := with(boundClaim(), func(c *inspect.ClaimFacts) {
		bound := after(3)
		c.Claim.CreationTimestamp, c.Volume.CreationTimestamp = after(0), after(1)
		c.Volume.Status.Phase, c.Volume.Status.LastPhaseTransitionTime = corev1.VolumeBound, &bound
		later, first := pod(corev1.PodPending, ""), pod(corev1.PodPending, memberNode, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: after(7)})
		later.Pod.CreationTimestamp, first.Pod.CreationTimestamp = after(60), after(0)
		c.Pods = []inspect.PodFacts{*later, *first}
	})
	want := []timeline.Step{{Name: timeline.Bound, Side: timeline.Host, Start: after(1), End: after(3)}, {Name: timeline.PodBound, Side: timeline.Host, Start: after(3), End: after(7)}}
	for name, tc := range map[string]struct {
		facts inspect.Facts
		want  []timeline.Step
	}{
		"a claim": {inspect.Facts{Claims: []inspect.ClaimFacts{mirrored}}, want},
		"a Pod":   {inspect.Facts{Pod: pod(corev1.PodPending, ""), Claims: []inspect.ClaimFacts{mirrored}}, nil},
		"another provisioner's claim": {inspect.Facts{Claims: []inspect.ClaimFacts{with(mirrored, func(c *inspect.ClaimFacts) {
			foreign := &corev1.PersistentVolume{ObjectMeta: c.Volume.ObjectMeta, Status: c.Volume.Status}
			foreign.Name, foreign.Annotations, foreign.Labels = "foreign", nil, nil
			c.Volume = foreign
		})}}, nil},
	} {
		tc.facts.Now, tc.facts.Registrations = now.Time, []v1alpha1.ClusterRegistration{member(metav1.ConditionTrue, v1alpha1.ReasonConnected, "")}
		if diff := cmp.Diff(tc.want, DiagnoseSubject(&tc.facts).Times); diff != "" {
			t.Errorf("%s: times (-want +got):\n%s", name, diff)
		}
	}
}

// TestReasons checks that why reports every reason on a waiting claim, and what to do unless no
// action is required.
func TestReasons(t *testing.T) {
	for reason, toDo := range inspect.ToDoOfXylem {
		d := DiagnoseSubject(&inspect.Facts{
			Now: now.Time, Registrations: []v1alpha1.ClusterRegistration{member(metav1.ConditionTrue, v1alpha1.ReasonConnected, "")},
			Claims: []inspect.ClaimFacts{pendingClaim(claimCondition(v1alpha1.ClaimPlaced, reason, "it happened"))},
		})
		if reason == v1alpha1.ReasonPromised {
			continue // it is a state, not a problem
		}
		if d.Verdict != Problem || d.Causes[0].Reason != reason || !strings.HasSuffix(d.Summary, "it happened") {
			t.Errorf("%s: got %q and causes %+v, want the reason first", reason, d.Summary, d.Causes)
		}
		if strings.HasPrefix(d.ToDo, "As for ") {
			t.Errorf("%s: the next step refers to another reason", reason)
		}
		if d.ToDo == "" && toDo != "Nothing." && toDo != "As for the reason at the beginning of the message." {
			t.Errorf("%s: has no next step, but REASONS.md has %q", reason, toDo)
		}
	}
}

// TestRepeated checks that the scheduler's event does not repeat its condition as another cause.
func TestRepeated(t *testing.T) {
	const message = "0/3 nodes are available: insufficient cpu."
	p := warned(pod(corev1.PodPending, "", podCondition(corev1.PodScheduled, corev1.PodReasonUnschedulable, message)), time.Second, "FailedScheduling", message)
	d := DiagnoseSubject(&inspect.Facts{Now: now.Time, Pod: p, Claims: []inspect.ClaimFacts{pendingClaim()}})
	if len(d.Causes) != 1 || d.Causes[0].Reason != corev1.PodReasonUnschedulable {
		t.Errorf("got causes %+v, want only the condition", d.Causes)
	}
}

// declaredReasons returns the reasons of each condition of a registration, from the page that is generated
// from api/v1alpha1.
func declaredReasons(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../REASONS.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile("(?m)^\\| `(\\w+)` \\|") // other objects' conditions have a prefix
	reasons := map[string][]string{}
	for _, section := range strings.Split(string(page), "\n## ") {
		title, _, _ := strings.Cut(section, "\n")
		of, _, _ := strings.Cut(strings.TrimPrefix(title, "Reasons of the "), " condition")
		for _, name := range declared.FindAllStringSubmatch(section, -1) {
			if title == "Conditions" {
				reasons[name[1]] = nil
			}
			for _, kind := range strings.Fields(strings.NewReplacer(",", "", " and ", " ").Replace(of)) {
				if _, isCondition := reasons[kind]; isCondition {
					reasons[kind] = append(reasons[kind], name[1])
				}
			}
		}
	}
	return reasons
}

// Conditions of a registration describe all of the member's objects, including those of other tenants.
// A cause must concern the subject, and its remedy must not change another tenant's objects.
func TestOtherTenants(t *testing.T) {
	const theirs = "PersistentVolumeClaim neighbour/work in the host: in use by Pod neighbour/done. Delete these Pods"
	placed := func(c *inspect.ClaimFacts) {
		c.Claim.Annotations = map[string]string{v1alpha1.AnnotationPlacedIn: clusterID}
	}
	deleted := func(c *inspect.ClaimFacts) { placed(c); c.Claim.DeletionTimestamp = &now }
	subjects := map[string]struct {
		pod   *inspect.PodFacts
		claim inspect.ClaimFacts
		waits string
	}{
		"a waiting Pod":         {pod(corev1.PodPending, ""), with(pendingClaim(), placed), `the volume of claim "data" has not been provisioned`},
		"a waiting claim":       {nil, with(pendingClaim(), placed), "no Pod uses the claim yet"},
		"a Pod's deleted claim": {pod(corev1.PodPending, ""), with(pendingClaim(), deleted), `the volume of claim "data" has not been provisioned`},
		"a deleted claim":       {nil, with(pendingClaim(), deleted), "no object reports why the deletion is not complete"},
	}
	type row struct {
		condition metav1.Condition
		// says is what the summary contains instead of what the subject waits for. Deleted subjects may
		// wait for the end of a suspension.
		says, saysOfDeleted string
	}
	rows := map[string]row{
		"suspended destruction": {condition: metav1.Condition{Type: v1alpha1.ConditionConnected, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonHostRestored, Message: "destruction is suspended"},
			saysOfDeleted: "destruction is suspended"},
	}
	declared := declaredReasons(t)
	for _, kind := range []string{v1alpha1.ConditionConnected, v1alpha1.ConditionNodeReady, v1alpha1.ConditionSynced} {
		if len(declared[kind]) == 0 {
			t.Fatalf("REASONS.md has no condition %s", kind)
		}
		delete(declared, kind) // its message describes the member, and names no claim or Pod
	}
	for kind, reasons := range declared {
		if len(reasons) == 0 {
			t.Errorf("REASONS.md has no reasons of condition %s", kind)
		}
		for _, reason := range reasons {
			for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
				r := row{condition: metav1.Condition{Type: kind, Status: status, Reason: reason, Message: theirs}}
				if kind == v1alpha1.ConditionReady {
					r.says, r.saysOfDeleted = `member "cluster38" is being deregistered`, `member "cluster38" is being deregistered`
				}
				rows[fmt.Sprintf("%s=%s %s", kind, status, reason)] = r
			}
		}
	}
	for name, tc := range rows {
		for of, subject := range subjects {
			t.Run(name+": "+of, func(t *testing.T) {
				r := member(metav1.ConditionTrue, v1alpha1.ReasonConnected, "")
				meta.SetStatusCondition(&r.Status.Conditions, tc.condition)
				if tc.condition.Type == v1alpha1.ConditionReady {
					r.DeletionTimestamp = &now
				}
				d := DiagnoseSubject(&inspect.Facts{Now: now.Time, Registrations: []v1alpha1.ClusterRegistration{r}, Pod: subject.pod, Claims: []inspect.ClaimFacts{subject.claim}})
				want := stdcmp.Or(tc.says, subject.waits)
				if subject.pod == nil && subject.claim.Claim.DeletionTimestamp != nil {
					want = stdcmp.Or(tc.saysOfDeleted, subject.waits)
				}
				if said := fmt.Sprintf("%s. %s. %+v", d.Summary, d.ToDo, d.Causes); !strings.Contains(d.Summary, want) || strings.Contains(said, "neighbour") || strings.Contains(said, "that the message lists") {
					t.Errorf("the diagnosis is %s, want %q, and nothing about another tenant's objects", said, want)
				}
			})
		}
	}
}

// Without a leader, other causes may be outdated, so this one comes first. It does not concern claims of
// other provisioners.
func TestLeaderless(t *testing.T) {
	const absent = `no manager is the leader: Lease "xylem-system/manager.xylem.io" was last renewed 5m0s ago`
	foreign := with(pendingClaim(), func(c *inspect.ClaimFacts) { c.Class.Provisioner = "disk.example.com" })
	for name, tc := range map[string]struct {
		claim      inspect.ClaimFacts
		leaderless string
		want       bool
	}{
		"a manager is the leader":        {claim: pendingClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonClassNotFound, "no class"))},
		"a claim that waits":             {claim: pendingClaim(), leaderless: absent, want: true},
		"a claim with an earlier report": {claim: pendingClaim(claimCondition(v1alpha1.ClaimPlaced, v1alpha1.ReasonClassNotFound, "no class")), leaderless: absent, want: true},
		"another provisioner's claim":    {claim: foreign, leaderless: absent},
		"a bound claim":                  {claim: boundClaim(), leaderless: absent},
	} {
		t.Run(name, func(t *testing.T) {
			d := DiagnoseSubject(&inspect.Facts{Now: now.Time, Claims: []inspect.ClaimFacts{tc.claim}, Registrations: []v1alpha1.ClusterRegistration{member(metav1.ConditionTrue, v1alpha1.ReasonConnected, "")}, Leaderless: tc.leaderless})
			got := len(d.Causes) > 0 && d.Causes[0].Reason == noLeader
			if got != tc.want {
				t.Errorf("the first cause is the leader: %t, want %t: %+v", got, tc.want, d.Causes)
			}
			if tc.want && (d.Verdict != Problem || !strings.Contains(d.Summary, absent) || d.ToDo == "") {
				t.Errorf("%s: %s. %s", d.Verdict, d.Summary, d.ToDo)
			}
		})
	}
}
