package leafpod

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name  = "leaf_pod"
	actor = guarded.Actor("leaf-pod")
	// workers is the number of Pods of one member whose status is written concurrently.
	workers = 8
	// endedLeavesLimit is the maximum number of leaves whose final state is kept in memory until
	// their roots report it. If the manager restarts in between, the final state is lost, and
	// the root is reported as Failed.
	endedLeavesLimit = 1024
	// endedLeafSizeLimit is the size in bytes above which a leaf is not remembered. The caches
	// limit the data of a member, but remembered leaves may have left the caches (I7).
	endedLeafSizeLimit = 32 << 10
)

type reconciler struct {
	*member.Link
	ended *lru.Cache        // root and leaf name -> finished leaf Pod
	news  *news.StateMemory // about containers that a member added, by the leaf's UID
	// present maps the name of a root and its leaf to the root's UID. It contains the leaves for
	// which an event was handled, except those whose deletion was handled.
	present sync.Map
}

// SetupWithLink adds the controller to a member's link.
func SetupWithLink(link *member.Link) error {
	r := &reconciler{Link: link, ended: lru.New(endedLeavesLimit), news: news.New(link.Clock)}
	return link.AddController(Name, workers, r,
		link.LeafObjectSource(&corev1.Pod{}, r.leafToRequests, r.trackPresentLeaves()),
		route.DelayUnlessUrgent(onlyNodeOrDeletionChanged, link.RootObjectSource(&corev1.Pod{}, member.RequestOfSameKey, r.concernsMemberNode)),
		link.RootObjectSource(&corev1.PersistentVolume{}, r.promiseToRequests, route.VolumeChanged),
		link.RootObjectSource(&corev1.PersistentVolumeClaim{}, r.unmetClaimToRequests),
	)
}

// concernsMemberNode admits the events of root Pods that are or were bound to this member's node.
func (r *reconciler) concernsMemberNode(before, after client.Object) bool {
	was, known := before.(*corev1.Pod)
	is, ok := after.(*corev1.Pod)
	return !known || !ok || r.HasNode(was.Spec.NodeName) || r.HasNode(is.Spec.NodeName)
}

// turns marks the binding and the deletion of a root Pod as urgent. Changes to the status are not
// urgent, because this controller makes them.
var onlyNodeOrDeletionChanged = route.WhenValueChanged(func(pod *corev1.Pod) nodeAndDeletion {
	return nodeAndDeletion{pod.Spec.NodeName, pod.DeletionTimestamp != nil}
})

type nodeAndDeletion struct {
	node     string
	deleting bool
}

// leafToRequests enqueues the root of a leaf, except before the root is bound, because the binding enqueues
// the root. It also remembers a finished leaf, which may be gone before the root is reconciled.
func (r *reconciler) leafToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	if leaf, ok := obj.(*corev1.Pod); ok && podstatus.IsPodFinished(leaf) && leaf.Size() <= endedLeafSizeLimit {
		if origin, ours := mirror.LeafOriginFromHost(r.HostID, leaf); ours {
			r.ended.Add(origin.Root, leaf)
		}
	}
	if root, err := index.FindObject[corev1.Pod](ctx, r.Host, client.ObjectKeyFromObject(obj)); err == nil && root != nil && !r.HasNode(root.Spec.NodeName) {
		return nil
	}
	return member.RequestOfSameKey(ctx, obj)
}

// trackPresentLeaves admits all events and records which leaves are present. This record is needed because the
// cache drops a leaf before leafToRequests handles the leaf's last events.
func (r *reconciler) trackPresentLeaves() predicate.Predicate {
	seen := func(leaf client.Object) bool {
		if origin, ours := mirror.LeafOriginFromHost(r.HostID, leaf); ours {
			r.present.Store(client.ObjectKeyFromObject(leaf), origin.UID)
		}
		return true
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return seen(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return seen(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool {
			r.present.Delete(client.ObjectKeyFromObject(e.Object))
			return true
		},
	}
}

// endedLeafOf returns the final state of a root's leaf, or nil if it was not observed.
func (r *reconciler) endedLeafOf(root *corev1.Pod) *corev1.Pod {
	value, _ := r.ended.Get(client.ObjectKeyFromObject(root))
	leaf, seen := value.(*corev1.Pod)
	if !seen {
		return nil
	}
	if origin, ours := mirror.LeafOriginFromHost(r.HostID, leaf); !ours || origin.UID != root.UID {
		return nil // the leaf of an earlier Pod with this name
	}
	return leaf
}

// Reconcile updates the status of one root Pod.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observePod(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decidePodStatus(o)
	if f, failing := d.(failPod); failing && f.unmet != "" {
		unbound, err := r.NewProver().ProveLeafUnbound(ctx, o.unmet.claim)
		if err != nil || !unbound {
			return reconcile.Result{RequeueAfter: o.unmet.timeout}, err // claim events do not enqueue the Pod again
		}
	}
	if err := r.actOnPod(ctx, o, d); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: route.SoonerDelay(o.nextUnmetCheck(), r.emitContainersAdded(o))}, nil
}

