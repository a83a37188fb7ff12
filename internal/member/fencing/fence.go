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
	"github.com/xylem-io/xylem/internal/proof"
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
	revision  *RevisionMonitor
	member    client.Client // live
	host      client.Client
	namespace string
	hostID    string
	clusterID string
	identity  string
	duration  time.Duration

	mu         sync.RWMutex
	lease      *coordinationv1.Lease // as last written by this process; nil if not held
	renewed    time.Time
	suspension *access.ConnectionProblem
	// restoreTimes are the recorded or detected restores. unconfirmed is the confirmation that an admin
	// has not given yet.
	restoreTimes       RestoreTimes
	unconfirmedRestore string

	// lastWritten is the Lease as of the last acknowledged write of this process, held or not. next is
	// the last epoch sent, whose response may have been lost. recorded is the lowest epoch that the
	// host's record may have. The fields above and these are guarded by mu.
	lastWritten         *coordinationv1.Lease
	lastSentEpoch       int64
	lowestRecordedEpoch int64
	// seenRevisions are the revisions of the caches, and fenced are those of them that the last renewal covers.
	// Both are guarded by mu.
	seenRevisions, fencedRevisions kindRevisions

	// currentProofs shares the reads of CheckMemberCurrent.
	currentProofs proof.SharedReads[struct{}, struct{}]

	// watchedLease is the other holder's Lease when it was first read in its current state. Only AcquireLease
	// uses it.
	watchedLease *coordinationv1.Lease
	watchedAt    time.Time
	// seenAlive reports whether the other holder renewed the Lease while this process watched it.
	seenAlive bool
}

var _ guarded.Guard = (*Fence)(nil)

// FenceOptions are the dependencies and identities of a fence.
type FenceOptions struct {
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
	Revision *RevisionMonitor
}

// NewFence creates a fence that is not yet held.
func NewFence(o FenceOptions) *Fence {
	if o.MemberNow == nil && o.Clock != nil {
		o.MemberNow = o.Clock.Now
	}
	return &Fence{
		clock: o.Clock, memberNow: o.MemberNow, revision: o.Revision, member: o.Member, host: o.Host, namespace: o.Namespace,
		hostID: o.HostID, clusterID: o.ClusterID, identity: o.Identity, duration: o.Duration,
	}
}

// UsesIdentity reports whether this fence uses the given holder identity.
func (f *Fence) UsesIdentity(identity string) bool { return f.identity == identity }

// UseConnection makes the fence use another connection to the member. The caller must not use the fence
// concurrently.
func (f *Fence) UseConnection(member client.Client, now func() time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.member, f.memberNow = member, now
}

// CheckFenceHeld returns nil while this process holds the fence; otherwise, the error wraps
// guarded.ErrFenced. After a restore of the host, it is not held, because the caches are wrong.
func (f *Fence) CheckFenceHeld() error {
	if err := f.revision.RestoreError(); err != nil {
		return fmt.Errorf("%w: %w", guarded.ErrFenced, err)
	}
	return f.CheckNotExpired()
}

// CheckNotExpired returns nil as long as the last renewal is so recent that no other manager can hold the
// Lease.
func (f *Fence) CheckNotExpired() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	now, deadline := f.clock.Now(), f.duration*2/3
	if f.lease == nil || now.Sub(f.renewed) > deadline || now.Round(0).Sub(f.renewed.Round(0)) > deadline {
		return fmt.Errorf("%w: the last renewal was at %s", guarded.ErrFenced, f.renewed.Format(time.RFC3339))
	}
	return nil
}

// CheckNotSuspended returns an error that wraps guarded.ErrSuspended if one of the clusters was
// restored from an older state and no admin has confirmed it.
func (f *Fence) CheckNotSuspended() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.suspension != nil {
		return fmt.Errorf("%w: %s", guarded.ErrSuspended, f.suspension.Message)
	}
	return nil
}

// CheckHostCurrent returns nil if a live read of the host, started after the call, shows that the host
// was not restored while this process ran. Otherwise, the error wraps guarded.ErrSuspended.
func (f *Fence) CheckHostCurrent(ctx context.Context) error { return f.revision.CheckHostCurrent(ctx) }

