package leafbudget

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name  = "leaf_budget"
	actor = guarded.Actor("leaf-budget")
	// workers is the number of budgets of one member that are reconciled concurrently.
	workers = 2
	// liveCountInterval is the minimum interval between two live counts of a budget's Pods.
	liveCountInterval = time.Second
)

// reconciler reconciles the host's PodDisruptionBudgets that select Pods in one member.
type reconciler struct {
	*member.Link
	news *news.StateMemory // about budgets that the member does not enforce, by UID
	// liveCounts measures how long ago each budget's Pods were counted live.
	liveCounts *news.Durations[types.NamespacedName]
}

// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

// Setup adds the controller to a member's link.
func Setup(link *member.Link) error {
	r := &reconciler{link, news.New(link.Clock), news.NewDurations[types.NamespacedName](link.Clock)}
	return link.AddController(Name, workers, r,
		link.RootObjectSource(&policyv1.PodDisruptionBudget{}, r.hostBudgetToRequests),
		link.Budgets.ProblemChangeSource(r.allBudgetsWithLeafPods),
		route.DelayUnlessUrgent(route.NeverUrgent, link.RootObjectSource(&corev1.Pod{}, r.podToRequests, countedPartChanged)),
		link.LeafBudgetSource(&policyv1.PodDisruptionBudget{}, r.memberBudgetToRequests, route.ConcernsPredicate(budgetSpecChanged)),
		link.LeafObjectSource(&corev1.Pod{}, r.podToRequests, route.ConcernsPredicate(countedPartChanged)),
	)
}

// countedPart contains the fields of a root or leaf Pod on which budgets depend, apart from its labels.
type countedPart struct {
	uid                         types.UID
	healthy, deleting, finished bool
	awaitsHostReadiness         bool
}

// countedPartChanged is ConcernsFunc for root and leaf Pods.
func countedPartChanged(before, after client.Object) bool {
	was, known := before.(*corev1.Pod)
	is, ok := after.(*corev1.Pod)
	part := func(pod *corev1.Pod) countedPart {
		return countedPart{pod.UID, isHealthyPod(pod), pod.DeletionTimestamp != nil, podstatus.IsPodFinished(pod), hasOpenReadinessGate(pod)}
	}
	return !known || !ok || part(was) != part(is) || !labels.Equals(was.Labels, is.Labels)
}

// budgetSpecChanged is ConcernsFunc for a member's budgets, whose statuses change with each Pod.
func budgetSpecChanged(before, after client.Object) bool {
	return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() || !before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) ||
		!labels.Equals(before.GetLabels(), after.GetLabels()) || !labels.Equals(before.GetAnnotations(), after.GetAnnotations())
}

// hostBudgetToRequests enqueues a host budget if the member has a budget with its name, or Pods in its namespace.
func (r *reconciler) hostBudgetToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	budgets := r.LeafBudgetCache()
	if budgets == nil {
		return nil // once the member's budgets are read, its Pods' events enqueue their budgets
	}
	var pods corev1.PodList
	if err := r.Cache.List(ctx, &pods, client.InNamespace(obj.GetNamespace()), client.Limit(1), index.ReadOnly); err == nil && len(pods.Items) == 0 {
		if leaf, err := index.FindObject[policyv1.PodDisruptionBudget](ctx, budgets, client.ObjectKeyFromObject(obj)); err == nil && leaf == nil {
			return nil
		}
	}
	return member.RequestOfSameKey(ctx, obj)
}

// memberBudgetToRequests enqueues the host budget with the name of a member's budget and, for a budget of the member's
// own, all budgets in its namespace.
func (r *reconciler) memberBudgetToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	if _, ours := mirror.LeafOriginFromHost(r.HostID, obj); ours {
		return member.RequestOfSameKey(ctx, obj)
	}
	return r.hostBudgetsOf(ctx, obj.GetNamespace(), func(*policyv1.PodDisruptionBudget) bool { return true })
}

// allBudgetsWithLeafPods enqueues the host budgets in the namespaces of leaf Pods, once the member's budgets are read.
func (r *reconciler) allBudgetsWithLeafPods(ctx context.Context, _ string) []reconcile.Request {
	return r.hostBudgetsOf(ctx, metav1.NamespaceAll, func(budget *policyv1.PodDisruptionBudget) bool {
		return len(r.hostBudgetToRequests(ctx, budget)) > 0
	})
}

// podToRequests enqueues the host budgets that select a root or leaf Pod.
func (r *reconciler) podToRequests(ctx context.Context, pod client.Object) []reconcile.Request {
	return r.hostBudgetsOf(ctx, pod.GetNamespace(), func(budget *policyv1.PodDisruptionBudget) bool {
		return selectsLabels(budget.Spec.Selector, pod.GetLabels())
	})
}

