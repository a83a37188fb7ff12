package member

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
)

// annotationNextEpoch is on the host's record while a new epoch is being
// written to the member: a crash between the two writes is no restore.
const annotationNextEpoch = v1alpha1.AnnotationFenceEpoch + "-next"

// recordPrefix and a member's cluster ID name the host's record of a fence. It
// outlives the registration: registering the same cluster again finds it.
const recordPrefix = "fence-"

// Fence is the Lease in a member that says which manager may write there: named
// after the host's cluster ID, held and renewed by the leader, with an epoch
// that grows with each leadership and is recorded in the host too. Renewing it
// is the probe of the connection as well.
//
// Held is an answer about now: it is true only until two thirds of the lease's
// duration have passed since the last renewal was sent, on the monotonic and on
// the wall clock, so that a process that was frozen, or a machine that was
// suspended, finds itself fenced when it wakes.
type Fence struct {
	clock     clock.PassiveClock
	member    client.Client // live
	host      client.Client
	namespace string
	hostID    string
	clusterID string
	identity  string
	duration  time.Duration

	mu        sync.RWMutex
	lease     *coordinationv1.Lease // as last written by us; nil: not held
	renewed   time.Time
	suspended *Problem

	// watched is the foreign holder's lease as first seen in its present state.
	watched   *coordinationv1.Lease
	watchedAt time.Time
	// seenAlive: the foreign holder renewed while we watched.
	seenAlive bool
}

var _ guarded.Guard = (*Fence)(nil)

// FenceOptions are what a fence is made of.
type FenceOptions struct {
	Clock clock.PassiveClock
	// Member and Host, both bypassing caches.
	Member, Host client.Client
	// Namespace of the lease in the member, and of its record in the host.
	Namespace string
	// HostID and ClusterID are the identities of the host and of the member.
	HostID, ClusterID string
	// Identity of this process, unlike that of any other.
	Identity string
	// Duration is how long the fence outlives its holder.
	Duration time.Duration
}

// NewFence makes a fence that is not held yet.
func NewFence(o FenceOptions) *Fence {
	return &Fence{
		clock: o.Clock, member: o.Member, host: o.Host, namespace: o.Namespace,
		hostID: o.HostID, clusterID: o.ClusterID, identity: o.Identity, duration: o.Duration,
	}
}

// Held is nil while the fence is ours, else it wraps guarded.ErrFenced.
func (f *Fence) Held() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	now, deadline := f.clock.Now(), f.duration*2/3
	if f.lease == nil || now.Sub(f.renewed) > deadline || now.Round(0).Sub(f.renewed.Round(0)) > deadline {
		return fmt.Errorf("%w: it was last renewed %s", guarded.ErrFenced, f.renewed.Format(time.RFC3339))
	}
	return nil
}

// MayDestroy is nil unless one of the two clusters was restored from an older
// state and no admin has confirmed it; else it wraps guarded.ErrSuspended.
func (f *Fence) MayDestroy() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.suspended != nil {
		return fmt.Errorf("%w: %s", guarded.ErrSuspended, f.suspended.Message)
	}
	return nil
}

// Suspended is why destruction is suspended, nil if it is not.
func (f *Fence) Suspended() *Problem {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.suspended
}

// Acquire takes the fence, or says why it cannot at present: WaitingForFence
// while an earlier manager's lease runs out, HostCloned when another one goes
// on renewing it. confirmed is the registration's confirm-restore annotation.
func (f *Fence) Acquire(ctx context.Context, confirmed string) error {
	if err := f.ensureNamespace(ctx); err != nil {
		return explain("make namespace "+f.namespace, err)
	}
	lease, err := getLease(ctx, f.member, f.namespace, f.hostID)
	if err != nil {
		return explain("read the fence", err)
	}
	if wait := f.yield(lease); wait != nil {
		return wait
	}
	record, err := getLease(ctx, f.host, f.namespace, recordPrefix+f.clusterID)
	if err != nil {
		return fmt.Errorf("read the host's record of the fence: %w", err)
	}
	return f.take(ctx, lease, record, confirmed)
}

