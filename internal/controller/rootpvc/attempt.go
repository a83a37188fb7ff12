package rootpvc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// attempt is how an unbound claim does in the member that was chosen for it.
type attempt struct {
	// provisioning is what the leaf claim's events say against it.
	provisioning *mirror.Refusal
	// consumers of the claim that have not ended, by name.
	consumers []consumer
}

// consumer is a Pod that uses the claim.
type consumer struct {
	name string
	// problem is why its leaf does not run here.
	problem *mirror.Refusal
	// here: the scheduler is about to bind it to this member's node, or could be.
	here bool
	// bound is another claim of the Pod that has its volume: the Pod, and so this
	// claim, cannot go elsewhere.
	bound string
}

// failure is the evidence that the member cannot meet the claim; nil if there is
// none. That of the provisioner is worth more than the scheduler's, which may
// follow from it.
func (a attempt) failure(m mirror.Member) *mirror.Refusal {
	problem := a.provisioning
	for _, c := range a.consumers {
		if problem == nil {
			problem = c.problem
		}
	}
	if problem == nil {
		return nil
	}
	for _, c := range a.consumers {
		if c.bound != "" {
			return &mirror.Refusal{Reason: problem.Reason, Message: fmt.Sprintf("%s. No other member is tried: Pod %s uses claim %s too, which has its volume in member %s",
				problem.Message, c.name, c.bound, m.Registration)}
		}
	}
	return problem
}

// agreed reports whether the scheduler has chosen this member: for a claim that
// was steered here by us, selected-node does not say so.
func (a attempt) agreed(root *corev1.PersistentVolumeClaim, m mirror.Member) bool {
	return root.Annotations[v1alpha1.AnnotationSteeredTo] != m.NodeName ||
		slices.ContainsFunc(a.consumers, func(c consumer) bool { return c.here })
}

// observeAttempt looks up what tells how the claim does here, while it has no volume:
// one for which this member is chosen, or a promise that is to be kept here.
func (r *reconciler) observeAttempt(ctx context.Context, o *observed) error {
	if o.leaf != nil && o.leaf.Spec.VolumeName != "" ||
		o.promise == nil && (o.root.Spec.VolumeName != "" || o.root.Annotations[route.AnnSelectedNode] != r.NodeName) {
		return nil
	}
	if o.leaf != nil && o.origin.UID == o.root.UID {
		events, err := index.EventsOf(ctx, r.Cache, o.leaf.Namespace, o.leaf.UID)
		if err != nil {
			return err
		}
		o.attempt.provisioning = report.ProvisioningProblem(o.leaf, events, r.Member)
	}
	pods := o.landed
	if o.promise == nil {
		var err error
		if pods, err = index.PodsOfClaim(ctx, r.Host, client.ObjectKeyFromObject(o.root)); err != nil {
			return err
		}
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for i := range pods {
		if podstatus.Finished(&pods[i]) || pods[i].DeletionTimestamp != nil {
			continue
		}
		c, err := r.consumer(ctx, o, &pods[i])
		if err != nil {
			return err
		}
		o.attempt.consumers = append(o.attempt.consumers, c)
	}
	return nil
}

func (r *reconciler) consumer(ctx context.Context, o *observed, pod *corev1.Pod) (consumer, error) {
	c := consumer{name: pod.Name}
	leaf, origin, err := index.Leaf[corev1.Pod](ctx, r.Cache, r.HostID, client.ObjectKeyFromObject(pod))
	if err != nil {
		return c, err
	}
	if leaf != nil && origin.UID != pod.UID {
		leaf = nil
	}
	var others []leafClaim
	if c.here, err = r.here(ctx, pod); err != nil {
		return c, err
	}
	for _, name := range podspec.ClaimNames(pod) {
		claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Host, types.NamespacedName{Namespace: pod.Namespace, Name: name})
		if err != nil {
			return c, err
		}
		if o.promise == nil && claim != nil && claim.Spec.VolumeName != "" {
			c.bound = name
		}
		if claim == nil || claim.UID == o.root.UID {
			continue
		}
		other, err := r.leafClaim(ctx, claim)
		if err != nil {
			return c, err
		}
		others = append(others, other)
	}
	if o.waitsForConsumer() {
		c.problem = ofThisClaim(report.ConsumerProblem(pod, leaf, r.Member), others)
	}
	return c, nil
}

