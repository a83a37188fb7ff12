package observe

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
)

// observeAttempt reads the state of the member's attempt to provision a volume. It does so for a
// claim without a volume if this member is selected, and for a promise that it must fulfill.
func (o Observer) observeAttempt(ctx context.Context, s *volume.Observed, root *corev1.PersistentVolumeClaim) error {
	ofPromise := s.Promise != nil
	if !s.Alone() || s.Claim != nil && s.Claim.Spec.VolumeName != "" ||
		!ofPromise && (root.Spec.VolumeName != "" || !s.Selected()) {
		return nil
	}
	attempt := &s.Placement.Attempt
	own := leafClaim{s.Claim, s.Placement.LeafClass}
	if s.Claim != nil {
		events, err := index.EventsOf(ctx, o.Cache, s.Claim.Namespace, s.Claim.UID)
		if err != nil {
			return err
		}
		attempt.Provisioning = report.ProvisioningProblem(s.Claim, events, o.Member)
		if !own.waitsForNode() {
			attempt.Silent, attempt.SilentIn = report.Silence(s.Claim, events, o.Member, o.SilentAfter, o.Now())
		}
	}
	pods := slices.Clone(s.Placement.Pods)
	if !ofPromise {
		var err error
		if pods, err = index.PodsOfClaim(ctx, o.Host, client.ObjectKeyFromObject(root)); err != nil {
			return err
		}
		attempt.Unconsumed = own.unconsumed(pods)
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for i := range pods {
		if podstatus.Finished(&pods[i]) || pods[i].DeletionTimestamp != nil {
			continue
		}
		consumer, err := o.consumer(ctx, s, &pods[i])
		if err != nil {
			return err
		}
		attempt.Consumers = append(attempt.Consumers, consumer)
	}
	return nil
}

// ToPlace reports whether the host's scheduler may still place a Pod. Its leaf Pod is then the consumer
// for which the member's class waits.
func ToPlace(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && !podstatus.Finished(pod) && pod.DeletionTimestamp == nil
}

// unconsumed reports whether the claim waits for a consumer, and none of its root's Pods will become one.
func (c leafClaim) unconsumed(pods []corev1.Pod) bool {
	return c.claim != nil && c.waitsForNode() && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return ToPlace(&pod) })
}

func (o Observer) consumer(ctx context.Context, s *volume.Observed, pod *corev1.Pod) (volume.Consumer, error) {
	c := volume.Consumer{Name: pod.Name}
	leaf, origin, err := index.Leaf[corev1.Pod](ctx, o.Cache, o.HostID, client.ObjectKeyFromObject(pod))
	if err != nil {
		return c, err
	}
	if leaf != nil && origin.UID != pod.UID {
		leaf = nil
	}
	var others []leafClaim
	if c.Here, err = o.here(ctx, pod); err != nil {
		return c, err
	}
	for _, name := range podspec.ClaimNames(pod) {
		claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, o.Host, types.NamespacedName{Namespace: pod.Namespace, Name: name})
		if err != nil {
			return c, err
		}
		if s.Promise == nil && claim != nil && claim.Spec.VolumeName != "" {
			c.Bound = name
		}
		if claim == nil || claim.UID == s.Root.UID {
			continue
		}
		if o.apart(claim) {
			c.Apart = name
		}
		other, err := o.leafClaim(ctx, claim)
		if err != nil {
			return c, err
		}
		others = append(others, other)
	}
	if own := (leafClaim{s.Claim, s.Placement.LeafClass}); own.claim == nil || own.waitsForNode() {
		c.Problem = ofThisClaim(report.ConsumerProblem(pod, leaf, o.Member), others)
		o.awaitScheduler(&s.Placement.Attempt, leaf)
	}
	return c, nil
}

// awaitScheduler records whether the member's scheduler has processed a consumer's leaf Pod.
func (o Observer) awaitScheduler(attempt *volume.Attempt, leaf *corev1.Pod) {
	silent, in := report.SilentScheduler(leaf, o.Member, o.SilentAfter, o.Now())
	attempt.Silent = cmp.Or(attempt.Silent, silent)
	attempt.SilentIn = route.Sooner(attempt.SilentIn, in)
}

// apart reports whether an unbound claim must not be created here, because its data source is in
// another member, or the source's location is not recorded yet.
func (o Observer) apart(claim *corev1.PersistentVolumeClaim) bool {
	source, has := datasource.Of(claim)
	if !has || !source.Placed() || claim.Spec.VolumeName != "" {
		return false
	}
	record, recorded := datasource.RecordOf(claim)
	return !recorded || record.ClusterID != o.ClusterID
}

// leafClaim is a claim in the member and its class there; either may be nil.
type leafClaim struct {
	claim *corev1.PersistentVolumeClaim
	class *storagev1.StorageClass
}

// leafClaim reads the leaf claim of a root.
func (o Observer) leafClaim(ctx context.Context, root *corev1.PersistentVolumeClaim) (leafClaim, error) {
	leaf, origin, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, o.Cache, o.HostID, client.ObjectKeyFromObject(root))
	if err != nil || leaf == nil || origin.UID != root.UID {
		return leafClaim{}, err
	}
	class, err := index.Find[storagev1.StorageClass](ctx, o.Cache, index.Named(ptr.Deref(leaf.Spec.StorageClassName, "")))
	return leafClaim{leaf, class}, err
}

// ofThisClaim returns a consumer's problem, unless the reason may be that another claim of the
// Pod is still being provisioned. The member's scheduler finds no node for a Pod until its
// claims of Immediate classes are bound.
func ofThisClaim(problem *mirror.Refusal, others []leafClaim) *mirror.Refusal {
	if problem != nil && problem.Reason == v1alpha1.ReasonPodUnschedulable && slices.ContainsFunc(others, leafClaim.provisioning) {
		return nil
	}
	return problem
}

// provisioning reports whether a claim waits for the provisioner: it is not bound, and does not
// wait for a node.
func (c leafClaim) provisioning() bool {
	return c.claim != nil && c.claim.Spec.VolumeName == "" && !c.waitsForNode()
}

func (c leafClaim) waitsForNode() bool {
	return c.claim.Annotations[route.AnnSelectedNode] == "" && c.class != nil && hostclass.WaitsForConsumer(c.class)
}

// here reports whether the host's scheduler is about to bind a Pod to this member's node. If the
// scheduler does not set the nominated node, here reports whether the Pod fits this node.
func (o Observer) here(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if o.NominatedNode {
		return pod.Spec.NodeName == "" && pod.Status.NominatedNodeName == o.NodeName, nil
	}
	node, err := index.Find[corev1.Node](ctx, o.Host, index.Named(o.NodeName))
	return node != nil && pod.Spec.NodeName == "" && placement.Schedulable(pod, node), err
}
