package fencing

import (
	"context"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member/access"
)

// RenewLease renews the fence, which also probes the member. If another client changed the Lease, the
// fence is lost.
func (f *Fence) RenewLease(ctx context.Context) error {
	f.mu.RLock()
	lease := f.lease
	f.mu.RUnlock()
	if lease == nil {
		return fmt.Errorf("renew the fence: %w", guarded.ErrFenced)
	}
	sent, since := f.clock.Now(), f.revisionsSinceRenewal()
	renewed, err := f.patchRenewal(ctx, lease, sent)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		if lease, err = f.rereadLease(ctx); err != nil {
			return err
		}
		renewed, err = f.patchRenewal(ctx, lease, sent)
	}
	if err != nil {
		return access.ExplainWriteError("renew the fence", f.describeLease(), f.namespace, err)
	}
	f.mu.Lock()
	if f.lease != nil {
		f.lease, f.renewed, f.lastWritten = renewed, sent, renewed
	}
	f.mu.Unlock()
	restored, err := f.memberLacksRevisions(ctx, since)
	if err != nil {
		return err
	}
	if restored {
		f.StopWrites()
		if err := f.recordMemberRestore(ctx, LeaseEpoch(renewed)); err != nil {
			return err
		}
		return access.ConnectionProblemf(v1alpha1.ReasonMemberRestored, "the member's revision is lower than that of objects that this manager has received: the member was restored. Xylem reconnects, and then reports what to confirm")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fencedRevisions == nil {
		f.fencedRevisions = kindRevisions{}
	}
	maps.Copy(f.fencedRevisions, since)
	return nil
}

// describeLease names the Lease in messages.
func (f *Fence) describeLease() string { return fmt.Sprintf("Lease %q", f.namespace+"/"+f.hostID) }

func (f *Fence) patchRenewal(ctx context.Context, lease *coordinationv1.Lease, at time.Time) (*coordinationv1.Lease, error) {
	renewed := lease.DeepCopy()
	renewed.Spec.RenewTime = f.nextRenewalTime(at)
	f.annotateHostRevision(renewed)
	return renewed, f.member.Patch(ctx, renewed, client.MergeFromWithOptions(lease, client.MergeFromWithOptimisticLock{}), fenceFieldOwner)
}

// AnnotateLease changes the annotations of the Lease, so that they survive a restore of the host. change
// returns the same Lease if it already has the annotations. If the fence is not held, the error
// wraps guarded.ErrFenced. Workers call AnnotateLease while the probe renews the Lease. If AnnotateLease finds that the
// member was restored, it returns an error, and the next probe records the restore.
func (f *Fence) AnnotateLease(ctx context.Context, change func(*coordinationv1.Lease) (*coordinationv1.Lease, error)) error {
	f.mu.RLock()
	lease := f.lease
	f.mu.RUnlock()
	if lease == nil {
		return fmt.Errorf("annotate the fence: %w", guarded.ErrFenced)
	}
	noted, err := f.patchAnnotations(ctx, lease, change)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // for example, after a concurrent renewal
		var now *coordinationv1.Lease
		if lease, now, err = f.readHeldLease(ctx); err != nil {
			return err
		}
		noted, err = f.patchAnnotations(ctx, now, change)
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lease == lease {
		f.lease, f.lastWritten = noted, noted
	}
	return nil
}