// SuspensionProblem returns why destruction is suspended, or nil.
func (f *Fence) SuspensionProblem() *access.ConnectionProblem {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.suspension
}

// AcquireLease acquires the fence, or returns why it cannot: WaitingForFence until an earlier manager's
// Lease expires, or HostCloned if another manager keeps renewing it. confirmed is the value of the
// registration's confirm-restore annotation.
func (f *Fence) AcquireLease(ctx context.Context, confirmed string) error {
	if err := f.ensureNamespace(ctx); err != nil {
		return err
	}
	known := f.lastWrittenLease()
	lease, err := ReadLiveLease(ctx, f.member, f.namespace, f.hostID)
	if err != nil {
		return access.ExplainRequestError("read the fence", err)
	}
	if wait := f.yieldToHolder(lease); wait != nil {
		return wait
	}
	restored := leaseWentBack(lease, known)
	if !restored && lease != nil && ptr.Deref(lease.Spec.HolderIdentity, "") == f.identity { // no other manager has renewed it since
		if restored, err = f.memberLacksRevisions(ctx, f.revisionsSinceRenewal()); err != nil {
			return err
		}
	}
	if restored {
		if err := f.recordMemberRestore(ctx, LeaseEpoch(lease)); err != nil {
			return err
		}
	}
	if err := f.revision.CheckRevision(ctx); err != nil {
		return err
	}
	record, err := f.readHostRecord(ctx)
	if err != nil {
		return err
	}
	if record, err = f.lowerRecordedEpoch(ctx, lease, record); err != nil {
		return err
	}
	if err := f.takeOverLease(ctx, lease, record, confirmed); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seenRevisions, f.fencedRevisions = nil, nil // the next link has new caches
	return nil
}

// yieldToHolder returns why the fence must not take a Lease that another manager holds. It returns nil once
// the Lease has not changed for its whole duration, by this process's clock.
func (f *Fence) yieldToHolder(lease *coordinationv1.Lease) error {
	holder := ""
	if lease != nil {
		holder = ptr.Deref(lease.Spec.HolderIdentity, "")
	}
	if holder == "" || holder == f.identity {
		f.watchedLease, f.seenAlive = nil, false
		return nil
	}
	now := f.clock.Now()
	if f.watchedLease == nil || f.watchedLease.ResourceVersion != lease.ResourceVersion {
		f.seenAlive = f.watchedLease != nil && ptr.Deref(f.watchedLease.Spec.HolderIdentity, "") == holder
		f.watchedLease, f.watchedAt = lease, now
	}
	lasts := max(f.duration, time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second)
	left := lasts - now.Sub(f.watchedAt)
	switch {
	case left <= 0:
		return nil
	case f.seenAlive:
		return access.ConnectionProblemf(v1alpha1.ReasonHostCloned,
			"another manager (%q) with this host's identity holds the member's fence and renews it: two copies of the host are running, or two managers run without leader election. Stop one of them", holder)
	}
	return access.ConnectionProblemf(v1alpha1.ReasonWaitingForFence,
		"waiting until the fence of an earlier manager (%q) expires, %s after it was last renewed", holder, lasts)
}

// takeOverLease writes the intended epoch to the host, the Lease to the member, and the reached epoch to the
// host. Epochs that disagree mean that one of the clusters was restored. take does not change such
// epochs, so that the evidence remains until an admin confirms the restore.
func (f *Fence) takeOverLease(ctx context.Context, lease, record *coordinationv1.Lease, confirmed string) error {
	record, err := f.recordRestoreTimes(ctx, lease, record)
	if err != nil {
		return err
	}
	there := LeaseEpoch(lease)
	in := ReadRecordedEpochs(record)
	suspended := EpochDisagreement(there, in, confirmed)
	target := there
	if suspended == nil {
		f.mu.Lock()
		f.unconfirmedRestore = ""
		f.mu.Unlock()
		reconnects := lease != nil && ptr.Deref(lease.Spec.HolderIdentity, "") == f.identity && there == in.Current
		if !reconnects { // the same leadership keeps its epoch
			target = in.EpochAfter(there)
		}
	}
	return f.writeEpoch(ctx, lease, record, target, suspended)
}

