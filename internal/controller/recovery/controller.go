package recovery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name  = "recovery"
	actor = guarded.Actor("recovery")

	// workers is one, so that claims of one Pod are not reassigned to different members.
	workers = 1

	// maxWaitingClaims is the maximum number of claims that are recorded in memory as waiting here.
	maxWaitingClaims = 4096
)

// Options configures the controller.
type Options struct {
	// Namespace is the manager's namespace, in which Xylem publishes CSIStorageCapacities.
	Namespace string
	// SchedulerNominates reports whether the host's scheduler sets status.nominatedNodeName before it
	// binds a Pod; see root_pod.
	SchedulerNominates bool
	// Exhausted records the sizes for which this member's drivers have no capacity.
	Exhausted *account.RejectedSizes
}

// reconciler reassigns the claims that one member cannot satisfy.
type reconciler struct {
	*member.Link
	Options
	waitedHere *lru.Cache // root UID -> struct{}
}

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csistoragecapacities,namespace=xylem-system,verbs=list;watch

// Setup adds the controller to a member's link.
func Setup(link *member.Link, o Options) error {
	r := &reconciler{link, o, lru.New(maxWaitingClaims)}
	return link.AddController(Name, workers, r,
		route.DelayUnlessUrgent(claimChangeUrgent, link.RootObjectSource(&corev1.PersistentVolumeClaim{}, r.claimToSiblings, route.PartChanged(route.PlacementOfClaim))),
		route.DelayUnlessUrgent(route.NeverUrgent, link.RootObjectSource(&corev1.Pod{}, member.ClaimsOfUnboundPod, route.PartChanged(podScheduleOf))),
		link.RootObjectSource(&corev1.Namespace{}, r.namespaceToWaitingClaims, route.LabelsChanged),
		link.LeafObjectSource(&storagev1.CSIStorageCapacity{}, r.forgetExhaustedClass),
	)
}

// claimChangeUrgent marks a change to a claim's placement as urgent, because the controller must observe that
// a claim is waiting here. Only then does the claim's volume prove later that the driver has
// capacity.
var claimChangeUrgent = route.WhenValueChanged(func(claim *corev1.PersistentVolumeClaim) string {
	return claim.Annotations[v1alpha1.AnnotationPlacedIn]
})

// podSchedule has the Pod fields that affect scheduling. The scheduler's condition is read when it is
// needed.
type podSchedule struct {
	node, nominated string
	deleting, ended bool
	gated           bool
}

func podScheduleOf(pod *corev1.Pod) podSchedule {
	return podSchedule{pod.Spec.NodeName, pod.Status.NominatedNodeName, pod.DeletionTimestamp != nil, podstatus.IsPodFinished(pod), len(pod.Spec.SchedulingGates) > 0}
}

// claimToSiblings enqueues a claim and its siblings. It omits the claim if it has its volume and none of
// recovery's annotations. For an update, the handler also passes the old state, so a claim that has
// just been bound is enqueued.
func (r *reconciler) claimToSiblings(ctx context.Context, obj client.Object) []reconcile.Request {
	if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && claim.Spec.VolumeName != "" && !hasRecords(claim) {
		return r.SiblingsOfBoundClaim(ctx, claim)
	} else if ok && claim.Spec.VolumeName == "" && mirror.HasDataSource(claim) {
		return append(member.RequestOfSameKey(ctx, obj), r.ClaimsOfSharingPods(ctx, obj)...) // the other claims of its Pods follow it
	}
	return r.ClaimAndSiblings(ctx, obj)
}

// namespaceToWaitingClaims enqueues the claims in a namespace that are waiting here, because the namespace's
// labels may determine which members admit them.
func (r *reconciler) namespaceToWaitingClaims(ctx context.Context, namespace client.Object) []reconcile.Request {
	claims, err := index.WaitingClaimsIn(ctx, r.Host, namespace.GetName())
	return route.RequestsFor(ctx, claims, err, func(claim *corev1.PersistentVolumeClaim) bool {
		return r.HasNode(claim.Annotations[route.AnnSelectedNode])
	})
}

// forgetExhaustedClass clears the recorded failures of a StorageClass when the member reports its capacity
// again. It enqueues nothing.
func (r *reconciler) forgetExhaustedClass(_ context.Context, obj client.Object) []reconcile.Request {
	if segment, ok := obj.(*storagev1.CSIStorageCapacity); ok {
		r.Exhausted.ForgetClass(segment.StorageClassName)
	}
	return nil
}

// Reconcile checks whether a claim, and the claims that must be in the same member, must be
// reassigned.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observeClaim(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.observeCapacity(o)
	return r.executeDecision(ctx, o, decideWhenRequested(o))
}

func (r *reconciler) observeClaim(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{Member: r.Member, Now: r.Clock.Now(), SchedulerNominates: r.SchedulerNominates}
	if err := r.observeClaimGroup(ctx, &o, key); err != nil || o.Claim == nil || o.Claim.Root.Spec.VolumeName != "" {
		return o, err
	}
	var err error
	if o.Namespace, err = index.FindNamespace(ctx, r.Host, key.Namespace); err != nil {
		return o, err
	}
	err = r.observeDestinations(ctx, &o)
	return o, err
}