func (r *reconciler) hostBudgetsOf(ctx context.Context, namespace string, concerned func(*policyv1.PodDisruptionBudget) bool) []reconcile.Request {
	var budgets policyv1.PodDisruptionBudgetList
	err := r.Host.List(ctx, &budgets, client.InNamespace(namespace), index.ReadOnly)
	return route.RequestsFor(ctx, budgets.Items, err, concerned)
}

// selectsLabels reports whether a budget's selector matches. A budget without a selector selects nothing, and an
// invalid selector neither.
func selectsLabels(selector *metav1.LabelSelector, has map[string]string) bool {
	matches, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && matches.Matches(labels.Set(has))
}

// Reconcile takes the next step for one host budget.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	budgets := r.LeafBudgetCache()
	if budgets == nil {
		return reconcile.Result{}, nil // the registration reports why
	}
	o, err := r.observe(ctx, budgets, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch d := decideBudgetAction(o).(type) {
	case waitForCount:
		return reconcile.Result{RequeueAfter: d.rest}, nil
	case reportNotEnforced:
		if d.deleteLeaf {
			return reconcile.Result{}, r.deleteLeafBudget(ctx, o.sameName)
		}
		return reconcile.Result{RequeueAfter: r.emitNotEnforced(o.host, d.problem)}, nil
	default:
		return reconcile.Result{}, r.act(ctx, o, d)
	}
}

func (r *reconciler) observe(ctx context.Context, budgets client.Reader, key types.NamespacedName) (observed, error) {
	o := observed{member: r.Member}
	var err error
	if o.host, err = index.FindObject[policyv1.PodDisruptionBudget](ctx, r.Host, key); err != nil {
		return o, err
	}
	if o.host == nil {
		r.liveCounts.Measure(key, false)
	}
	if o.sameName, err = index.FindObject[policyv1.PodDisruptionBudget](ctx, budgets, key); err != nil || o.host == nil {
		return o, err
	}
	selected, err := metav1.LabelSelectorAsSelector(o.host.Spec.Selector)
	if err != nil {
		return o, reconcile.TerminalError(fmt.Errorf("read the selector of PodDisruptionBudget %s: %w", key, err))
	}
	var leaves corev1.PodList
	if err := r.Cache.List(ctx, &leaves, client.InNamespace(key.Namespace), client.MatchingLabelsSelector{Selector: selected}, index.ReadOnly); err != nil {
		return o, fmt.Errorf("list the leaf Pods of PodDisruptionBudget %s: %w", key, err)
	}
	for i := range leaves.Items {
		if err := r.observeLeafPod(ctx, &o, &leaves.Items[i]); err != nil {
			return o, err
		}
	}
	if o.leafPods == 0 {
		r.liveCounts.Measure(key, false)
		return o, nil
	}
	if o.ownBudget, err = r.findOwnBudget(ctx, budgets, leaves.Items); err != nil {
		return o, err
	}
	o.healthyElsewhere, o.countDueIn, err = r.countHealthyElsewhere(ctx, o.host, selected)
	return o, err
}

// observeLeafPod counts a leaf Pod of the budget.
func (r *reconciler) observeLeafPod(ctx context.Context, o *observed, leaf *corev1.Pod) error {
	origin, ours := mirror.LeafOriginFromHost(r.HostID, leaf)
	if !ours || podstatus.IsPodFinished(leaf) {
		return nil
	}
	o.leafPods++
	if !isHealthyPod(leaf) {
		return nil
	}
	root, err := index.FindObject[corev1.Pod](ctx, r.Host, origin.Root)
	if err != nil {
		return err
	}
	if root == nil || root.UID != origin.UID || root.DeletionTimestamp != nil || isBeingDisrupted(o.host, root) || hasOpenReadinessGate(root) {
		o.countedOnlyInMember++
	}
	return nil
}

// findOwnBudget returns the name of a budget of the member's own, or of another host, that selects one of the leaf Pods.
func (r *reconciler) findOwnBudget(ctx context.Context, budgets client.Reader, leaves []corev1.Pod) (string, error) {
	var list policyv1.PodDisruptionBudgetList
	if err := budgets.List(ctx, &list, client.InNamespace(leaves[0].Namespace), index.ReadOnly); err != nil {
		return "", fmt.Errorf("list the PodDisruptionBudgets in namespace %s of the member: %w", leaves[0].Namespace, err)
	}
	for i := range list.Items {
		budget := &list.Items[i]
		if _, ours := mirror.LeafOriginFromHost(r.HostID, budget); ours {
			continue
		}
		for j := range leaves {
			if selectsLabels(budget.Spec.Selector, leaves[j].Labels) {
				return budget.Name, nil
			}
		}
	}
	return "", nil
}

