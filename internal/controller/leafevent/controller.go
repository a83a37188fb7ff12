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
	// Name of the controller.
	Name  = "leaf_event"
	actor = guarded.Actor("leaf-event")

	// workers: events are repeated, not acted on; nothing waits for them.
	workers = 2

	// eventPause is the least time between two writes of one event.
	eventPause = 10 * time.Second
	// remembered is of how many events it is known what was written last. Of
	// more, some are read from the host again before they are written.
	remembered = 4096
)

// reconciler repeats one member's events.
type reconciler struct {
	*member.Link
	written *lru.Cache // UID of the leaf event -> written
	budget  *budget
}

// written is what was written last of an event, and when.
type written struct {
	told told
	at   time.Time
}

// +kubebuilder:rbac:groups="",resources=events,verbs=get;create;patch
// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims,verbs=get;list;watch

// Setup adds the controller to a Link.
func Setup(link *member.Link) error {
	r := &reconciler{Link: link, written: lru.New(remembered), budget: newBudget()}
	return link.Controller(Name, workers, r, link.LeafSource(&corev1.Event{}, ofEvent))
}

// ofEvent is an event that may be about a leaf of Xylem's.
func ofEvent(_ context.Context, obj client.Object) []reconcile.Request {
	event, ok := obj.(*corev1.Event)
	if !ok || kindOf(event) == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(event)}}
}

// Reconcile repeats one event.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch judge(o) {
	case ignored:
		return reconcile.Result{}, nil
	case unsettled:
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	case relevant:
	}
	news := occurrences(o.event)
	if last, ok := r.last(o.event.UID); ok {
		if last.told == news {
			return reconcile.Result{}, nil
		}
		if pause := last.at.Add(eventPause).Sub(o.now); pause > 0 {
			return reconcile.Result{RequeueAfter: pause}, nil
		}
	}
	if !r.budget.spend(o.root.GetUID(), o.now) {
		return reconcile.Result{RequeueAfter: budgetRefill}, nil
	}
	if err := r.repeat(ctx, repeated(o)); err != nil {
		return reconcile.Result{}, err
	}
	r.written.Add(o.event.UID, written{told: news, at: o.now})
	return reconcile.Result{}, nil
}

func (r *reconciler) last(event types.UID) (written, bool) {
	value, ok := r.written.Get(event)
	if !ok {
		return written{}, false
	}
	last, ok := value.(written)
	return last, ok
}

// repeat makes the event in the host, or brings up to date the one that was
// made before.
func (r *reconciler) repeat(ctx context.Context, want *corev1.Event) error {
	var there corev1.Event
	exists, err := index.Get(ctx, r.HostLive, client.ObjectKeyFromObject(want), &there)
	switch {
	case err != nil:
		return err
	case !exists:
		err = r.Root.Create(ctx, actor, want)
		if apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil // nobody is left to read it
		}
		return err
	}
	after := brought(&there, want)
	if after == nil {
		return nil
	}
	return r.Root.Patch(ctx, actor, &there, after)
}

func (r *reconciler) observe(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{member: r.Member, now: r.Clock.Now()}
	var event corev1.Event
	if exists, err := index.Get(ctx, r.Cache, key, &event); err != nil || !exists {
		return o, err
	}
	o.event = &event
	leaf, root := objects(kindOf(&event))
	if leaf == nil {
		return o, nil
	}
	about := client.ObjectKey{Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name}
	if exists, err := index.Get(ctx, r.Cache, about, leaf); err != nil || !exists {
		return o, err
	}
	o.leaf = leaf
	origin, ours := mirror.OriginIn(r.HostID, leaf)
	if !ours {
		return o, nil
	}
	if exists, err := index.Get(ctx, r.Host, origin.Root, root); err != nil || !exists {
		return o, err
	}
	o.root = root
	return o, nil
}

// objects to read the leaf and the root of a kind into.
func objects(kind string) (leaf, root client.Object) {
	switch kind {
	case "Pod":
		return &corev1.Pod{}, &corev1.Pod{}
	case "PersistentVolumeClaim":
		return &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{}
	}
	return nil, nil
}