// observeClaimGroup finds the waiting Pods that use the claim, their other claims, the Pods that use
// those, and so on.
func (r *reconciler) observeClaimGroup(ctx context.Context, o *observed, key types.NamespacedName) error {
	first, err := r.readClaim(ctx, key)
	if err != nil || first == nil {
		return err
	}
	o.Claim, o.ClaimGroup = first, []observedClaim{*first}
	seen := map[string]bool{key.Name: true}
	pods := map[types.UID]bool{}
	for next := 0; next < len(o.ClaimGroup) && o.Claim.Root.Spec.VolumeName == ""; next++ {
		users, err := index.PodsOfClaim(ctx, r.Host, client.ObjectKeyFromObject(o.ClaimGroup[next].Root))
		if err != nil {
			return err
		}
		for _, pod := range users {
			if pods[pod.UID] || !podWaitsForScheduler(&pod) {
				continue
			}
			pods[pod.UID] = true
			o.Pods = append(o.Pods, pod)
			for _, name := range podspec.ClaimNamesOfPod(&pod) {
				if seen[name] {
					continue
				}
				seen[name] = true
				c, err := r.readClaim(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name})
				if err != nil {
					return err
				}
				if err := r.readVolume(ctx, c); err != nil {
					return err
				}
				switch {
				case c != nil && c.Volume != nil && hostpv.BackendOfVolume(c.Volume) != "":
					o.Shared = append(o.Shared, c.Volume)
				case c != nil:
					o.ClaimGroup = append(o.ClaimGroup, *c)
				}
			}
		}
	}
	slices.SortFunc(o.Pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// readVolume reads the host PV of a claim. A claim with a shared volume does not tie its Pod to one member.
func (r *reconciler) readVolume(ctx context.Context, c *observedClaim) error {
	if c == nil || c.Root.Spec.VolumeName == "" {
		return nil
	}
	var err error
	c.Volume, err = index.FindObject[corev1.PersistentVolume](ctx, r.Host, index.ClusterScopedKey(c.Root.Spec.VolumeName))
	return err
}

// podWaitsForScheduler reports whether a Pod waits for the scheduler: it has not finished, is not bound to a
// node yet, and is one that Xylem pushes.
func podWaitsForScheduler(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !podstatus.IsPodFinished(pod) && !podstatus.IsKeptFromMembers(pod)
}

// readClaim reads a claim and its class. It returns nil if the claim does not exist.
func (r *reconciler) readClaim(ctx context.Context, key types.NamespacedName) (*observedClaim, error) {
	root, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Host, key)
	if err != nil || root == nil {
		return nil, err
	}
	c := &observedClaim{Root: root}
	class, err := index.FindObject[storagev1.StorageClass](ctx, r.Host, index.ClusterScopedKey(hostpv.ClassNameOf(root)))
	if err != nil || !hostpv.IsXylemClass(class) {
		return c, err
	}
	settings, err := hostpv.ReadClassParameters(class)
	if refusal := (*mirror.Refusal)(nil); errors.As(err, &refusal) || settings.Provisioning != v1alpha1.ProvisioningMirror {
		return c, nil // host_claim reports the problem
	}
	c.Class, c.Timeout = class, settings.PlacementTimeout
	if source, has := mirror.DataSourceOf(root); has {
		c.Source = &source
	}
	return c, r.observeProvisionerCalls(ctx, c)
}

// observeProvisionerCalls finds out whether a provisioner's call may create the claim's volume here.
func (r *reconciler) observeProvisionerCalls(ctx context.Context, c *observedClaim) error {
	leaf, origin, err := index.FindStamped[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, client.ObjectKeyFromObject(c.Root))
	if err != nil || leaf == nil || origin.UID != c.Root.UID || leaf.Spec.VolumeName != "" {
		return err
	}
	events, err := index.LeafEventsOf(ctx, r.Cache, leaf.Namespace, leaf.UID)
	c.StillProvisioning, c.MayBeProvisioning = report.StillProvisioning(leaf, events), report.MayBeProvisioning(leaf, events)
	if err != nil {
		return err
	}
	class, err := index.FindObject[storagev1.StorageClass](ctx, r.Cache, index.ClusterScopedKey(ptr.Deref(leaf.Spec.StorageClassName, "")))
	c.BindsImmediately = class != nil && !hostpv.WaitsForConsumer(class)
	return err
}

// observeDestinations reads the members and their published capacity.
func (r *reconciler) observeDestinations(ctx context.Context, o *observed) error {
	members, err := index.MembersWithNodes(ctx, r.Host)
	if err != nil {
		return err
	}
	largest, err := index.LargestVolumeSizes(ctx, r.Host, r.Namespace)
	if err != nil {
		return err
	}
	for _, m := range members {
		m.Largest = largest[m.ClusterID]
		o.Destinations = append(o.Destinations, m)
	}
	return nil
}

// requeueAfter returns a result that requeues after a delay, or does not requeue if after is 0.
func requeueAfter(after time.Duration) reconcile.Result { return reconcile.Result{RequeueAfter: after} }
