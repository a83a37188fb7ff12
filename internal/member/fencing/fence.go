package fencing

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/hostrecord"
	"github.com/xylem-io/xylem/internal/member/hostrevision"
)

// annotationNextEpoch is on the host's record while a new epoch is being
// written to the member: a crash between the two writes is no restore.
const annotationNextEpoch = v1alpha1.AnnotationFenceEpoch + "-next"

// Fence is the Lease in a member that defines which manager may write there: named
// after the host's cluster ID, held and renewed by the leader, with an epoch
// that grows with each leadership and is recorded in the host too. Renewing it
// is the probe of the connection as well.
//
// Held is an answer about now: it is true only until two thirds of the lease's
// duration have passed since the last renewal was sent, on the monotonic and on
// the wall clock, so that a process that was frozen, or a machine that was
// suspended, finds itself fenced when it resumes.
type Fence struct {
	clock     clock.PassiveClock
	memberNow func() time.Time // by the member's clock
	revision  *hostrevision.Monitor
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
	suspended *access.Problem
	// restores as recorded or noticed; unconfirmed the confirmation that is lacking.
	restores    Restores
	unconfirmed string

	// known is the lease as a write of this process was last acknowledged, held or
	// not; next the epoch that it was last sent with, whose reply may be lost;
	// recorded the epoch that the host's record was last seen or left at.
	known    *coordinationv1.Lease
	next     int64
	recorded int64

	// watched is the foreign holder's lease as first seen in its present state.
	watched   *coordinationv1.Lease
	watchedAt time.Time
	// seenAlive: the foreign holder renewed while we watched.
	seenAlive bool
}

var _ guarded.Guard = (*Fence)(nil)

// Options are what a fence is made of.
type Options struct {
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
	// MemberNow is the time by the member's clock; nil: Clock's.
	MemberNow func() time.Time
	// Revision of the host.
	Revision *hostrevision.Monitor
}

// New creates a fence that is not held yet.
func New(o Options) *Fence {
	if o.MemberNow == nil && o.Clock != nil {
		o.MemberNow = o.Clock.Now
	}
	return &Fence{
		clock: o.Clock, memberNow: o.MemberNow, revision: o.Revision, member: o.Member, host: o.Host, namespace: o.Namespace,
		hostID: o.HostID, clusterID: o.ClusterID, identity: o.Identity, duration: o.Duration,
	}
}

// HeldBy reports whether the fence is, or would be, held in this name.
func (f *Fence) HeldBy(identity string) bool { return f.identity == identity }

// Through has the fence use another connection to the member. Nothing may use the fence meanwhile.
func (f *Fence) Through(member client.Client, now func() time.Time) {
	f.member, f.memberNow = member, now
}

// Held is nil while the fence is Xylem's, else it wraps guarded.ErrFenced. It is not once
// the host is known to have been restored: what is decided on caches is out of date.
func (f *Fence) Held() error {
	if err := f.revision.Restored(); err != nil {
		return fmt.Errorf("%w: %w", guarded.ErrFenced, err)
	}
	return f.Lasting()
}