// leafClaim is a claim in the member and its class there; either may be nil.
type leafClaim struct {
	claim *corev1.PersistentVolumeClaim
	class *storagev1.StorageClass
}

// leafClaim looks up what stands for a root claim in the member.
func (r *reconciler) leafClaim(ctx context.Context, root *corev1.PersistentVolumeClaim) (leafClaim, error) {
	leaf, origin, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, client.ObjectKeyFromObject(root))
	if err != nil || leaf == nil || origin.UID != root.UID {
		return leafClaim{}, err
	}
	class, err := index.Find[storagev1.StorageClass](ctx, r.Cache, index.Named(ptr.Deref(leaf.Spec.StorageClassName, "")))
	return leafClaim{leaf, class}, err
}

// ofThisClaim is a consumer's problem, unless it may be no more than that another
// claim of the Pod is still being provisioned: the member's scheduler finds no node
// for a Pod until its claims of Immediate classes are bound.
func ofThisClaim(problem *mirror.Refusal, others []leafClaim) *mirror.Refusal {
	if problem != nil && problem.Reason == v1alpha1.ReasonPodUnschedulable && slices.ContainsFunc(others, leafClaim.provisioning) {
		return nil
	}
	return problem
}

// provisioning reports whether a claim is the provisioner's part: it is not bound,
// and waits for no node.
func (c leafClaim) provisioning() bool {
	return c.claim != nil && c.claim.Spec.VolumeName == "" && !c.waitsForNode()
}

func (c leafClaim) waitsForNode() bool {
	return c.claim.Annotations[route.AnnSelectedNode] == "" && c.class != nil &&
		ptr.Deref(c.class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer
}

// waitsForConsumer reports whether the leaf claim, made or still to be made, waits
// for the member's scheduler. Where that has chosen a node, it is the provisioner's.
func (o observed) waitsForConsumer() bool {
	return o.leaf == nil || leafClaim{o.leaf, o.leafClass}.waitsForNode()
}

// here reports whether the host's scheduler is about to bind a Pod to this member's
// node; of one that does not say so, whether it may.
func (r *reconciler) here(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if r.NominatedNode {
		return pod.Spec.NodeName == "" && pod.Status.NominatedNodeName == r.NodeName, nil
	}
	node, err := index.Find[corev1.Node](ctx, r.Host, index.Named(r.NodeName))
	return node != nil && pod.Spec.NodeName == "" && placement.Schedulable(pod, node), err
}

// ofWarning wakes the claim that a provisioner in the member could not meet, while
// it is not bound there.
func (r *reconciler) ofWarning(ctx context.Context, obj client.Object) []reconcile.Request {
	event, ok := obj.(*corev1.Event)
	if !ok || !report.SaysProvisioningFailed(event) {
		return nil
	}
	return r.unboundLeaf(ctx, types.NamespacedName{Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name})
}

// ofLeafPod wakes the claims that a leaf Pod waits for.
func (r *reconciler) ofLeafPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName != "" {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range podspec.ClaimNames(pod) {
		requests = append(requests, r.unboundLeaf(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name})...)
	}
	return requests
}

// unboundLeaf is the request of a claim of the member that is ours and not bound.
func (r *reconciler) unboundLeaf(ctx context.Context, key types.NamespacedName) []reconcile.Request {
	leaf, _, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look up the claim that something in the member is about", "leaf", key)
	}
	if leaf == nil || leaf.Spec.VolumeName != "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}