// yield is the reason not to take a lease that somebody else holds, until it
// has stood still for as long as it is meant to last, by our own clock.
func (f *Fence) yield(lease *coordinationv1.Lease) error {
	holder := ""
	if lease != nil {
		holder = ptr.Deref(lease.Spec.HolderIdentity, "")
	}
	if holder == "" || holder == f.identity {
		f.watched, f.seenAlive = nil, false
		return nil
	}
	now := f.clock.Now()
	if f.watched == nil || f.watched.ResourceVersion != lease.ResourceVersion {
		f.seenAlive = f.watched != nil && ptr.Deref(f.watched.Spec.HolderIdentity, "") == holder
		f.watched, f.watchedAt = lease, now
	}
	lasts := max(f.duration, time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second)
	left := lasts - now.Sub(f.watchedAt)
	switch {
	case left <= 0:
		return nil
	case f.seenAlive:
		return problem(v1alpha1.ReasonHostCloned,
			"another manager with this host's identity (%s) holds the fence there and goes on renewing it: two copies of the host, or two managers without leader election, are running; stop one of them", holder)
	}
	return problem(v1alpha1.ReasonWaitingForFence,
		"an earlier manager (%s) held the fence there; waiting for it to run out, %s from when it was last renewed", holder, lasts)
}