// countHealthyElsewhere counts the budget's healthy Pods that do not run in this member. If the host's cache contains all
// Pods that the host counts, so does the answer. Otherwise, it reads them live, or returns when that is due.
func (r *reconciler) countHealthyElsewhere(ctx context.Context, host *policyv1.PodDisruptionBudget, selected labels.Selector) (elsewhere int32, dueIn time.Duration, err error) {
	here, elsewhere, err := r.countHealthyRoots(ctx, r.Host, host, selected)
	if err != nil || !hostCountsDisruptions(host) {
		return 0, 0, err
	}
	from := chooseCount(here, elsewhere, host.Status.CurrentHealthy)
	if from == noCountNeeded {
		return 0, 0, nil
	}
	if from == countInCache {
		return elsewhere, 0, nil
	}
	if dueIn := r.liveCountDueIn(client.ObjectKeyFromObject(host)); dueIn > 0 {
		return 0, dueIn, nil
	}
	_, elsewhere, err = r.countHealthyRoots(ctx, r.HostLive, host, selected)
	return elsewhere, 0, err
}

// liveCountDueIn returns when a budget's Pods may be counted live, or 0 if they may be counted now. It assumes that the
// caller then counts them.
func (r *reconciler) liveCountDueIn(budget types.NamespacedName) time.Duration {
	since := r.liveCounts.Measure(budget, true)
	if since > 0 && since < liveCountInterval {
		return liveCountInterval - since
	}
	r.liveCounts.Measure(budget, false)
	r.liveCounts.Measure(budget, true)
	return 0
}

// countHealthyRoots counts the budget's healthy Pods in this member, and the others, as the host does.
func (r *reconciler) countHealthyRoots(ctx context.Context, from client.Reader, host *policyv1.PodDisruptionBudget, selected labels.Selector) (here, elsewhere int32, err error) {
	var roots corev1.PodList
	if err := from.List(ctx, &roots, client.InNamespace(host.Namespace), client.MatchingLabelsSelector{Selector: selected}, index.ReadOnly); err != nil {
		return 0, 0, fmt.Errorf("list the Pods of PodDisruptionBudget %s: %w", client.ObjectKeyFromObject(host), err)
	}
	for i := range roots.Items {
		pod := &roots.Items[i]
		switch {
		case !isHealthyPod(pod) || isBeingDisrupted(host, pod):
		case r.HasNode(pod.Spec.NodeName):
			here++
		default:
			elsewhere++
		}
	}
	return here, elsewhere, nil
}

func (r *reconciler) act(ctx context.Context, o observed, d decision) error {
	switch d := d.(type) {
	case doNothing:
		return nil
	case createBudget:
		err := r.MemberWriter.CreateStamped(ctx, actor, d.leaf)
		if apierrors.IsAlreadyExists(err) {
			return nil // the other budget's event enqueues this one
		}
		if err == nil {
			r.news.ForgetState(o.host.UID)
		}
		return r.reportMemberRejection(o.host, "create", err)
	case updateBudget:
		return r.reportMemberRejection(o.host, "update", r.MemberWriter.PatchStamped(ctx, actor, o.sameName, d.leaf))
	case deleteBudget:
		if d.rootGone {
			if gone, err := r.provesRootGone(ctx, o.sameName); err != nil || !gone {
				return err
			}
		}
		return r.deleteLeafBudget(ctx, o.sameName)
	}
	return unknownDecisionError(d)
}

func (r *reconciler) deleteLeafBudget(ctx context.Context, leaf *policyv1.PodDisruptionBudget) error {
	return client.IgnoreNotFound(r.MemberWriter.DeleteStamped(ctx, leaf))
}

// provesRootGone reads live whether the host budget is gone. After a restore of the host, its absence proves nothing.
func (r *reconciler) provesRootGone(ctx context.Context, leaf *policyv1.PodDisruptionBudget) (bool, error) {
	if err := r.CheckNotSuspended(); err != nil && r.LastRestoreTimes().HostUnconfirmed {
		return false, err
	}
	root, err := index.FindObject[policyv1.PodDisruptionBudget](ctx, r.HostLive, client.ObjectKeyFromObject(leaf))
	return root == nil, err
}

// reportMemberRejection reports on the host's budget that the member rejects a write. It returns the error for a retry.
func (r *reconciler) reportMemberRejection(host *policyv1.PodDisruptionBudget, doing string, err error) error {
	if problem := report.MemberWriteRefusal(r.Registration, doing, "the PodDisruptionBudget", err); problem != nil {
		r.emitNotEnforced(host, problem)
	}
	return err
}