func (f *Fence) patchAnnotations(ctx context.Context, lease *coordinationv1.Lease, change func(*coordinationv1.Lease) (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	noted, err := change(lease)
	if err != nil || noted == lease {
		return lease, err
	}
	if err := f.member.Patch(ctx, noted, client.MergeFromWithOptions(lease, client.MergeFromWithOptimisticLock{}), fenceFieldOwner); err != nil {
		return nil, fmt.Errorf("annotate the fence: %w", err)
	}
	return noted, nil
}

// AdvanceEpoch takes the next epoch within a leadership, which may last for months. If either
// cluster is restored from a state older than the last advance, the epochs disagree.
func (f *Fence) AdvanceEpoch(ctx context.Context) error {
	f.mu.RLock()
	lease, suspended := f.lease, f.suspension
	f.mu.RUnlock()
	if lease == nil {
		return fmt.Errorf("advance the fence's epoch: %w", guarded.ErrFenced)
	}
	if suspended != nil {
		return nil // keep the epochs, which are the evidence
	}
	record, err := f.readHostRecord(ctx)
	if err != nil {
		return err
	}
	target, p := FollowingEpoch(LeaseEpoch(lease), record)
	if p != nil {
		f.StopWrites()
		return p
	}
	return f.writeEpoch(ctx, lease, record, target, nil)
}

// TakeFinalEpoch takes the next epoch before the fence is released, so that every backup of the host from
// before the stop has a lower epoch. Otherwise, only the revision would show that a backup is from
// the same epoch, and a restore may increase the revision. Finish does nothing if the fence is not
// held, or if the epochs are evidence. A missing record was deleted with the registration. Finish
// reads the Lease again, because the response to the last write may have been lost.
func (f *Fence) TakeFinalEpoch(ctx context.Context) error {
	if f.CheckFenceHeld() != nil || f.SuspensionProblem() != nil {
		return nil
	}
	if err := f.revision.CheckHostCurrent(ctx); err != nil {
		return err
	}
	record, err := ReadLiveLease(ctx, f.host, f.namespace, HostRecordName(f.clusterID))
	if err != nil || record == nil {
		return err
	}
	lease, err := f.rereadLease(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.lease, f.lastWritten = lease, lease
	f.mu.Unlock()
	target, p := FollowingEpoch(LeaseEpoch(lease), record)
	if p != nil {
		return nil
	}
	return f.writeEpoch(ctx, lease, record, target, nil)
}

// rereadLease reads the Lease after a conflict. If this process holds the Lease, the caller renews it,
// because observers depend on the time of the Lease's last change. If the member was restored,
// reread drops the fence and records the restore. Only the supervisor's goroutines call it.
func (f *Fence) rereadLease(ctx context.Context) (*coordinationv1.Lease, error) {
	_, now, err := f.readHeldLease(ctx)
	if p := access.AsConnectionProblem(err); p != nil && p.Reason == v1alpha1.ReasonMemberRestored {
		f.StopWrites()
		if err := f.recordMemberRestore(ctx, LeaseEpoch(now)); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	return now, nil
}

// readHeldLease reads the Lease after a conflict. Either this process still holds it (a user edited it, or
// the response to a write was lost), or the member was restored, or another manager acquired it. In
// the last case, current drops the fence. It returns the Lease that this process held before the
// read, and the Lease as read. The probe may renew the Lease during the read, so current compares
// what was read only with what was known before.
func (f *Fence) readHeldLease(ctx context.Context) (held, now *coordinationv1.Lease, err error) {
	f.mu.RLock()
	held, known := f.lease, f.lastWritten
	f.mu.RUnlock()
	if held == nil {
		return nil, nil, fmt.Errorf("read the fence: %w", guarded.ErrFenced)
	}
	now, err = ReadLiveLease(ctx, f.member, f.namespace, f.hostID)
	if err != nil {
		return nil, nil, access.ExplainRequestError("read the fence", err)
	}
	switch {
	case now == nil:
		// Do not use missing objects as evidence until the member has been identified again.
		f.StopWrites()
		return nil, nil, access.ConnectionProblemf(v1alpha1.ReasonUnreachable, "the fence in the member is gone: the member was re-created or restored. Xylem reconnects to find out which")
	case leaseWentBack(now, known):
		return nil, now, access.ConnectionProblemf(v1alpha1.ReasonMemberRestored, "the fence in the member is older than this manager's last write to it: the member was restored. Xylem reconnects, and then reports what to confirm")
	case !f.isOwnLease(now, held):
		f.StopWrites()
		return nil, nil, access.ConnectionProblemf(v1alpha1.ReasonHostCloned, "another manager with this host's identity took the fence: two copies of the host are running. Stop one of them")
	}
	return held, now, nil
}

// isOwnLease reports whether this process holds the Lease, at the epoch that it held before, or at one that
// it has sent since. The last write may have failed while an earlier one arrived.
func (f *Fence) isOwnLease(lease, held *coordinationv1.Lease) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	at, before := LeaseEpoch(lease), LeaseEpoch(held)
	return ptr.Deref(lease.Spec.HolderIdentity, "") == f.identity && before <= at && at <= max(before, f.lastSentEpoch)
}

// leaseWentBack reports whether the Lease is older than a write that the member had acknowledged to this
// process before the Lease was read.
func leaseWentBack(lease, known *coordinationv1.Lease) bool {
	return lease != nil && known != nil && IsOlderLease(lease, known)
}

// CheckMemberCurrent returns nil if a live read of the member, started after the call, shows that it
// has not been restored while this process held the Lease. Otherwise, the error wraps
// guarded.ErrFenced. The next renewal detects the restore too, and ends the link. Concurrent callers
// share a read.
func (f *Fence) CheckMemberCurrent(ctx context.Context) error {
	_, err := f.currentProofs.Do(ctx, struct{}{}, func(ctx context.Context) (struct{}, error) { return struct{}{}, f.checkMemberCurrentLive(ctx) })
	return err
}

func (f *Fence) checkMemberCurrentLive(ctx context.Context) error {
	f.mu.RLock()
	known, reader := f.lastWritten, f.member
	f.mu.RUnlock()
	lease, err := ReadLiveLease(ctx, reader, f.namespace, f.hostID)
	if err != nil {
		return fmt.Errorf("prove that the member was not restored: %w", err)
	}
	if lease == nil || known == nil || IsOlderLease(lease, known) {
		return fmt.Errorf("%w: the member's Lease lacks the last renewal, so the member may have been restored", guarded.ErrFenced)
	}
	restored, err := f.memberLacksRevisions(ctx, f.revisionsSinceRenewal())
	if err != nil {
		return fmt.Errorf("prove that the member was not restored: %w", err)
	}
	if restored {
		return fmt.Errorf("%w: the member's revision has decreased, so the member was restored", guarded.ErrFenced)
	}
	return nil
}

// recordMemberRestore records in the host an epoch that is higher than the restored member's. Otherwise,
// only this process could detect a restore from a state within the same epoch.
func (f *Fence) recordMemberRestore(ctx context.Context, there int64) error {
	record, err := f.readHostRecord(ctx)
	if err != nil {
		return err
	}
	ahead, p := FollowingEpoch(there, record)
	if p != nil {
		return nil
	}
	if _, err := f.recordEpoch(ctx, record, ahead, 0); err != nil {
		return fmt.Errorf("record that the member was restored: %w", err)
	}
	return nil
}
