package rootservice

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/wording"
)

const (
	// Name is the name of the controller.
	Name  = "root_service"
	actor = guarded.Actor("root-service")
	// workers is the number of concurrent reconciles. Each makes at most one write.
	workers = 4
)

// reconciler reconciles the Services of one member.
type reconciler struct {
	*member.Link

	news *news.StateMemory

	// unused measures how long each namespace has been unused. It is lost when the link restarts, which only
	// prolongs the wait. withoutEndpoints measures how long each Service has had no endpoints in the member.
	unused           *news.Durations[string]
	withoutEndpoints *news.Durations[types.NamespacedName]

	// paused contains the objects that Xylem does not try to create again yet, because the member has others with their
	// names, or because of a quota.
	paused *pauses
}

// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods;namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controller to a member's link.
func Setup(link *member.Link) error {
	r := newReconciler(link)
	sources := append(r.serviceSources(), r.endpointSources()...)
	return link.AddController(Name, workers, r, sources...)
}

func newReconciler(link *member.Link) *reconciler {
	return &reconciler{
		Link: link, news: news.New(link.Clock), unused: news.NewDurations[string](link.Clock), withoutEndpoints: news.NewDurations[types.NamespacedName](link.Clock),
		paused: &pauses{clock: link.Clock, shortest: link.RecheckInterval, byName: map[pausedName]pause{}},
	}
}

// Reconcile takes the next step for one Service, and reports which clients do not reach it.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observeService(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decideServiceStep(o)
	again, err := r.takeStep(ctx, o, d)
	if err != nil {
		return reconcile.Result{}, err
	}
	reported, err := r.reportUnreachable(ctx, o)
	return reconcile.Result{RequeueAfter: route.SoonerDelay(again, reported)}, err
}

func (r *reconciler) observeService(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{member: r.Member, rules: r.Rules, key: key, deletionSuspended: r.CheckNotSuspended() != nil}
	var err error
	if o.root, err = index.FindObject[corev1.Service](ctx, r.Host, key); err != nil {
		return o, err
	}
	if o.hostNamespace, err = index.FindNamespace(ctx, r.Host, key.Namespace); err != nil {
		return o, err
	}
	if o.memberNamespace, err = index.FindObject[corev1.Namespace](ctx, r.Cache, index.ClusterScopedKey(key.Namespace)); err != nil {
		return o, err
	}
	used, err := r.isNamespaceUsed(ctx, key.Namespace)
	if err != nil {
		return o, err
	}
	o.used, o.unused = used, r.unused.Measure(key.Namespace, !used)
	if !used {
		r.paused.forgetQuota(key.Namespace, false)
		r.paused.forgetQuota(key.Namespace, true)
	}
	if o.root != nil {
		o.want, o.refusal = wantedService(o.root, r.Member)
	}
	leaves := r.LeafServiceCache()
	if leaves == nil {
		return o, nil
	}
	o.served = true
	if o.leaf, _, err = index.FindStamped[corev1.Service](ctx, leaves, r.HostID, key); err != nil {
		return o, err
	}
	nameTaken, _ := r.paused.remaining(pausedName{false, key})
	o.serviceNameTaken = nameTaken > 0
	o.serviceQuota.rest, o.serviceQuota.rejection = r.paused.remaining(allIn(key.Namespace, false))
	o.sliceQuota.rest, o.sliceQuota.rejection = r.paused.remaining(allIn(key.Namespace, true))
	return o, r.observeEndpointSlices(ctx, leaves, &o)
}

