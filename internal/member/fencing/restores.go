package fencing

import (
	"context"
	"fmt"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// annotationUnconfirmed is set on the host's record. It contains the confirmation that an admin
// must give for the last recorded restore.
const annotationUnconfirmed = v1alpha1.Prefix + "unconfirmed"

// annotationHostRevision is set on the fence Lease in a member. It contains the highest revision
// of the host that the manager had seen when it renewed the Lease. A host with a lower revision
// was restored, even if the backup is very recent.
const annotationHostRevision = v1alpha1.Prefix + "host-revision"

// dateHeaderPrecision is the precision of Date headers and creationTimestamps.
const dateHeaderPrecision = time.Second

// DetectedRestores returns the restores that the fence has detected, confirmed or not.
func (f *Fence) DetectedRestores() RestoreTimes {
	f.mu.RLock()
	defer f.mu.RUnlock()
	detected := f.restoreTimes
	detected.HostUnconfirmed = f.suspension != nil && f.suspension.Reason == v1alpha1.ReasonHostRestored
	return detected
}

// recordRestoreTimes reads when the clusters were restored. If the epochs show a restore that is not recorded
// yet, it records the time. It returns the resulting record.
func (f *Fence) recordRestoreTimes(ctx context.Context, lease, record *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	there := LeaseEpoch(lease)
	in := ReadRecordedEpochs(record)
	detected, unconfirmed := recordedRestores(lease, record), ""
	found := EpochDisagreement(there, in, "")
	fresh := false
	if found != nil {
		unconfirmed = RestoreConfirmation(in.Current, there)
		fresh = record == nil || record.Annotations[annotationUnconfirmed] != unconfirmed
	}
	switch {
	case !fresh:
	case found.Reason == v1alpha1.ReasonHostRestored:
		detected.Host = f.memberNow().UTC().Truncate(dateHeaderPrecision)
	default:
		// Round up, because the Date header has no fractions of a second. The only effect of a time
		// that is too late is that Xylem may keep a volume.
		detected.Member = f.memberNow().UTC().Truncate(dateHeaderPrecision).Add(2 * dateHeaderPrecision)
	}
	f.mu.Lock()
	f.restoreTimes, f.unconfirmedRestore = detected, unconfirmed
	f.mu.Unlock()
	if !fresh {
		return record, nil
	}
	record, err := f.writeLease(ctx, f.host, HostRecordName(f.clusterID), record, in.Current, in.LastIntended)
	if err != nil {
		return nil, fmt.Errorf("record the restore in the host: %w", err)
	}
	return record, nil
}

// recordedRestores returns the recorded restores. The member's Lease contains the time of the member's
// restore even after a restore of the host. If another restore of the host removes the time of the
// last one from the host's record, the fence detects the new restore.
func recordedRestores(lease, record *coordinationv1.Lease) RestoreTimes {
	return RestoreTimes{Host: HostRestoreTime(record), Member: LaterTime(annotatedTime(record, v1alpha1.AnnotationRestored), annotatedTime(lease, v1alpha1.AnnotationRestored))}
}

// HostRestoreTime returns when the host was last restored, according to its record of a member, or the
// zero time.
func HostRestoreTime(record *coordinationv1.Lease) time.Time {
	return annotatedTime(record, v1alpha1.AnnotationHostRestored)
}

// annotateRestoreTimes adds the times of the restores to a Lease before it is written.
func (f *Fence) annotateRestoreTimes(lease *coordinationv1.Lease) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	set := func(key, value string) {
		delete(lease.Annotations, key)
		if value != "" {
			lease.Annotations[key] = value
		}
	}
	set(v1alpha1.AnnotationRestored, formatRestoreTime(f.restoreTimes.Member))
	if lease.Name == HostRecordName(f.clusterID) {
		set(v1alpha1.AnnotationHostRestored, formatRestoreTime(f.restoreTimes.Host))
		set(annotationUnconfirmed, f.unconfirmedRestore)
		return
	}
	f.annotateHostRevision(lease)
}

// annotateHostRevision records the host's highest revision in the member's Lease.
func (f *Fence) annotateHostRevision(lease *coordinationv1.Lease) {
	if highest := f.revision.HighestRevision(); highest != 0 {
		if lease.Annotations == nil {
			lease.Annotations = map[string]string{}
		}
		lease.Annotations[annotationHostRevision] = strconv.FormatUint(highest, 10)
	}
}

// lowerRecordedEpoch lowers the epoch in the host's record if the member has seen a later revision of the host.
// In this case, the host was restored from a state within the same epoch, and the lower epoch is
// lasting evidence of the restore.
func (f *Fence) lowerRecordedEpoch(ctx context.Context, lease, record *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	highest := f.revision.HighestRevision()
	if lease == nil || highest == 0 {
		return record, nil
	}
	seen, err := strconv.ParseUint(lease.Annotations[annotationHostRevision], 10, 64)
	if err != nil || seen <= highest {
		return record, nil
	}
	return f.recordEpochBehind(ctx, LeaseEpoch(lease), record)
}

// recordEpochBehind records in the host an epoch lower than the member's, unless the two disagree
// already. It returns the resulting record.
func (f *Fence) recordEpochBehind(ctx context.Context, there int64, record *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	in := ReadRecordedEpochs(record)
	if there == 0 || EpochDisagreement(there, in, "") != nil {
		return record, nil
	}
	behind := min(in.Current, there-1)
	record, err := f.recordEpoch(ctx, record, behind, 0)
	if err != nil {
		return nil, fmt.Errorf("record that the host was restored: %w", err)
	}
	return record, nil
}

// RecordHostRestore records the evidence in the restored host, because this process ends, and the
// next one could not detect the restore without it.
func (f *Fence) RecordHostRestore(ctx context.Context) error {
	known := f.lastWrittenLease()
	if known == nil || f.SuspensionProblem() != nil {
		return nil
	}
	record, err := ReadLiveLease(ctx, f.host, f.namespace, HostRecordName(f.clusterID))
	if err != nil {
		return fmt.Errorf("read the host's record of the fence: %w", err)
	}
	_, err = f.recordEpochBehind(ctx, LeaseEpoch(known), record)
	return err
}

func formatRestoreTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format(time.RFC3339)
}

// annotatedTime returns the time in an annotation of a Lease, or the zero time.
func annotatedTime(lease *coordinationv1.Lease, annotation string) time.Time {
	if lease == nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, lease.Annotations[annotation])
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
