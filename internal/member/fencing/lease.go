package fencing

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/access"
)

const fenceFieldOwner = client.FieldOwner("xylem-fence")

// writeLease creates a Lease, or updates it if it has not changed since it was read. If next is 0, it
// removes the intended epoch.
func (f *Fence) writeLease(ctx context.Context, to client.Client, name string, was *coordinationv1.Lease, at, next int64) (*coordinationv1.Lease, error) {
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
	SetLeaseEpochs(lease, at, next)
	f.annotateRestoreTimes(lease)
	now := f.nextRenewalTime(f.clock.Now())
	lease.Spec.HolderIdentity = &f.identity
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(max(f.duration/time.Second, 1))) //nolint:gosec // a duration is at most 292 years (2^33 s); no fence lasts longer than 2^31 s
	lease.Spec.AcquireTime, lease.Spec.RenewTime = now, now
	if was == nil {
		return lease, to.Create(ctx, lease, fenceFieldOwner)
	}
	return lease, to.Patch(ctx, lease, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}), fenceFieldOwner)
}

// nextRenewalTime returns the renewal time: now, or just after the last acknowledged renewal if the wall
// clock was set back. A renewal time that decreases is evidence that the member was restored.
func (f *Fence) nextRenewalTime(now time.Time) *metav1.MicroTime {
	if known := f.lastWrittenLease(); known != nil && known.Spec.RenewTime != nil && !now.After(known.Spec.RenewTime.Time) {
		now = known.Spec.RenewTime.Add(time.Microsecond)
	}
	return &metav1.MicroTime{Time: now}
}

func (f *Fence) ensureNamespace(ctx context.Context) error {
	var namespace corev1.Namespace
	err := f.member.Get(ctx, client.ObjectKey{Name: f.namespace}, &namespace)
	switch {
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return access.ExplainRequestError("read namespace "+f.namespace, err)
	}
	err = f.member.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   f.namespace,
		Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue},
	}}, fenceFieldOwner)
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return access.ExplainWriteError("create namespace "+f.namespace, fmt.Sprintf("namespace %q", f.namespace), f.namespace, err)
}

// readHostRecord reads the host's record. It returns hostrevision.ErrHostRestored if the epoch is lower
// than this process has seen before, because this means that the host was restored while this
// process ran.
func (f *Fence) readHostRecord(ctx context.Context) (*coordinationv1.Lease, error) {
	record, err := ReadLiveLease(ctx, f.host, f.namespace, HostRecordName(f.clusterID))
	if err != nil {
		return nil, fmt.Errorf("read the host's record of the fence: %w", err)
	}
	here := LeaseEpoch(record)
	f.mu.Lock()
	before := f.lowestRecordedEpoch
	f.lowestRecordedEpoch = max(before, here)
	f.mu.Unlock()
	if here < before {
		err := fmt.Errorf("%w: the host's record of cluster %s is at epoch %d, but was at %d before", ErrHostRestored, f.clusterID, here, before)
		f.revision.RecordRestore(err)
		return nil, err
	}
	return record, nil
}
