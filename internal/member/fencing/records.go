package fencing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/mirror"
)

// maxRecordLines is the maximum number of lines that are kept for a member. The oldest ones are
// dropped first.
const maxRecordLines = 200

// HostRecords records what Xylem released because an admin requested it, or because the member lacks it
// and Xylem did not destroy it. It uses the host's record of the member's fence, which outlives the
// volume, the registration and their events.
type HostRecords struct {
	// Live reads from the host, bypassing its cache.
	Live client.Reader
	// Namespace is the namespace of the records.
	Namespace string
	// Clock is the wall clock.
	Clock clock.PassiveClock
}

// OwnerOfCluster returns the UID of the registration that a member's record names, or "". It reads live.
func (r *HostRecords) OwnerOfCluster(ctx context.Context, clusterID string) (types.UID, error) {
	record, err := r.readRecord(ctx, clusterID)
	if err != nil || record == nil {
		return "", err
	}
	return types.UID(record.Annotations[v1alpha1.AnnotationRegistration]), nil
}

// SetClusterOwner replaces the registration that owns a member's cluster, or records the first one. If two
// calls are concurrent, one fails.
func (r *HostRecords) SetClusterOwner(ctx context.Context, to *guarded.HostWriter, clusterID string, was, owner types.UID) error {
	return r.changeRecord(ctx, to, clusterID, "the owner of", func(after *coordinationv1.Lease) error {
		if after.Annotations[v1alpha1.AnnotationRegistration] != string(was) {
			return apierrors.NewConflict(coordinationv1.Resource("leases"), after.Name, errOwnerChanged)
		}
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationRegistration, string(owner))
		return nil
	})
}

// errOwnerChanged makes the registration reconcile again.
var errOwnerChanged = errors.New("another registration has become the owner")

// changeRecord creates a member's record, or patches it with its resourceVersion.
func (r *HostRecords) changeRecord(ctx context.Context, to *guarded.HostWriter, clusterID, what string, change func(*coordinationv1.Lease) error) error {
	record, err := r.readRecord(ctx, clusterID)
	if err != nil {
		return err
	}
	after := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: recordNamePrefix + clusterID}}
	if record != nil {
		after = record.DeepCopy()
	}
	if err := change(after); err != nil {
		return err
	}
	if record != nil && maps.Equal(record.Annotations, after.Annotations) {
		return nil
	}
	metav1.SetMetaDataLabel(&after.ObjectMeta, v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)
	if record == nil {
		err = to.CreateOwned(ctx, recordsActor, after)
	} else {
		err = to.PatchOwned(ctx, recordsActor, record, after)
	}
	if err != nil {
		return fmt.Errorf("record %s cluster %s: %w", what, clusterID, err)
	}
	return nil
}

func (r *HostRecords) readRecord(ctx context.Context, clusterID string) (*coordinationv1.Lease, error) {
	record, err := ReadLiveLease(ctx, r.Live, r.Namespace, recordNamePrefix+clusterID)
	if err != nil {
		return nil, fmt.Errorf("read the record of cluster %s: %w", clusterID, err)
	}
	return record, nil
}

// RecordAbandoned records what Xylem is about to release in a member. It does not repeat a line
// from an earlier, interrupted attempt.
func (r *HostRecords) RecordAbandoned(ctx context.Context, to *guarded.HostWriter, clusterID, what string) error {
	return r.changeRecord(ctx, to, clusterID, "what Xylem releases in", func(after *coordinationv1.Lease) error {
		lines := withRecordLine(after.Annotations[v1alpha1.AnnotationLetGo], r.Clock.Now(), what, mirror.RecordAnnotationSpace(after.Annotations, v1alpha1.AnnotationLetGo))
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationLetGo, lines)
		return nil
	})
}

const recordsActor = guarded.Actor("records")

// withRecordLine adds a line "<time> <what>", unless a line already has the same text. If there
// are more than maxRecordLines lines, or they take more than limit bytes, it drops the oldest. The
// first line then contains the number of dropped lines.
func withRecordLine(lines string, at time.Time, what string, limit int) string {
	var kept []string
	if lines != "" {
		kept = strings.Split(lines, "\n")
	}
	if slices.ContainsFunc(kept, func(line string) bool { _, recorded, _ := strings.Cut(line, " "); return recorded == what }) {
		return lines
	}
	dropped := 0
	if len(kept) > 0 {
		if n, err := fmt.Sscanf(kept[0], droppedLinesFormat, &dropped); n == 1 && err == nil {
			kept = kept[1:]
		}
	}
	kept = append(kept, at.UTC().Format(time.RFC3339)+" "+what)
	limit -= len(droppedLinesFormat) + 20
	for len(kept) > maxRecordLines || len(kept) > 0 && len(strings.Join(kept, "\n")) > limit {
		kept, dropped = kept[1:], dropped+1
	}
	if dropped > 0 {
		kept = append([]string{fmt.Sprintf(droppedLinesFormat, dropped)}, kept...)
	}
	return strings.Join(kept, "\n")
}

// droppedLinesFormat is the line that replaces dropped lines.
const droppedLinesFormat = "(%d earlier lines were dropped; the events and the manager's log contained them)"

// recordNamePrefix is the name prefix of a host's record. A new registration of the same cluster
// finds the record, because it outlives the registration.
const recordNamePrefix = "fence-"

// ReadLiveLease reads a Lease live. It returns nil if the Lease does not exist.
func ReadLiveLease(ctx context.Context, from client.Reader, namespace, name string) (*coordinationv1.Lease, error) {
	var lease coordinationv1.Lease
	if err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &lease); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &lease, nil
}

// HostRecordName returns the name of the host's record of a member: a Lease in the manager's namespace
// that outlives the member's registration.
func HostRecordName(clusterID string) string { return recordNamePrefix + clusterID }
