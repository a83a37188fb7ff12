package epoch

import (
	"fmt"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/access"
)

// annotationNext is set on the host's record while a new epoch is being written to the member, so
// that a crash between the two writes does not look like a restore.
const annotationNext = v1alpha1.AnnotationFenceEpoch + "-next"

// Of returns the epoch of the Lease in a member, or of the host's record, or 0.
func Of(lease *coordinationv1.Lease) int64 { return read(lease, v1alpha1.AnnotationFenceEpoch) }

// Recorded returns the current epoch in the host's record, and the intended one or 0.
func Recorded(record *coordinationv1.Lease) (here, next int64) {
	return Of(record), read(record, annotationNext)
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
// removes an annotation whose epoch is 0.
func Set(lease *coordinationv1.Lease, current, next int64) {
	for annotation, n := range map[string]int64{v1alpha1.AnnotationFenceEpoch: current, annotationNext: next} {
		delete(lease.Annotations, annotation)
		if n != 0 {
			lease.Annotations[annotation] = strconv.FormatInt(n, 10)
		}
	}
}

// Following returns the epoch after the member's and those in the host's record, and the problem if
// the known ones disagree.
func Following(there int64, record *coordinationv1.Lease) (int64, *access.Problem) {
	here, next := Recorded(record)
	return max(there, here, next) + 1, Disagreement(there, here, next, "")
}

// Disagreement compares the member's epoch with the epoch of the host's record, and with the
// intended epoch if there is one.
func Disagreement(there, here, next int64, confirmed string) *access.Problem {
	token := Confirmation(here, there)
	if there == here || next != 0 && there == next || confirmed == token {
		return nil
	}
	if there > here {
		return access.Problemf(v1alpha1.ReasonHostRestored,
			"the host was restored from an older state: the fence is at epoch %d in the member, but at %d in the host. Xylem destroys nothing in the member until you have checked its volumes and set this annotation on the registration: %s=%s",
			there, here, v1alpha1.AnnotationConfirmRestore, token)
	}
	return access.Problemf(v1alpha1.ReasonMemberRestored,
		"the member was restored from an older state: the fence is at epoch %d in the host, but at %d in the member. Xylem destroys nothing in the member until you have checked its volumes and set this annotation on the registration: %s=%s",
		here, there, v1alpha1.AnnotationConfirmRestore, token)
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
