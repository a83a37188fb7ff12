package epoch

import (
	"fmt"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/access"
)

// annotationNext is set on the host's record while a new epoch is being written to the member, so
// that a crash between the two writes does not look like a restore. annotationFirst is set with it
// and contains the first of these epochs, if earlier writes to the member have unknown outcomes.
const (
	annotationNext  = v1alpha1.AnnotationFenceEpoch + "-next"
	annotationFirst = v1alpha1.AnnotationFenceEpoch + "-first"
)

// Recorded contains the epochs in the host's record.
type Recorded struct {
	// Here is the current epoch.
	Here int64
	// First and Next are the first and the last epoch that the host has intended since then. Both
	// are 0 if there is none. The member may have any epoch between them: a write to the member whose
	// response was lost may arrive after the host has recorded the next intended epoch.
	First, Next int64
}

// Of returns the epoch of the Lease in a member, or of the host's record, or 0.
func Of(lease *coordinationv1.Lease) int64 { return read(lease, v1alpha1.AnnotationFenceEpoch) }

// In returns the epochs in the host's record.
func In(record *coordinationv1.Lease) Recorded {
	in := Recorded{Here: Of(record), First: read(record, annotationFirst), Next: read(record, annotationNext)}
	if in.First == 0 || in.First > in.Next { // an earlier release wrote the record
		in.First = in.Next
	}
	return in
}

func read(lease *coordinationv1.Lease, annotation string) int64 {
	if lease == nil {
		return 0
	}
	n, err := strconv.ParseInt(lease.Annotations[annotation], 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Set sets the current and the intended epoch in a Lease's annotations, which must not be nil. It
// removes an annotation whose epoch is 0. Epochs that were intended before remain so as long as the
// current epoch does not change.
func Set(lease *coordinationv1.Lease, current, next int64) {
	first := next
	if in := In(lease); next != 0 && in.Next != 0 && in.Here == current {
		first = in.First
	}
	for annotation, n := range map[string]int64{v1alpha1.AnnotationFenceEpoch: current, annotationFirst: first, annotationNext: next} {
		delete(lease.Annotations, annotation)
		if n != 0 {
			lease.Annotations[annotation] = strconv.FormatInt(n, 10)
		}
	}
}

// Following returns the epoch after the member's and those in the host's record, and the problem if
// the known ones disagree.
func Following(there int64, record *coordinationv1.Lease) (int64, *access.Problem) {
	in := In(record)
	return in.After(there), Disagreement(there, in, "")
}

// After returns the epoch after the member's and those in the host's record.
func (r Recorded) After(there int64) int64 { return max(there, r.Here, r.Next) + 1 }

// Disagreement compares the member's epoch with the epoch of the host's record, and with the
// intended epochs if there are any.
func Disagreement(there int64, in Recorded, confirmed string) *access.Problem {
	token := Confirmation(in.Here, there)
	intended := in.Here < there && in.First <= there && there <= in.Next
	if there == in.Here || intended || confirmed == token {
		return nil
	}
	if there > in.Here {
		return access.Problemf(v1alpha1.ReasonHostRestored,
			"the host was restored from an older state: the fence is at epoch %d in the member, but at %d in the host. Xylem destroys nothing in the member until you have checked its volumes and set this annotation on the registration: %s=%s",
			there, in.Here, v1alpha1.AnnotationConfirmRestore, token)
	}
	return access.Problemf(v1alpha1.ReasonMemberRestored,
		"the member was restored from an older state: the fence is at epoch %d in the host, but at %d in the member. Xylem destroys nothing in the member until you have checked its volumes and set this annotation on the registration: %s=%s",
		in.Here, there, v1alpha1.AnnotationConfirmRestore, token)
}

// Confirmation returns the value of the annotation that confirms a disagreement.
func Confirmation(here, there int64) string {
	return fmt.Sprintf("host-%d-member-%d", here, there)
}

// Older reports whether a Lease is older than a known state of it. It compares the values that only
// grow.
func Older(lease, known *coordinationv1.Lease) bool {
	there, epochKnown := Of(lease), Of(known)
	return there < epochKnown || there == epochKnown && lease.Spec.RenewTime.Before(known.Spec.RenewTime)
}
