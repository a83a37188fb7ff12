package fencing

import (
	"context"
	"fmt"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/fencing/epoch"
	"github.com/xylem-io/xylem/internal/member/hostrecord"
	"github.com/xylem-io/xylem/internal/member/restores"
)

// annotationUnconfirmed is set on the host's record. It contains the confirmation that an admin
// must give for the last recorded restore.
const annotationUnconfirmed = v1alpha1.Prefix + "unconfirmed"

// annotationHostRevision is set on the fence Lease in a member. It contains the highest revision
// of the host that the manager had seen when it renewed the Lease. A host with a lower revision
// was restored, even if the backup is very recent.
const annotationHostRevision = v1alpha1.Prefix + "host-revision"

// dateStep is the precision of Date headers and creationTimestamps.
const dateStep = time.Second

// Restores returns the restores that the fence has detected, confirmed or not.
func (f *Fence) Restores() restores.Times {
	f.mu.RLock()
	defer f.mu.RUnlock()
	detected := f.restores
	detected.HostUnconfirmed = f.suspended != nil && f.suspended.Reason == v1alpha1.ReasonHostRestored
	return detected
}

// date reads when the clusters were restored. If the epochs show a restore that is not recorded
// yet, it records the time. It returns the resulting record.
func (f *Fence) date(ctx context.Context, lease, record *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	there := epoch.Of(lease)
	in := epoch.In(record)
	detected, unconfirmed := recorded(lease, record), ""
	found := epoch.Disagreement(there, in, "")
	fresh := false
	if found != nil {
		unconfirmed = epoch.Confirmation(in.Here, there)
		fresh = record == nil || record.Annotations[annotationUnconfirmed] != unconfirmed
	}
	switch {
	case !fresh:
	case found.Reason == v1alpha1.ReasonHostRestored:
		detected.Host = f.memberNow().UTC().Truncate(dateStep)
	default:
		// Round up, because the Date header has no fractions of a second. The only effect of a time
		// that is too late is that Xylem may keep a volume.
		detected.Member = f.memberNow().UTC().Truncate(dateStep).Add(2 * dateStep)
	}
	f.mu.Lock()
	f.restores, f.unconfirmed = detected, unconfirmed
	f.mu.Unlock()
	if !fresh {
		return record, nil
	}
	record, err := f.write(ctx, f.host, hostrecord.Name(f.clusterID), record, in.Here, in.Next)
	if err != nil {
		return nil, fmt.Errorf("record the restore in the host: %w", err)
	}
	return record, nil
}

// recorded returns the recorded restores. The member's Lease contains the time of the member's
// restore even after a restore of the host. If another restore of the host removes the time of the
// last one from the host's record, the fence detects the new restore.
func recorded(lease, record *coordinationv1.Lease) restores.Times {
	return restores.Times{Host: HostRestored(record), Member: restores.Later(timeOf(record, v1alpha1.AnnotationRestored), timeOf(lease, v1alpha1.AnnotationRestored))}
}

// HostRestored returns when the host was last restored, according to its record of a member, or the
// zero time.
func HostRestored(record *coordinationv1.Lease) time.Time {
	return timeOf(record, v1alpha1.AnnotationHostRestored)
}

// writeDown adds the times of the restores to a Lease before it is written.
func (f *Fence) writeDown(lease *coordinationv1.Lease) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	set := func(key, value string) {
		delete(lease.Annotations, key)
		if value != "" {
			lease.Annotations[key] = value
		}
	}
	set(v1alpha1.AnnotationRestored, written(f.restores.Member))
	if lease.Name == hostrecord.Name(f.clusterID) {
		set(v1alpha1.AnnotationHostRestored, written(f.restores.Host))
		set(annotationUnconfirmed, f.unconfirmed)
		return
	}
	f.witness(lease)
}

// witness records the host's highest revision in the member's Lease.
func (f *Fence) witness(lease *coordinationv1.Lease) {
	if highest := f.revision.Highest(); highest != 0 {
		if lease.Annotations == nil {
			lease.Annotations = map[string]string{}
		}
		lease.Annotations[annotationHostRevision] = strconv.FormatUint(highest, 10)
	}
}

// lower lowers the epoch in the host's record if the member has seen a later revision of the host.
// In this case, the host was restored from a state within the same epoch, and the lower epoch is
// lasting evidence of the restore.
func (f *Fence) lower(ctx context.Context, lease, record *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	highest := f.revision.Highest()
	if lease == nil || highest == 0 {
		return record, nil
	}
	seen, err := strconv.ParseUint(lease.Annotations[annotationHostRevision], 10, 64)
	if err != nil || seen <= highest {
		return record, nil
	}
	return f.putBehind(ctx, epoch.Of(lease), record)
}

// putBehind records in the host an epoch lower than the member's, unless the two disagree
// already. It returns the resulting record.
func (f *Fence) putBehind(ctx context.Context, there int64, record *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	in := epoch.In(record)
	if there == 0 || epoch.Disagreement(there, in, "") != nil {
		return record, nil
	}
	behind := min(in.Here, there-1)
	record, err := f.putEpoch(ctx, record, behind, 0)
	if err != nil {
		return nil, fmt.Errorf("record that the host was restored: %w", err)
	}
	return record, nil
}

// NoteHostRestored records the evidence in the restored host, because this process ends, and the
// next one could not detect the restore without it.
func (f *Fence) NoteHostRestored(ctx context.Context) error {
	known := f.lastKnown()
	if known == nil || f.Suspended() != nil {
		return nil
	}
	record, err := hostrecord.GetLease(ctx, f.host, f.namespace, hostrecord.Name(f.clusterID))
	if err != nil {
		return fmt.Errorf("read the host's record of the fence: %w", err)
	}
	_, err = f.putBehind(ctx, epoch.Of(known), record)
	return err
}

func written(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format(time.RFC3339)
}

// timeOf returns the time in an annotation of a Lease, or the zero time.
func timeOf(lease *coordinationv1.Lease, annotation string) time.Time {
	if lease == nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, lease.Annotations[annotation])
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