// writeEpoch sets the Lease and the record to an epoch. It does not record an epoch that the record
// already contains, or one that is evidence of a restore.
func (f *Fence) writeEpoch(ctx context.Context, lease, record *coordinationv1.Lease, target int64, suspended *access.ConnectionProblem) error {
	there := LeaseEpoch(lease)
	records := suspended == nil && target != LeaseEpoch(record)
	var err error
	if records {
		// Record the member's epoch as well, so that the two agree even if the write to the member
		// fails.
		if record, err = f.recordEpoch(ctx, record, there, target); err != nil {
			return fmt.Errorf("record the fence in the host: %w", err)
		}
	}
	sent := f.clock.Now()
	f.mu.Lock()
	f.lastSentEpoch = target
	f.mu.Unlock()
	if lease, err = f.writeLease(ctx, f.member, f.hostID, lease, target, 0); err != nil {
		return access.ExplainWriteError("acquire the fence", f.describeLease(), f.namespace, err)
	}
	f.mu.Lock()
	f.lease, f.renewed, f.suspension, f.lastWritten = lease, sent, suspended, lease
	f.mu.Unlock()
	if records {
		if _, err = f.recordEpoch(ctx, record, target, 0); err != nil {
			return fmt.Errorf("record the fence in the host: %w", err)
		}
	}
	return nil
}

// recordEpoch writes an epoch, and the next intended one, to the host's record. Whether or not a
// failed write has arrived, the epoch that a later read finds is not evidence of a restore.
func (f *Fence) recordEpoch(ctx context.Context, record *coordinationv1.Lease, at, next int64) (*coordinationv1.Lease, error) {
	f.mu.Lock()
	f.lowestRecordedEpoch = min(f.lowestRecordedEpoch, at)
	f.mu.Unlock()
	record, err := f.writeLease(ctx, f.host, HostRecordName(f.clusterID), record, at, next)
	if err == nil {
		f.mu.Lock()
		f.lowestRecordedEpoch = at
		f.mu.Unlock()
	}
	return record, err
}

// lastWrittenLease returns the Lease as of the last acknowledged write of this process, or nil.
func (f *Fence) lastWrittenLease() *coordinationv1.Lease {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.lastWritten
}

// StopWrites stops all writes immediately. The Lease remains until it expires.
func (f *Fence) StopWrites() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lease = nil
}

// ReleaseLease releases the fence, so that the next manager does not have to wait.
func (f *Fence) ReleaseLease(ctx context.Context) error {
	f.mu.Lock()
	lease := f.lease
	f.lease = nil
	f.mu.Unlock()
	if lease == nil {
		return nil
	}
	err := f.clearLeaseHolder(ctx, lease)
	if apierrors.IsConflict(err) {
		err = f.releaseRenewedLease(ctx, lease)
	}
	if err != nil {
		return access.ExplainWriteError("release the fence", f.describeLease(), f.namespace, err)
	}
	return nil
}

// releaseRenewedLease releases a Lease that changed only because this fence renewed it and the response
// was lost. It leaves any other Lease alone, because another fence of this process may have taken
// it for another registration of the same cluster.
func (f *Fence) releaseRenewedLease(ctx context.Context, lease *coordinationv1.Lease) error {
	known := f.lastWrittenLease()
	now, err := ReadLiveLease(ctx, f.member, f.namespace, f.hostID)
	if err != nil || now == nil {
		return err
	}
	if leaseWentBack(now, known) {
		return f.recordMemberRestore(ctx, LeaseEpoch(now))
	}
	renewed := now.UID == lease.UID && ptr.Deref(now.Spec.HolderIdentity, "") == f.identity &&
		now.Spec.AcquireTime.Equal(lease.Spec.AcquireTime) &&
		LeaseEpoch(now) == LeaseEpoch(lease)
	if !renewed {
		return nil
	}
	return f.clearLeaseHolder(ctx, now)
}

func (f *Fence) clearLeaseHolder(ctx context.Context, lease *coordinationv1.Lease) error {
	released := lease.DeepCopy()
	released.Spec.HolderIdentity = nil
	return f.member.Patch(ctx, released, client.MergeFromWithOptions(lease, client.MergeFromWithOptimisticLock{}), fenceFieldOwner)
}
