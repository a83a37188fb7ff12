package claimtrace

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/route/urgency"
	"github.com/xylem-io/xylem/internal/timeline"
	"github.com/xylem-io/xylem/internal/tracing"
)

const (
	// Name is the name of the controller.
	Name = "claim_trace"
	// workers is 1, because nothing waits for a trace.
	workers = 1
	// remembered is the maximum number of exported claims that are remembered. A claim beyond that
	// may be exported again, in the same trace with the same spans.
	remembered = 16384
)

// Exports records which claims of all members this process has exported.
type Exports struct {
	tracer *tracing.Tracer
	clock  clock.PassiveClock

	mu       sync.Mutex
	since    time.Time
	exported *lru.Cache // UIDs of claims
}

// NewExports returns Exports for a tracer.
func NewExports(t *tracing.Tracer, c clock.PassiveClock) *Exports {
	return &Exports{tracer: t, clock: c, exported: lru.New(remembered)}
}

// begin returns when this manager became the leader, in whole seconds. This is when it
// set up its first Link.
func (e *Exports) begin() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.since.IsZero() {
		e.since = e.clock.Now().Truncate(time.Second)
	}
	return e.since
}

type reconciler struct {
	*member.Link
	exports *Exports
	since   time.Time
}

// Setup adds the controller to a member's Link.
func Setup(link *member.Link, e *Exports) error {
	r := &reconciler{link, e, e.begin()}
	return link.Controller(Name, workers, r,
		urgency.Unhurried(urgency.Never, link.RootSource(&corev1.PersistentVolumeClaim{}, r.ofClaim, ofVolume)),
		urgency.Unhurried(urgency.Never, link.RootSource(&corev1.PersistentVolume{}, link.Own(r.ofClaimRef), ofLeaf)),
		urgency.Unhurried(urgency.Never, link.RootSource(&corev1.Pod{}, ofPod, ofStart)),
		urgency.Unhurried(urgency.Never, link.LeafSource(&corev1.PersistentVolumeClaim{}, ofLeafClaim)),
	)
}

// ofVolume reports whether an update of a claim changes its volume or its phase.
var ofVolume = route.Of(func(claim *corev1.PersistentVolumeClaim) [3]string {
	return [3]string{string(claim.UID), claim.Spec.VolumeName, string(claim.Status.Phase)}
})

// ofLeaf reports whether an update of a host PV changes its leaf, its claim or its phase.
var ofLeaf = route.Of(func(pv *corev1.PersistentVolume) [3]string {
	_, _, leaf, _ := hostpv.LeafOf(pv)
	return [3]string{string(leaf), string(ptr.Deref(pv.Spec.ClaimRef, corev1.ObjectReference{}).UID), string(pv.Status.Phase)}
})

// ofStart reports whether an update of a Pod shows that all its containers have started.
var ofStart = route.Of(func(pod *corev1.Pod) [2]string {
	started := ""
	if settled(pod) {
		started = "started"
	}
	return [2]string{string(pod.UID), started}
})

func (r *reconciler) ofClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Status.Phase != corev1.ClaimBound || r.exports.done(claim.UID) {
		return nil
	}
	return member.SameKey(ctx, obj)
}

func (r *reconciler) ofClaimRef(_ context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil || pv.Status.Phase != corev1.VolumeBound || r.exports.done(pv.Spec.ClaimRef.UID) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: hostpv.ClaimKey(pv)}}
}

// ofPod enqueues the claims of a Pod whose containers have all started.
func ofPod(_ context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || !settled(pod) {
		return nil
	}
	return route.ClaimsOf(pod)
}

func ofLeafClaim(ctx context.Context, obj client.Object) []reconcile.Request {
	leaf, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || leaf.Status.Phase != corev1.ClaimBound {
		return nil
	}
	return member.SameKey(ctx, obj)
}

// Reconcile exports one claim, unless it was already exported.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	export, again := decide(o)
	if !export || r.exports.done(o.claim.UID) {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	if r.exports.tracer.Samples(o.claim.UID) {
		if err := r.export(ctx, o); err != nil {
			return reconcile.Result{}, err
		}
	}
	r.exports.exported.Add(o.claim.UID, true)
	return reconcile.Result{}, nil
}

func (r *reconciler) observe(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{now: r.exports.clock.Now(), since: r.since}
	var err error
	if o.claim, err = index.Find[corev1.PersistentVolumeClaim](ctx, r.Host, key); err != nil || o.claim == nil || r.exports.done(o.claim.UID) {
		return o, err
	}
	if o.volume, err = index.Find[corev1.PersistentVolume](ctx, r.Host, index.Named(o.claim.Spec.VolumeName)); err != nil || o.volume == nil {
		return o, err
	}
	cluster, leafName, leafUID, ok := hostpv.LeafOf(o.volume)
	if !ok || cluster != r.ClusterID {
		return o, nil
	}
	leaf, origin, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, r.Cache, r.HostID, key)
	if err != nil {
		return o, err
	}
	if leaf != nil && origin.UID == o.claim.UID {
		o.leaf = leaf
	}
	pv, err := index.Find[corev1.PersistentVolume](ctx, r.Cache, index.Named(leafName))
	if err != nil {
		return o, err
	}
	if pv != nil && pv.UID == leafUID {
		o.leafVolume = pv
	}
	pods, err := index.PodsOfClaim(ctx, r.Host, key)
	if err != nil {
		return o, err
	}
	for i := range pods {
		o.pods = append(o.pods, &pods[i])
	}
	return o, nil
}

// export queues the spans of the claim, whose managedFields it reads live.
func (r *reconciler) export(ctx context.Context, o observed) error {
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.HostLive, client.ObjectKeyFromObject(o.claim))
	if err != nil || claim == nil || claim.UID != o.claim.UID {
		return err
	}
	pod := timeline.FirstPod(o.pods)
	c := tracing.Claim{
		Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, Member: r.Registration, Created: claim.CreationTimestamp.Time,
		Steps: timeline.Of(timeline.Objects{Claim: claim, Volume: o.volume, Pod: pod, LeafClaim: o.leaf, LeafVolume: o.leafVolume}),
	}
	if pod != nil {
		c.Pod = pod.Name
	}
	r.exports.tracer.Export(ctx, c)
	return nil
}

// done reports whether a claim was exported, or skipped by sampling.
func (e *Exports) done(claim types.UID) bool {
	_, done := e.exported.Get(claim)
	return done
}
