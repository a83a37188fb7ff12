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
	"github.com/xylem-io/xylem/internal/member/fencing/epoch"
	"github.com/xylem-io/xylem/internal/member/hostrecord"
	"github.com/xylem-io/xylem/internal/member/hostrevision"
	"github.com/xylem-io/xylem/internal/member/restores"
	"github.com/xylem-io/xylem/internal/proof/batch"
)

// Fence is the Lease in a member that decides which manager may write there. Its name is the host's
// cluster ID. The leader holds and renews it. Its epoch grows with each leadership, and the host's
// record contains the epoch too. Renewing the Lease also probes the connection.
//
// Held returns nil only until two thirds of the Lease's duration have passed since the last
// renewal was sent, by the monotonic and the wall clock. So a process that was frozen, or a
// machine that was suspended, is fenced when it resumes.
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
	lease     *coordinationv1.Lease // as last written by this process; nil if not held
	renewed   time.Time
	suspended *access.Problem
	// restores are the recorded or detected restores. unconfirmed is the confirmation that an admin
	// has not given yet.
	restores    restores.Times
	unconfirmed string

	// known is the Lease as of the last acknowledged write of this process, held or not. next is
	// the last epoch sent, whose response may have been lost. recorded is the lowest epoch that the
	// host's record may have. The fields above and these are guarded by mu.
	known    *coordinationv1.Lease
	next     int64
	recorded int64
	// seen are the revisions of the caches, and fenced are those of them that the last renewal covers.
	// Both are guarded by mu.
	seen, fenced revisions

	// proving shares the reads of MemberCurrent.
	proving batch.Reads[struct{}, struct{}]

	// watched is the other holder's Lease when it was first read in its current state. Only Acquire
	// uses it.
	watched   *coordinationv1.Lease
	watchedAt time.Time
	// seenAlive reports whether the other holder renewed the Lease while this process watched it.
	seenAlive bool
}

var _ guarded.Guard = (*Fence)(nil)

// Options are the dependencies and identities of a fence.
type Options struct {
	Clock clock.PassiveClock
	// Member and Host bypass caches.
	Member, Host client.Client
	// Namespace is the namespace of the Lease in the member, and of its record in the host.
	Namespace string
	// HostID and ClusterID are the identities of the host and the member.
	HostID, ClusterID string
	// Identity is unique to this process and registration.
	Identity string
	// Duration is how long the Lease remains valid after its last renewal.
	Duration time.Duration
	// MemberNow returns the time by the member's clock. It defaults to Clock.
	MemberNow func() time.Time
	// Revision detects restores of the host.
	Revision *hostrevision.Monitor
}

// New creates a fence that is not yet held.
func New(o Options) *Fence {
	if o.MemberNow == nil && o.Clock != nil {
		o.MemberNow = o.Clock.Now
	}
	return &Fence{
		clock: o.Clock, memberNow: o.MemberNow, revision: o.Revision, member: o.Member, host: o.Host, namespace: o.Namespace,
		hostID: o.HostID, clusterID: o.ClusterID, identity: o.Identity, duration: o.Duration,
	}
}

// HeldBy reports whether this fence uses the given holder identity.
func (f *Fence) HeldBy(identity string) bool { return f.identity == identity }

// Through makes the fence use another connection to the member. The caller must not use the fence
// concurrently.
func (f *Fence) Through(member client.Client, now func() time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.member, f.memberNow = member, now
}

// Held returns nil while this process holds the fence; otherwise, the error wraps
// guarded.ErrFenced. After a restore of the host, it is not held, because the caches are wrong.
func (f *Fence) Held() error {
	if err := f.revision.Restored(); err != nil {
		return fmt.Errorf("%w: %w", guarded.ErrFenced, err)
	}
	return f.Lasting()
}

// Lasting returns nil as long as the last renewal is so recent that no other manager can hold the
// Lease.
func (f *Fence) Lasting() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	now, deadline := f.clock.Now(), f.duration*2/3
	if f.lease == nil || now.Sub(f.renewed) > deadline || now.Round(0).Sub(f.renewed.Round(0)) > deadline {
		return fmt.Errorf("%w: the last renewal was at %s", guarded.ErrFenced, f.renewed.Format(time.RFC3339))
	}
	return nil
}

// MayDestroy returns an error that wraps guarded.ErrSuspended if one of the clusters was
// restored from an older state and no admin has confirmed it.
func (f *Fence) MayDestroy() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.suspended != nil {
		return fmt.Errorf("%w: %s", guarded.ErrSuspended, f.suspended.Message)
	}
	return nil
}

// HostCurrent returns nil if a live read of the host, started after the call, shows that the host
// was not restored while this process ran. Otherwise, the error wraps guarded.ErrSuspended.
func (f *Fence) HostCurrent(ctx context.Context) error { return f.revision.Current(ctx) }

// Suspended returns why destruction is suspended, or nil.
func (f *Fence) Suspended() *access.Problem {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.suspended
}

