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
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
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
	if !s.ClaimWithoutVolume() || s.LeafClaim != nil && s.LeafClaim.Spec.VolumeName != "" ||
		!ofPromise && (root.Spec.VolumeName != "" || !s.MemberSelected()) {
		return nil
	}
	attempt := &s.Placement.Attempt
	own := classedClaim{s.LeafClaim, s.Placement.LeafClass}
	if s.LeafClaim != nil {
		events, err := index.LeafEventsOf(ctx, o.Cache, s.LeafClaim.Namespace, s.LeafClaim.UID)
		if err != nil {
			return err
		}
		attempt.ProvisioningProblem = report.ProvisioningProblem(s.LeafClaim, events, o.Member)
		if !own.waitsForNode() {
			attempt.SilenceProblem, attempt.CheckSilenceIn = report.ProvisioningSilence(s.LeafClaim, events, o.Member, o.SilentAfter, o.Now())
		}
	}
	pods := slices.Clone(s.Placement.PromisePods)
	if !ofPromise {
		var err error
		if pods, err = index.PodsOfClaim(ctx, o.Host, client.ObjectKeyFromObject(root)); err != nil {
			return err
		}
		attempt.LacksConsumer = own.lacksConsumer(pods)
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for i := range pods {
		if podstatus.IsPodFinished(&pods[i]) || pods[i].DeletionTimestamp != nil {
			continue
		}
		consumer, err := o.observeConsumer(ctx, s, &pods[i])
		if err != nil {
			return err
		}
		attempt.Consumers = append(attempt.Consumers, consumer)
	}
	return nil
}

// SchedulerMayPlace reports whether the host's scheduler may still place a Pod. Its leaf Pod is then the consumer
// for which the member's class waits.
func SchedulerMayPlace(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && !podstatus.IsPodFinished(pod) && pod.DeletionTimestamp == nil
}

// lacksConsumer reports whether the claim waits for a consumer, and none of its root's Pods will become one.
func (c classedClaim) lacksConsumer(pods []corev1.Pod) bool {
	return c.claim != nil && c.waitsForNode() && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return SchedulerMayPlace(&pod) })
}

func (o Observer) observeConsumer(ctx context.Context, s *volume.Observed, pod *corev1.Pod) (volume.Consumer, error) {
	c := volume.Consumer{Name: pod.Name}
	leaf, origin, err := index.FindStamped[corev1.Pod](ctx, o.Cache, o.HostID, client.ObjectKeyFromObject(pod))
	if err != nil {
		return c, err
	}
	if leaf != nil && origin.UID != pod.UID {
		leaf = nil
	}
	var others []classedClaim
	if c.AboutToBindHere, err = o.aboutToBindHere(ctx, s, pod); err != nil {
		return c, err
	}
	for _, name := range podspec.ClaimNamesOfPod(pod) {
		claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, o.Host, types.NamespacedName{Namespace: pod.Namespace, Name: name})
		if err != nil {
			return c, err
		}
		if s.Promise == nil && claim != nil && claim.Spec.VolumeName != "" {
			c.OtherBoundClaim = name
		}
		if claim == nil || claim.UID == s.Root.UID {
			continue
		}
		if o.sourceElsewhere(claim) {
			c.OtherApartClaim = name
		}
		other, err := o.readLeafClaim(ctx, claim)
		if err != nil {
			return c, err
		}
		others = append(others, other)
	}
	if own := (classedClaim{s.LeafClaim, s.Placement.LeafClass}); own.claim == nil || own.waitsForNode() {
		c.Problem = problemOfThisClaim(report.ConsumerProblem(pod, leaf, o.Member), others)
		o.recordSilentScheduler(&s.Placement.Attempt, leaf)
	}
	return c, nil
}

// recordSilentScheduler records whether the member's scheduler has processed a consumer's leaf Pod.
func (o Observer) recordSilentScheduler(attempt *volume.Attempt, leaf *corev1.Pod) {
	silent, in := report.SchedulerSilence(leaf, o.Member, o.SilentAfter, o.Now())
	attempt.SilenceProblem = cmp.Or(attempt.SilenceProblem, silent)
	attempt.CheckSilenceIn = route.SoonerDelay(attempt.CheckSilenceIn, in)
}

// sourceElsewhere reports whether an unbound claim must not be created here, because its data source is in
// another member, or the source's location is not recorded yet.
func (o Observer) sourceElsewhere(claim *corev1.PersistentVolumeClaim) bool {
	source, has := mirror.DataSourceOf(claim)
	if !has || !source.IsInOneMember() || claim.Spec.VolumeName != "" {
		return false
	}
	record, recorded := mirror.DataSourceRecordOf(claim)
	return !recorded || record.ClusterID != o.ClusterID
}

// classedClaim is a claim in the member and its class there; either may be nil.
type classedClaim struct {
	claim *corev1.PersistentVolumeClaim
	class *storagev1.StorageClass
}

// readLeafClaim reads the leaf claim of a root.
func (o Observer) readLeafClaim(ctx context.Context, root *corev1.PersistentVolumeClaim) (classedClaim, error) {
	leaf, origin, err := index.FindStamped[corev1.PersistentVolumeClaim](ctx, o.Cache, o.HostID, client.ObjectKeyFromObject(root))
	if err != nil || leaf == nil || origin.UID != root.UID {
		return classedClaim{}, err
	}
	class, err := index.FindObject[storagev1.StorageClass](ctx, o.Cache, index.ClusterScopedKey(ptr.Deref(leaf.Spec.StorageClassName, "")))
	return classedClaim{leaf, class}, err
}

// problemOfThisClaim returns a consumer's problem, unless the reason may be that another claim of the
// Pod is still being provisioned. The member's scheduler finds no node for a Pod until its
// claims of Immediate classes are bound.
func problemOfThisClaim(problem *mirror.Refusal, others []classedClaim) *mirror.Refusal {
	if problem != nil && problem.Reason == v1alpha1.ReasonPodUnschedulable && slices.ContainsFunc(others, classedClaim.waitsForProvisioner) {
		return nil
	}
	return problem
}

// waitsForProvisioner reports whether a claim waits for the provisioner: it is not bound, and does not
// wait for a node.
func (c classedClaim) waitsForProvisioner() bool {
	return c.claim != nil && c.claim.Spec.VolumeName == "" && !c.waitsForNode()
}

func (c classedClaim) waitsForNode() bool {
	return c.claim.Annotations[route.AnnSelectedNode] == "" && c.class != nil && hostpv.WaitsForConsumer(c.class)
}

// aboutToBindHere reports whether the host's scheduler is about to bind a Pod to a node of this member. If the
// scheduler does not set the nominated node, here reports whether the Pod fits this node.
func (o Observer) aboutToBindHere(ctx context.Context, s *volume.Observed, pod *corev1.Pod) (bool, error) {
	if o.SchedulerNominates {
		return pod.Spec.NodeName == "" && o.HasNode(pod.Status.NominatedNodeName), nil
	}
	node, err := index.FindObject[corev1.Node](ctx, o.Host, index.ClusterScopedKey(o.nodeNameFor(s, s.Root)))
	return pod.Spec.NodeName == "" && placement.RepresentsMember(node, o.Member) && placement.SchedulableOnNode(pod, node), err
}