// take writes intent to the host, the lease to the member, and the fact to the
// host. Epochs that do not agree mean that one of the clusters was restored;
// they are left as they are, so that the evidence stays until it is confirmed.
func (f *Fence) take(ctx context.Context, lease, record *coordinationv1.Lease, confirmed string) error {
	there, here, next := epoch(lease, v1alpha1.AnnotationFenceEpoch), epoch(record, v1alpha1.AnnotationFenceEpoch), epoch(record, annotationNextEpoch)
	suspended := disagreement(there, here, next, confirmed)
	target := there
	if suspended == nil {
		target = max(there, here, next) + 1
		if lease != nil && ptr.Deref(lease.Spec.HolderIdentity, "") == f.identity && there == here {
			target = there // the same leadership connects again
		}
	}
	var err error
	if suspended == nil && target != here {
		// With what is known by now of the member: should the lease not follow, the
		// two agree none the less.
		if record, err = f.write(ctx, f.host, recordPrefix+f.clusterID, record, there, target); err != nil {
			return fmt.Errorf("record the fence in the host: %w", err)
		}
	}
	sent := f.clock.Now()
	if lease, err = f.write(ctx, f.member, f.hostID, lease, target, 0); err != nil {
		return explain("take the fence", err)
	}
	if suspended == nil && target != here {
		if _, err = f.write(ctx, f.host, recordPrefix+f.clusterID, record, target, 0); err != nil {
			return fmt.Errorf("record the fence in the host: %w", err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lease, f.renewed, f.suspended = lease, sent, suspended
	return nil
}

// disagreement compares the member's epoch with the host's record: with the
// fact there, or with the intent, if there is one.
func disagreement(there, here, next int64, confirmed string) *Problem {
	token := fmt.Sprintf("host-%d-member-%d", here, there)
	if there == here || next != 0 && there == next || confirmed == token {
		return nil
	}
	if there > here {
		return problem(v1alpha1.ReasonHostRestored,
			"the member has seen leadership %d of this host, the host remembers %d: the host was restored from an older state. Nothing is destroyed in the member until you have checked its volumes and annotated this registration %s=%s",
			there, here, v1alpha1.AnnotationConfirmRestore, token)
	}
	return problem(v1alpha1.ReasonMemberRestored,
		"the host remembers leadership %d, the member has seen %d: the member was restored from an older state. Nothing is destroyed there until you have checked its volumes and annotated this registration %s=%s",
		here, there, v1alpha1.AnnotationConfirmRestore, token)
}

// Renew renews the fence, and thereby probes the member. A lease that is no
// longer as we wrote it is lost.
func (f *Fence) Renew(ctx context.Context) error {
	f.mu.RLock()
	lease := f.lease
	f.mu.RUnlock()
	if lease == nil {
		return fmt.Errorf("renew: %w", guarded.ErrFenced)
	}
	sent := f.clock.Now()
	renewed, err := f.renew(ctx, lease, sent)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		if lease, err = f.reread(ctx); err != nil {
			return err
		}
		renewed, err = f.renew(ctx, lease, sent)
	}
	if err != nil {
		return explain("renew the fence", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lease != nil {
		f.lease, f.renewed = renewed, sent
	}
	return nil
}

func (f *Fence) renew(ctx context.Context, lease *coordinationv1.Lease, at time.Time) (*coordinationv1.Lease, error) {
	renewed := lease.DeepCopy()
	renewed.Spec.RenewTime = &metav1.MicroTime{Time: at}
	return renewed, f.member.Patch(ctx, renewed, client.MergeFromWithOptions(lease, client.MergeFromWithOptimisticLock{}), fieldOwner)
}

// reread resolves a conflict: the lease is still ours, by our own renewal whose
// reply was lost or with somebody's edit, or it is somebody else's. Ours has to
// be renewed all the same: who watches it goes by when it last moved.
func (f *Fence) reread(ctx context.Context) (*coordinationv1.Lease, error) {
	now, err := getLease(ctx, f.member, f.namespace, f.hostID)
	if err != nil {
		return nil, explain("read the fence", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if now == nil {
		// What this member lacks is no evidence before it has said again who it is.
		f.lease = nil
		return nil, problem(v1alpha1.ReasonUnreachable, "the fence is gone: was the member made anew, or restored?")
	}
	if f.lease == nil || ptr.Deref(now.Spec.HolderIdentity, "") != f.identity ||
		epoch(now, v1alpha1.AnnotationFenceEpoch) != epoch(f.lease, v1alpha1.AnnotationFenceEpoch) {
		f.lease = nil
		return nil, problem(v1alpha1.ReasonHostCloned, "another manager with this host's identity took the fence")
	}
	return now, nil
}

// Drop stops writing at once; the lease stands until it runs out.
func (f *Fence) Drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lease = nil
}

// Release gives the fence back, so that the next manager need not wait.
func (f *Fence) Release(ctx context.Context) error {
	f.mu.Lock()
	lease := f.lease
	f.lease = nil
	f.mu.Unlock()
	if lease == nil {
		return nil
	}
	released := lease.DeepCopy()
	released.Spec.HolderIdentity = nil
	if err := f.member.Patch(ctx, released, client.MergeFromWithOptions(lease, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
		return explain("release the fence", err)
	}
	return nil
}

const fieldOwner = client.FieldOwner("xylem-fence")

// write creates a lease, or takes it over on condition that it is still as it
// was read. next of 0 leaves no intent.
func (f *Fence) write(ctx context.Context, to client.Client, name string, was *coordinationv1.Lease, epoch, next int64) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
	if was != nil {
		lease = was.DeepCopy()
	}
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	lease.Labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedByValue
	lease.Labels[v1alpha1.LabelHost] = f.hostID
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[v1alpha1.AnnotationFenceEpoch] = strconv.FormatInt(epoch, 10)
	delete(lease.Annotations, annotationNextEpoch)
	if next != 0 {
		lease.Annotations[annotationNextEpoch] = strconv.FormatInt(next, 10)
	}
	now := metav1.NewMicroTime(f.clock.Now())
	lease.Spec.HolderIdentity = &f.identity
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(max(f.duration/time.Second, 1))) //nolint:gosec // a duration has 292 years at most: 2^33 s, and nobody's fence outlives 2^31
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
	if was == nil {
		return lease, to.Create(ctx, lease, fieldOwner)
	}
	return lease, to.Patch(ctx, lease, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}), fieldOwner)
}

func (f *Fence) ensureNamespace(ctx context.Context) error {
	var namespace corev1.Namespace
	err := f.member.Get(ctx, client.ObjectKey{Name: f.namespace}, &namespace)
	if !apierrors.IsNotFound(err) {
		return err
	}
	err = f.member.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   f.namespace,
		Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue},
	}}, fieldOwner)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// getLease reads a lease live; nil if there is none.
func getLease(ctx context.Context, from client.Client, namespace, name string) (*coordinationv1.Lease, error) {
	var lease coordinationv1.Lease
	if err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &lease); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &lease, nil
}

// epoch reads a number off a lease; 0 where there is none.
func epoch(lease *coordinationv1.Lease, annotation string) int64 {
	if lease == nil {
		return 0
	}
	n, err := strconv.ParseInt(lease.Annotations[annotation], 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