// Lasting is nil while the lease was renewed lately enough that nobody else can have it.
func (f *Fence) Lasting() error {
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

// HostCurrent is nil if a live read of the host, begun now, shows that the host was
// not restored under this process; it wraps guarded.ErrSuspended if it was.
func (f *Fence) HostCurrent(ctx context.Context) error { return f.revision.Current(ctx) }

// Suspended is why destruction is suspended, nil if it is not.
func (f *Fence) Suspended() *access.Problem {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.suspended
}

// Acquire takes the fence, or says why it cannot at present: WaitingForFence
// while an earlier manager's lease runs out, HostCloned when another one goes
// on renewing it. confirmed is the registration's confirm-restore annotation.
func (f *Fence) Acquire(ctx context.Context, confirmed string) error {
	if err := f.ensureNamespace(ctx); err != nil {
		return access.Explain("create namespace "+f.namespace, err)
	}
	lease, err := hostrecord.GetLease(ctx, f.member, f.namespace, f.hostID)
	if err != nil {
		return access.Explain("read the fence", err)
	}
	if wait := f.yield(lease); wait != nil {
		return wait
	}
	if f.wentBack(lease) {
		if err := f.noteRestored(ctx, epoch(lease, v1alpha1.AnnotationFenceEpoch)); err != nil {
			return err
		}
	}
	if err := f.revision.Check(ctx); err != nil {
		return err
	}
	record, err := f.readRecord(ctx)
	if err != nil {
		return err
	}
	if record, err = f.lower(ctx, lease, record); err != nil {
		return err
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
		return access.Problemf(v1alpha1.ReasonHostCloned,
			"another manager (%q) with this host's identity holds the member's fence and renews it: two copies of the host run, or two managers without leader election. Stop one of them", holder)
	}
	return access.Problemf(v1alpha1.ReasonWaitingForFence,
		"waiting until the fence of an earlier manager (%q) expires, %s after it was last renewed", holder, lasts)
}

// take writes intent to the host, the lease to the member, and the fact to the
// host. Epochs that do not agree mean that one of the clusters was restored;
// they are left as they are, so that the evidence stays until it is confirmed.
func (f *Fence) take(ctx context.Context, lease, record *coordinationv1.Lease, confirmed string) error {
	record, err := f.date(ctx, lease, record)
	if err != nil {
		return err
	}
	there := epoch(lease, v1alpha1.AnnotationFenceEpoch)
	here, next := epochs(record)
	suspended := disagreement(there, here, next, confirmed)
	if suspended == nil {
		f.mu.Lock()
		f.unconfirmed = ""
		f.mu.Unlock()
	}
	target := there
	if suspended == nil {
		target = max(there, here, next) + 1
		if lease != nil && ptr.Deref(lease.Spec.HolderIdentity, "") == f.identity && there == here {
			target = there // the same leadership connects again
		}
	}
	return f.step(ctx, lease, record, target, suspended)
}

// step brings lease and record to an epoch. One that the record has already, or
// that is the evidence of a restore, is not recorded.
func (f *Fence) step(ctx context.Context, lease, record *coordinationv1.Lease, target int64, suspended *access.Problem) error {
	there := epoch(lease, v1alpha1.AnnotationFenceEpoch)
	records := suspended == nil && target != epoch(record, v1alpha1.AnnotationFenceEpoch)
	var err error
	if records {
		// With what is known now of the member: should the lease not follow, the
		// two agree nevertheless.
		f.recorded = there
		if record, err = f.write(ctx, f.host, hostrecord.Name(f.clusterID), record, there, target); err != nil {
			return fmt.Errorf("record the fence in the host: %w", err)
		}
	}
	sent := f.clock.Now()
	f.next = target
	if lease, err = f.write(ctx, f.member, f.hostID, lease, target, 0); err != nil {
		return access.Explain("acquire the fence", err)
	}
	f.mu.Lock()
	f.lease, f.renewed, f.suspended, f.known = lease, sent, suspended, lease
	f.mu.Unlock()
	if records {
		if _, err = f.write(ctx, f.host, hostrecord.Name(f.clusterID), record, target, 0); err != nil {
			return fmt.Errorf("record the fence in the host: %w", err)
		}
		f.recorded = target
	}
	return nil
}

// disagreement compares the member's epoch with the host's record: with the
// fact there, or with the intent, if there is one.
func disagreement(there, here, next int64, confirmed string) *access.Problem {
	token := confirmation(here, there)
	if there == here || next != 0 && there == next || confirmed == token {
		return nil
	}
	if there > here {
		return access.Problemf(v1alpha1.ReasonHostRestored,
			"the host was restored from an older state: the member has epoch %d of the fence, and the host has %d. Xylem destroys nothing in the member until you have checked its volumes and set this annotation on the registration: %s=%s",
			there, here, v1alpha1.AnnotationConfirmRestore, token)
	}
	return access.Problemf(v1alpha1.ReasonMemberRestored,
		"the member was restored from an older state: the host has epoch %d of the fence, and the member has %d. Xylem destroys nothing in the member until you have checked its volumes and set this annotation on the registration: %s=%s",
		here, there, v1alpha1.AnnotationConfirmRestore, token)
}

// confirmation is the value of the annotation that confirms a disagreement.
func confirmation(here, there int64) string {
	return fmt.Sprintf("host-%d-member-%d", here, there)
}

// Drop stops writing at once; the lease stands until it runs out.
func (f *Fence) Drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lease = nil
}

// Release releases the fence, so that the next manager need not wait.
func (f *Fence) Release(ctx context.Context) error {
	f.mu.Lock()
	lease := f.lease
	f.lease = nil
	f.mu.Unlock()
	if lease == nil {
		return nil
	}
	err := f.handBack(ctx, lease)
	if apierrors.IsConflict(err) {
		err = f.releaseRenewed(ctx, lease)
	}
	if err != nil {
		return access.Explain("release the fence", err)
	}
	return nil
}

// releaseRenewed releases a Lease that has gone on since by nothing but a renewal of
// ours, whose answer nobody waited for. Any other is left alone: another fence of this
// very process may have taken it, for another registration of the same cluster.
func (f *Fence) releaseRenewed(ctx context.Context, lease *coordinationv1.Lease) error {
	now, err := hostrecord.GetLease(ctx, f.member, f.namespace, f.hostID)
	if err != nil || now == nil {
		return err
	}
	if f.wentBack(now) {
		return f.noteRestored(ctx, epoch(now, v1alpha1.AnnotationFenceEpoch))
	}
	renewed := now.UID == lease.UID && ptr.Deref(now.Spec.HolderIdentity, "") == f.identity &&
		now.Spec.AcquireTime.Equal(lease.Spec.AcquireTime) &&
		epoch(now, v1alpha1.AnnotationFenceEpoch) == epoch(lease, v1alpha1.AnnotationFenceEpoch)
	if !renewed {
		return nil
	}
	return f.handBack(ctx, now)
}

func (f *Fence) handBack(ctx context.Context, lease *coordinationv1.Lease) error {
	released := lease.DeepCopy()
	released.Spec.HolderIdentity = nil
	return f.member.Patch(ctx, released, client.MergeFromWithOptions(lease, client.MergeFromWithOptimisticLock{}), fieldOwner)
}
