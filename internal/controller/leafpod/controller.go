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
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/route/urgency"
)

const (
	// Name is the name of the controller.
	Name  = "leaf_pod"
	actor = guarded.Actor("leaf-pod")
	// workers is the number of Pods of one member whose status is written concurrently.
	workers = 8
	// remembered is the maximum number of leaves whose final state is kept in memory until
	// their roots report it. If the manager restarts in between, the final state is lost, and
	// the root is reported as Failed.
	remembered = 1024
	// rememberedSize is the size in bytes above which a leaf is not remembered. The caches
	// limit the data of a member, but remembered leaves may have left the caches (I7).
	rememberedSize = 32 << 10
)

type reconciler struct {
	*member.Link
	ended *lru.Cache // root and leaf name -> finished leaf Pod
	news  *news.News // about containers that a member added, by the leaf's UID
	// present maps the name of a root and its leaf to the root's UID. It contains the leaves for
	// which an event was handled, except those whose deletion was handled.
	present sync.Map
}

// Setup adds the controller to a member's link.
func Setup(link *member.Link) error {
	r := &reconciler{Link: link, ended: lru.New(remembered), news: news.New(link.Clock)}
	return link.Controller(Name, workers, r,
		link.LeafSource(&corev1.Pod{}, r.ofLeaf, r.follow()),
		urgency.Unhurried(onlyNodeOrDeletionChanged, link.RootSource(&corev1.Pod{}, member.SameKey, r.here)),
		link.RootSource(&corev1.PersistentVolume{}, r.promiseToRequests, route.VolumeChanged),
		link.RootSource(&corev1.PersistentVolumeClaim{}, r.unmetClaimToRequests),
	)
}

// here admits the events of root Pods that are or were bound to this member's node.
func (r *reconciler) here(before, after client.Object) bool {
	was, known := before.(*corev1.Pod)
	is, ok := after.(*corev1.Pod)
	return !known || !ok || was.Spec.NodeName == r.NodeName || is.Spec.NodeName == r.NodeName
}

// turns marks the binding and the deletion of a root Pod as urgent. Changes to the status are not
// urgent, because this controller makes them.
var onlyNodeOrDeletionChanged = urgency.WhenChanged(func(pod *corev1.Pod) nodeAndDeletion {
	return nodeAndDeletion{pod.Spec.NodeName, pod.DeletionTimestamp != nil}
})

type nodeAndDeletion struct {
	node     string
	deleting bool
}

// ofLeaf enqueues the root of a leaf, except before the root is bound, because the binding enqueues
// the root. It also remembers a finished leaf, which may be gone before the root is reconciled.
func (r *reconciler) ofLeaf(ctx context.Context, obj client.Object) []reconcile.Request {
	if leaf, ok := obj.(*corev1.Pod); ok && podstatus.Finished(leaf) && leaf.Size() <= rememberedSize {
		if origin, ours := mirror.OriginIn(r.HostID, leaf); ours {
			r.ended.Add(origin.Root, leaf)
		}
	}
	if root, err := index.Find[corev1.Pod](ctx, r.Host, client.ObjectKeyFromObject(obj)); err == nil && root != nil && root.Spec.NodeName != r.NodeName {
		return nil
	}
	return member.SameKey(ctx, obj)
}

