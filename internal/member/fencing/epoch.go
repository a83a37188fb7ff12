package fencing

import (
	"fmt"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/access"
)

// annotationNextEpoch is set on the host's record while a new epoch is being written to the member, so
// that a crash between the two writes does not look like a restore. annotationFirstEpoch is set with it
// and contains the first of these epochs, if earlier writes to the member have unknown outcomes.
const (
	annotationNextEpoch  = v1alpha1.AnnotationFenceEpoch + "-next"
	annotationFirstEpoch = v1alpha1.AnnotationFenceEpoch + "-first"
)

// RecordedEpochs contains the epochs in the host's record.
type RecordedEpochs struct {
	// Current is the current epoch.
	Current int64
	// FirstIntended and LastIntended are the first and the last epoch that the host has intended since then. Both
	// are 0 if there is none. The member may have any epoch between them: a write to the member whose
	// response was lost may arrive after the host has recorded the next intended epoch.
	FirstIntended, LastIntended int64
}

// LeaseEpoch returns the epoch of the Lease in a member, or of the host's record, or 0.
func LeaseEpoch(lease *coordinationv1.Lease) int64 {
	return readEpoch(lease, v1alpha1.AnnotationFenceEpoch)
}

// ReadRecordedEpochs returns the epochs in the host's record.
func ReadRecordedEpochs(record *coordinationv1.Lease) RecordedEpochs {
	in := RecordedEpochs{Current: LeaseEpoch(record), FirstIntended: readEpoch(record, annotationFirstEpoch), LastIntended: readEpoch(record, annotationNextEpoch)}
	if in.FirstIntended == 0 || in.FirstIntended > in.LastIntended { // an earlier release wrote the record
		in.FirstIntended = in.LastIntended
	}
	return in
}

func readEpoch(lease *coordinationv1.Lease, annotation string) int64 {
	if lease == nil {
		return 0
	}
	n, err := strconv.ParseInt(lease.Annotations[annotation], 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// SetLeaseEpochs sets the current and the intended epoch in a Lease's annotations, which must not be nil. It
// removes an annotation whose epoch is 0. Epochs that were intended before remain so as long as the
// current epoch does not change.
func SetLeaseEpochs(lease *coordinationv1.Lease, current, next int64) {
	first := next
	if in := ReadRecordedEpochs(lease); next != 0 && in.LastIntended != 0 && in.Current == current {
		first = in.FirstIntended
	}
	for annotation, n := range map[string]int64{v1alpha1.AnnotationFenceEpoch: current, annotationFirstEpoch: first, annotationNextEpoch: next} {
		delete(lease.Annotations, annotation)
		if n != 0 {
			lease.Annotations[annotation] = strconv.FormatInt(n, 10)
		}
	}
}

// FollowingEpoch returns the epoch after the member's and those in the host's record, and the problem if
// the known ones disagree.
func FollowingEpoch(there int64, record *coordinationv1.Lease) (int64, *access.ConnectionProblem) {
	in := ReadRecordedEpochs(record)
	return in.EpochAfter(there), EpochDisagreement(there, in, "")
}

// EpochAfter returns the epoch after the member's and those in the host's record.
func (r RecordedEpochs) EpochAfter(there int64) int64 {
	return max(there, r.Current, r.LastIntended) + 1
}

// EpochDisagreement compares the member's epoch with the epoch of the host's record, and with the
// intended epochs if there are any.
func EpochDisagreement(there int64, in RecordedEpochs, confirmed string) *access.ConnectionProblem {
	token := RestoreConfirmation(in.Current, there)
	intended := in.Current < there && in.FirstIntended <= there && there <= in.LastIntended
	if there == in.Current || intended || confirmed == token {
		return nil
	}
	if there > in.Current {
		return access.ConnectionProblemf(v1alpha1.ReasonHostRestored,
			"the host was restored from an older state: the fence is at epoch %d in the member, but at %d in the host. Xylem destroys nothing in the member until you have checked its volumes and set this annotation on the registration: %s=%s",
			there, in.Current, v1alpha1.AnnotationConfirmRestore, token)
	}
	return access.ConnectionProblemf(v1alpha1.ReasonMemberRestored,
		"the member was restored from an older state: the fence is at epoch %d in the host, but at %d in the member. Xylem destroys nothing in the member until you have checked its volumes and set this annotation on the registration: %s=%s",
		in.Current, there, v1alpha1.AnnotationConfirmRestore, token)
}

// RestoreConfirmation returns the value of the annotation that confirms a disagreement.
func RestoreConfirmation(here, there int64) string {
	return fmt.Sprintf("host-%d-member-%d", here, there)
}

// IsOlderLease reports whether a Lease is older than a known state of it. It compares the values that only
// grow.
func IsOlderLease(lease, known *coordinationv1.Lease) bool {
	there, epochKnown := LeaseEpoch(lease), LeaseEpoch(known)
	return there < epochKnown || there == epochKnown && lease.Spec.RenewTime.Before(known.Spec.RenewTime)
}