// Acquire acquires the fence, or returns why it cannot: WaitingForFence until an earlier manager's
// Lease expires, or HostCloned if another manager keeps renewing it. confirmed is the value of the
// registration's confirm-restore annotation.
func (f *Fence) Acquire(ctx context.Context, confirmed string) error {
	if err := f.ensureNamespace(ctx); err != nil {
		return err
	}
	known := f.lastKnown()
	lease, err := hostrecord.GetLease(ctx, f.member, f.namespace, f.hostID)
	if err != nil {
		return access.Explain("read the fence", err)
	}
	if wait := f.yield(lease); wait != nil {
		return wait
	}
	restored := wentBack(lease, known)
	if !restored && lease != nil && ptr.Deref(lease.Spec.HolderIdentity, "") == f.identity { // no other manager has renewed it since
		if restored, err = f.lacks(ctx, f.unfenced()); err != nil {
			return err
		}
	}
	if restored {
		if err := f.noteRestored(ctx, epoch.Of(lease)); err != nil {
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
	if err := f.take(ctx, lease, record, confirmed); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen, f.fenced = nil, nil // the next link has new caches
	return nil
}

// yield returns why the fence must not take a Lease that another manager holds. It returns nil once
// the Lease has not changed for its whole duration, by this process's clock.
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
			"another manager (%q) with this host's identity holds the member's fence and renews it: two copies of the host are running, or two managers run without leader election. Stop one of them", holder)
	}
	return access.Problemf(v1alpha1.ReasonWaitingForFence,
		"waiting until the fence of an earlier manager (%q) expires, %s after it was last renewed", holder, lasts)
}

// take writes the intended epoch to the host, the Lease to the member, and the reached epoch to the
// host. Epochs that disagree mean that one of the clusters was restored. take does not change such
// epochs, so that the evidence remains until an admin confirms the restore.
func (f *Fence) take(ctx context.Context, lease, record *coordinationv1.Lease, confirmed string) error {
	record, err := f.date(ctx, lease, record)
	if err != nil {
		return err
	}
	there := epoch.Of(lease)
	in := epoch.In(record)
	suspended := epoch.Disagreement(there, in, confirmed)
	target := there
	if suspended == nil {
		f.mu.Lock()
		f.unconfirmed = ""
		f.mu.Unlock()
		reconnects := lease != nil && ptr.Deref(lease.Spec.HolderIdentity, "") == f.identity && there == in.Here
		if !reconnects { // the same leadership keeps its epoch
			target = in.After(there)
		}
	}
	return f.step(ctx, lease, record, target, suspended)
}

// step sets the Lease and the record to an epoch. It does not record an epoch that the record
// already contains, or one that is evidence of a restore.
func (f *Fence) step(ctx context.Context, lease, record *coordinationv1.Lease, target int64, suspended *access.Problem) error {
	there := epoch.Of(lease)
	records := suspended == nil && target != epoch.Of(record)
	var err error
	if records {
		// Record the member's epoch as well, so that the two agree even if the write to the member
		// fails.
		if record, err = f.putEpoch(ctx, record, there, target); err != nil {
			return fmt.Errorf("record the fence in the host: %w", err)
		}
	}
	sent := f.clock.Now()
	f.mu.Lock()
	f.next = target
	f.mu.Unlock()
	if lease, err = f.write(ctx, f.member, f.hostID, lease, target, 0); err != nil {
		return access.ExplainWrite("acquire the fence", f.name(), f.namespace, err)
	}
	f.mu.Lock()
	f.lease, f.renewed, f.suspended, f.known = lease, sent, suspended, lease
	f.mu.Unlock()
	if records {
		if _, err = f.putEpoch(ctx, record, target, 0); err != nil {
			return fmt.Errorf("record the fence in the host: %w", err)
		}
	}
	return nil
}

// putEpoch writes an epoch, and the next intended one, to the host's record. Whether or not a
// failed write has arrived, the epoch that a later read finds is not evidence of a restore.
func (f *Fence) putEpoch(ctx context.Context, record *coordinationv1.Lease, at, next int64) (*coordinationv1.Lease, error) {
	f.mu.Lock()
	f.recorded = min(f.recorded, at)
	f.mu.Unlock()
	record, err := f.write(ctx, f.host, hostrecord.Name(f.clusterID), record, at, next)
	if err == nil {
		f.mu.Lock()
		f.recorded = at
		f.mu.Unlock()
	}
	return record, err
}

// lastKnown returns the Lease as of the last acknowledged write of this process, or nil.
func (f *Fence) lastKnown() *coordinationv1.Lease {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.known
}

// Drop stops all writes immediately. The Lease remains until it expires.
func (f *Fence) Drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lease = nil
}

// Release releases the fence, so that the next manager does not have to wait.
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
		return access.ExplainWrite("release the fence", f.name(), f.namespace, err)
	}
	return nil
}

// releaseRenewed releases a Lease that changed only because this fence renewed it and the response
// was lost. It leaves any other Lease alone, because another fence of this process may have taken
// it for another registration of the same cluster.
func (f *Fence) releaseRenewed(ctx context.Context, lease *coordinationv1.Lease) error {
	known := f.lastKnown()
	now, err := hostrecord.GetLease(ctx, f.member, f.namespace, f.hostID)
	if err != nil || now == nil {
		return err
	}
	if wentBack(now, known) {
		return f.noteRestored(ctx, epoch.Of(now))
	}
	renewed := now.UID == lease.UID && ptr.Deref(now.Spec.HolderIdentity, "") == f.identity &&
		now.Spec.AcquireTime.Equal(lease.Spec.AcquireTime) &&
		epoch.Of(now) == epoch.Of(lease)
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