// observeEndpointSlices observes the leaf EndpointSlices of a Service, and what they should be.
func (r *reconciler) observeEndpointSlices(ctx context.Context, leaves client.Reader, o *observed) error {
	found, err := index.SlicesOfService(ctx, leaves, o.key)
	if err != nil {
		return fmt.Errorf("look in the member: %w", err)
	}
	for i := range found {
		if _, ours := mirror.LeafOriginFromHost(r.HostID, &found[i]); ours {
			o.leafSlices = append(o.leafSlices, &found[i])
		}
	}
	if len(r.Reachable) == 0 || o.want == nil {
		return nil
	}
	if found, err = index.SlicesOfService(ctx, r.Host, o.key); err != nil {
		return fmt.Errorf("look in the host: %w", err)
	}
	slices.SortFunc(found, func(a, b discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	for i := range found {
		want := mirror.TranslateEndpointSlice(&found[i], r.Member)
		if want == nil || found[i].DeletionTimestamp != nil {
			continue
		}
		if rest, _ := r.paused.remaining(pausedName{true, client.ObjectKeyFromObject(want)}); rest > 0 {
			continue // the member has a foreign one
		}
		if len(o.wantSlices) == maxServiceSlices {
			o.slicesOmitted = true
			break
		}
		o.wantSlices = append(o.wantSlices, want)
	}
	return nil
}

// isNamespaceUsed reports whether the member has leaf Pods or claims of a namespace, or will have Pods. If the
// registration is being deleted, only leaf Pods count.
func (r *reconciler) isNamespaceUsed(ctx context.Context, namespace string) (bool, error) {
	var leaves corev1.PodList
	if err := r.Cache.List(ctx, &leaves, client.InNamespace(namespace), client.Limit(1), index.ReadOnly); err != nil {
		return false, fmt.Errorf("list the leaf Pods in namespace %s: %w", namespace, err)
	}
	if len(leaves.Items) > 0 || r.Leaving {
		return len(leaves.Items) > 0, nil
	}
	var claims corev1.PersistentVolumeClaimList
	if err := r.Cache.List(ctx, &claims, client.InNamespace(namespace), client.Limit(1), index.ReadOnly); err != nil {
		return false, fmt.Errorf("list the leaf claims in namespace %s: %w", namespace, err)
	}
	if len(claims.Items) > 0 {
		return true, nil
	}
	var roots corev1.PodList
	if err := r.Host.List(ctx, &roots, client.InNamespace(namespace), index.ReadOnly); err != nil {
		return false, fmt.Errorf("list the Pods in namespace %s of the host: %w", namespace, err)
	}
	return slices.ContainsFunc(roots.Items, func(pod corev1.Pod) bool { return runsInMember(&pod, r.NodeName) }), nil
}

// runsInMember reports whether a host Pod is bound to the member's node and has not finished.
func runsInMember(pod *corev1.Pod, nodeName string) bool {
	return v1alpha1.IsNodeOfMember(pod.Spec.NodeName, nodeName) && pod.DeletionTimestamp == nil && !podstatus.IsPodFinished(pod)
}

// takeStep performs a step. It returns when to reconcile the Service again, or 0 if an event will enqueue it.
func (r *reconciler) takeStep(ctx context.Context, o observed, d decision) (time.Duration, error) {
	switch d := d.(type) {
	case doNothing:
		return 0, nil
	case waitForUse:
		return d.rest, nil
	case waitForName:
		return nameTakenInterval, nil
	case waitForQuota:
		r.reportQuota(o, d)
		return d.rest, nil
	case createLeaf:
		return r.createLeaf(ctx, o, d.leaf)
	case updateLeaf:
		return 0, r.reportRejection(o, "update", d.before, r.MemberWriter.PatchStamped(ctx, actor, d.before, d.after))
	case replaceService:
		return 0, client.IgnoreNotFound(r.MemberWriter.DeleteStamped(ctx, o.leaf))
	case deleteLeaf:
		if d.withdrawn {
			if err := r.proveUnwanted(ctx, o); err != nil {
				return 0, err
			}
		}
		return 0, client.IgnoreNotFound(r.MemberWriter.DeleteStamped(ctx, d.leaf))
	}
	return 0, fmt.Errorf("unknown decision %T", d)
}

// createLeaf creates a Service or EndpointSlice. An existing object that is not in the cache is either a new leaf or
// a foreign object.
func (r *reconciler) createLeaf(ctx context.Context, o observed, leaf client.Object) (time.Duration, error) {
	_, isSlice := leaf.(*discoveryv1.EndpointSlice)
	err := r.MemberWriter.CreateStamped(ctx, actor, leaf)
	switch {
	case apierrors.IsAlreadyExists(err):
	case wording.QuotaExceeded(err):
		wait := waitForQuota{leaf, quotaPause{r.paused.recordQuota(o.key.Namespace, isSlice, err), err}}
		r.reportQuota(o, wait)
		return wait.rest, nil
	default:
		if err == nil {
			r.paused.forgetQuota(o.key.Namespace, isSlice)
		}
		return 0, r.reportRejection(o, "create", leaf, err)
	}
	there := client.Object(&corev1.Service{})
	if isSlice {
		there = &discoveryv1.EndpointSlice{}
	}
	found, err := index.GetIfExists(ctx, r.Live, client.ObjectKeyFromObject(leaf), there)
	if err != nil {
		return 0, fmt.Errorf("read the existing object in the member: %w", err)
	}
	if _, ours := mirror.LeafOriginFromHost(r.HostID, there); !found || ours {
		return 0, nil // the event of a new leaf enqueues the request
	}
	r.paused.recordNameTaken(pausedName{isSlice, client.ObjectKeyFromObject(leaf)})
	r.emitNameTaken(o.root, isSlice, leaf.GetName())
	return nameTakenInterval, nil
}

// proveUnwanted confirms with live reads why a leaf Service will be deleted: the host lacks its root, or its root
// must not exist in the member, or the member has no leaf Pods and claims of its namespace.
func (r *reconciler) proveUnwanted(ctx context.Context, o observed) error {
	root, err := index.FindObject[corev1.Service](ctx, r.HostLive, o.key)
	if err != nil {
		return err
	}
	if root == nil {
		return nil
	}
	if want, _ := wantedService(root, r.Member); want == nil {
		return nil
	}
	var used []client.ObjectList
	if o.want != nil {
		used = append(used, &corev1.PodList{})
		if !r.Leaving {
			used = append(used, &corev1.PersistentVolumeClaimList{})
		}
	}
	for _, list := range used {
		if err := r.Live.List(ctx, list, client.InNamespace(o.key.Namespace), client.MatchingLabels{v1alpha1.LabelHost: r.HostID}, client.Limit(1)); err != nil {
			return fmt.Errorf("list the leaves in namespace %s of the member: %w", o.key.Namespace, err)
		}
		if countItems(list) > 0 {
			return fmt.Errorf("namespace %s is used in the member, and the cache does not show it yet", o.key.Namespace)
		}
	}
	if len(used) == 0 {
		return fmt.Errorf("the host has Service %s, and the cache does not show it yet", o.key)
	}
	return nil
}

func countItems(list client.ObjectList) int {
	switch list := list.(type) {
	case *corev1.PodList:
		return len(list.Items)
	case *corev1.PersistentVolumeClaimList:
		return len(list.Items)
	}
	return 0
}

// wantedService returns the leaf of a Service. It returns nil if the Service must not exist in the member, and why,
// unless its user asked for that.
func wantedService(root *corev1.Service, m mirror.Member) (*corev1.Service, *mirror.Refusal) {
	switch {
	case !m.ReflectServices, root.DeletionTimestamp != nil,
		root.Annotations[v1alpha1.AnnotationReflect] == "false",
		root.Namespace == corev1.NamespaceDefault && root.Name == "kubernetes": // the host's API server
		return nil, nil
	}
	return mirror.TranslateService(root, m)
}

// isAllowed reports whether leaves may be created in the member's namespace.
func (o observed) isAllowed() bool {
	there := placement.Member{Member: o.member, Rules: o.rules, Objects: &placement.MemberObjects{Namespace: o.memberNamespace}}
	return there.AnswerRequest(placement.Request{Namespace: o.hostNamespace}).AllowedNow()
}

// matchesPod reports whether a Service selects a Pod.
func matchesPod(service *corev1.Service, pod *corev1.Pod) bool {
	return len(service.Spec.Selector) > 0 && service.Spec.Type != corev1.ServiceTypeExternalName &&
		labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))
}