func (r *reconciler) observePod(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{member: r.Member, now: r.Clock.Now()}
	var err error
	if o.root, err = index.FindObject[corev1.Pod](ctx, r.Host, key); err != nil {
		return o, err
	}
	if o.root == nil {
		r.ended.Remove(key) // no longer needed, and Pods are large
		return o, nil
	}
	leaf, origin, err := index.FindStamped[corev1.Pod](ctx, r.Cache, r.HostID, key)
	if err != nil {
		return o, err
	}
	if leaf != nil && origin.UID == o.root.UID {
		o.leaf = leaf
	}
	o.endedLeaf = r.endedLeafOf(o.root)
	uid, present := r.present.Load(key)
	o.unhandled = o.leaf == nil && present && uid == o.root.UID
	if !r.HasNode(o.root.Spec.NodeName) {
		return o, nil
	}
	if o.node, err = index.FindObject[corev1.Node](ctx, r.Host, index.ClusterScopedKey(o.root.Spec.NodeName)); err != nil {
		return o, err
	}
	if o.node == nil && o.leaf == nil && !podstatus.IsPodFinished(o.root) && !r.Leaving {
		return o, fmt.Errorf("node %s, which Pod %s is bound to, is not in the cache yet", o.root.Spec.NodeName, key)
	}
	if !placement.IsPodInMember(o.root, o.node, r.Member) {
		return o, nil
	}
	if o.leaf == nil {
		if o.stranded, err = r.findStrandingPromise(ctx, o.root); err != nil {
			return o, err
		}
	}
	o.unmet, err = r.findUnmetPromise(ctx, o.root)
	return o, err
}

func (r *reconciler) actOnPod(ctx context.Context, o observed, d decision) error {
	switch d := d.(type) {
	case nothing:
		return nil
	case showStatus:
		if err := r.applyPodStatus(ctx, o.root, d.status); err != nil {
			return err
		}
		r.emitPodIPHidden(o, d.status)
		return nil
	case failPod:
		d, still, err := r.stillFailsLive(ctx, &o)
		if err != nil || !still {
			return err
		}
		if d.leafPodGone {
			if gone, err := r.NewProver().ProveLeafPodGone(ctx, o.root); err != nil || !gone {
				return err
			}
		}
		if d.unmet != "" {
			if err := r.recordFailedMember(ctx, o); err != nil {
				return err
			}
		}
		if err := r.applyPodStatus(ctx, o.root, d.status); err != nil {
			return err
		}
		if o.root.DeletionTimestamp == nil {
			r.emitPodFailed(o.root, d.status.Reason, d.status.Message)
		}
		return nil
	}
	return fmt.Errorf("unknown decision %T", d)
}

func (r *reconciler) applyPodStatus(ctx context.Context, root *corev1.Pod, want corev1.PodStatus) error {
	return r.HostWriter.ApplyStatus(ctx, actor, root, podstatus.PodStatusApplyBody(root, podstatus.WithTransitionTimes(want, metav1.NewTime(r.Clock.Now()))))
}

// stillFailsLive decides again with a live read of the root. In a stale cache, a Pod that ran or
// succeeded may look as if it had never been pushed.
func (r *reconciler) stillFailsLive(ctx context.Context, o *observed) (failPod, bool, error) {
	key := client.ObjectKeyFromObject(o.root)
	live, err := index.FindObject[corev1.Pod](ctx, r.HostLive, key)
	if err != nil {
		return failPod{}, false, fmt.Errorf("prove that Pod %s has not ended: %w", key, err)
	}
	if live == nil || live.UID != o.root.UID {
		return failPod{}, false, nil // the cache will catch up
	}
	o.root = live
	d, still := decidePodStatus(*o).(failPod)
	return d, still, nil
}
