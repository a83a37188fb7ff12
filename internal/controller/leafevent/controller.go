package leafevent

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

const (
	// Name is the name of the controller.
	Name  = "leaf_event"
	actor = guarded.Actor("leaf-event")

	// workers is the number of concurrent reconciles. Nothing waits for events.
	workers = 2

	// eventPause is the minimum time between two writes of one event.
	eventPause = 10 * time.Second
	// writtenEventsLimit is the maximum number of events whose last write is kept in memory. For others,
	// the controller reads the host's event before it writes.
	writtenEventsLimit = 4096
)

// reconciler copies one member's events to the host.
type reconciler struct {
	*member.Link
	written *lru.Cache // UID of the leaf event -> written
	// budget limits the writes for each root, and for all roots of the member.
	budget *guarded.ObjectRate
}

// lastWrite is the last write of an event and its time.
type lastWrite struct {
	occurrence occurrence
	at         time.Time
}

// +kubebuilder:rbac:groups="",resources=events,verbs=get;create;patch
// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims,verbs=get;list;watch

// SetupWithLink adds the controller to a Link.
func SetupWithLink(link *member.Link) error {
	r := &reconciler{Link: link, written: lru.New(writtenEventsLimit), budget: newEventBudget()}
	return link.AddController(Name, workers, r, link.LeafObjectSource(&corev1.Event{}, eventToRequests))
}

// eventToRequests enqueues an event if it may be about a leaf.
func eventToRequests(_ context.Context, obj client.Object) []reconcile.Request {
	event, ok := obj.(*corev1.Event)
	if !ok || kindOfEventObject(event) == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(event)}}
}

// Reconcile copies one event to its root.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observeEvent(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch judgeRelevance(o) {
	case ignored:
		return reconcile.Result{}, nil
	case unsettled:
		return reconcile.Result{RequeueAfter: settlingCheckInterval}, nil
	case relevant:
	}
	news := occurrenceOf(o.event)
	if last, ok := r.lastWriteOf(o.event.UID); ok {
		if last.occurrence == news {
			return reconcile.Result{}, nil
		}
		if pause := last.at.Add(eventPause).Sub(o.now); pause > 0 {
			return reconcile.Result{RequeueAfter: pause}, nil
		}
	}
	if r.budget.TakeToken(o.root.GetUID(), o.now) > 0 {
		return reconcile.Result{RequeueAfter: budgetRefill}, nil
	}
	if err := r.writeHostEvent(ctx, newHostEvent(o)); err != nil {
		return reconcile.Result{}, err
	}
	r.written.Add(o.event.UID, lastWrite{occurrence: news, at: o.now})
	return reconcile.Result{}, nil
}

func (r *reconciler) lastWriteOf(event types.UID) (lastWrite, bool) {
	value, ok := r.written.Get(event)
	if !ok {
		return lastWrite{}, false
	}
	last, ok := value.(lastWrite)
	return last, ok
}

// writeHostEvent creates the event in the host, or updates the existing copy.
func (r *reconciler) writeHostEvent(ctx context.Context, want *corev1.Event) error {
	var there corev1.Event
	exists, err := index.GetIfExists(ctx, r.HostLive, client.ObjectKeyFromObject(want), &there)
	switch {
	case err != nil:
		return err
	case !exists:
		err = r.HostWriter.CreateOwned(ctx, actor, want)
		if apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil // the namespace is terminating, so no user needs the event
		}
		return err
	}
	after := updatedEvent(&there, want)
	if after == nil {
		return nil
	}
	return r.HostWriter.PatchOwned(ctx, actor, &there, after)
}

func (r *reconciler) observeEvent(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{member: r.Member, now: r.Clock.Now()}
	var event corev1.Event
	if exists, err := index.GetIfExists(ctx, r.Cache, key, &event); err != nil || !exists {
		return o, err
	}
	o.event = &event
	leaf, root := newObjectsOfKind(kindOfEventObject(&event))
	if leaf == nil {
		return o, nil
	}
	about := client.ObjectKey{Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name}
	if exists, err := index.GetIfExists(ctx, r.Cache, about, leaf); err != nil || !exists {
		return o, err
	}
	o.leaf = leaf
	origin, ours := mirror.LeafOriginFromHost(r.HostID, leaf)
	if !ours {
		return o, nil
	}
	if exists, err := index.GetIfExists(ctx, r.Host, origin.Root, root); err != nil || !exists {
		return o, err
	}
	o.root = root
	return o, nil
}

// newObjectsOfKind returns empty objects of a kind for the leaf and the root, or nil if events of the
// kind are ignored.
func newObjectsOfKind(kind string) (leaf, root client.Object) {
	switch kind {
	case "Pod":
		return &corev1.Pod{}, &corev1.Pod{}
	case "PersistentVolumeClaim":
		return &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{}
	}
	return nil, nil
}