// follow admits all events and records which leaves are present. This record is needed because the
// cache drops a leaf before ofLeaf handles the leaf's last events.
func (r *reconciler) follow() predicate.Predicate {
	seen := func(leaf client.Object) bool {
		if origin, ours := mirror.OriginIn(r.HostID, leaf); ours {
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

// lastOf returns the final state of a root's leaf, or nil if it was not observed.
func (r *reconciler) lastOf(root *corev1.Pod) *corev1.Pod {
	value, _ := r.ended.Get(client.ObjectKeyFromObject(root))
	leaf, seen := value.(*corev1.Pod)
	if !seen {
		return nil
	}
	if origin, ours := mirror.OriginIn(r.HostID, leaf); !ours || origin.UID != root.UID {
		return nil // the leaf of an earlier Pod with this name
	}
	return leaf
}

// Reconcile updates the status of one root Pod.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decide(o)
	if f, failing := d.(fail); failing && f.unmet != "" {
		unbound, err := r.Proof().Unbound(ctx, o.unmet.claim)
		if err != nil || !unbound {
			return reconcile.Result{RequeueAfter: o.unmet.timeout}, err // claim events do not enqueue the Pod again
		}
	}
	if err := r.act(ctx, o, d); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: route.Sooner(o.nextUnmetCheck(), r.eventAdded(o))}, nil
}

func (r *reconciler) observe(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{member: r.Member, now: r.Clock.Now()}
	var err error
	if o.root, err = index.Find[corev1.Pod](ctx, r.Host, key); err != nil {
		return o, err
	}
	if o.root == nil {
		r.ended.Remove(key) // no longer needed, and Pods are large
		return o, nil
	}
	leaf, origin, err := index.Leaf[corev1.Pod](ctx, r.Cache, r.HostID, key)
	if err != nil {
		return o, err
	}
	if leaf != nil && origin.UID == o.root.UID {
		o.leaf = leaf
	}
	o.last = r.lastOf(o.root)
	uid, present := r.present.Load(key)
	o.unhandled = o.leaf == nil && present && uid == o.root.UID
	if o.node, err = index.Find[corev1.Node](ctx, r.Host, index.Named(r.NodeName)); err != nil {
		return o, err
	}
	if o.node == nil && o.leaf == nil && o.root.Spec.NodeName == r.NodeName && !podstatus.Finished(o.root) && !r.Leaving {
		return o, fmt.Errorf("node %s, which Pod %s is bound to, is not in the cache yet", r.NodeName, key)
	}
	if o.leaf == nil && o.root.Spec.NodeName == r.NodeName {
		if o.stranded, err = r.findStrandingPromise(ctx, o.root); err != nil {
			return o, err
		}
	}
	o.unmet, err = r.findUnmetPromise(ctx, o.root)
	return o, err
}

func (r *reconciler) act(ctx context.Context, o observed, d decision) error {
	switch d := d.(type) {
	case nothing:
		return nil
	case show:
		if err := r.apply(ctx, o.root, d.status); err != nil {
			return err
		}
		r.eventHidden(o, d.status)
		return nil
	case fail:
		d, still, err := r.stillFails(ctx, &o)
		if err != nil || !still {
			return err
		}
		if d.leafPodGone {
			if gone, err := r.Proof().LeafPodGone(ctx, o.root); err != nil || !gone {
				return err
			}
		}
		if d.unmet != "" {
			if err := r.recordFailedMember(ctx, o); err != nil {
				return err
			}
		}
		if err := r.apply(ctx, o.root, d.status); err != nil {
			return err
		}
		if o.root.DeletionTimestamp == nil {
			r.eventFailed(o.root, d.status.Reason, d.status.Message)
		}
		return nil
	}
	return fmt.Errorf("unknown decision %T", d)
}

func (r *reconciler) apply(ctx context.Context, root *corev1.Pod, want corev1.PodStatus) error {
	return r.Root.ApplyStatus(ctx, actor, root, podstatus.Apply(root, podstatus.Dated(want, metav1.NewTime(r.Clock.Now()))))
}

// stillFails decides again with a live read of the root. In a stale cache, a Pod that ran or
// succeeded may look as if it had never been pushed.
func (r *reconciler) stillFails(ctx context.Context, o *observed) (fail, bool, error) {
	key := client.ObjectKeyFromObject(o.root)
	live, err := index.Find[corev1.Pod](ctx, r.HostLive, key)
	if err != nil {
		return fail{}, false, fmt.Errorf("prove that Pod %s has not ended: %w", key, err)
	}
	if live == nil || live.UID != o.root.UID {
		return fail{}, false, nil // the cache will catch up
	}
	o.root = live
	d, still := decide(*o).(fail)
	return d, still, nil
}
