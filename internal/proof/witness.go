// This file records live reads as proofs, which expire and can be used only once. Only this package can
// create a proof.

package proof

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// ProofLifetime is the maximum time between a proof and the start of the next one, or the write.
const ProofLifetime = 10 * time.Second

// ErrUnproven reports that a write lacks the evidence that it needs.
var ErrUnproven = errors.New("not proven")

// EvidenceKey is a parameter of Evidence.CoversWrite. Only package proof and its subpackages can implement or
// call that method, because no other package can name this type.
type EvidenceKey struct{}

// Witness is the result of a live read: an object in a certain state, or the absence of a UID.
type Witness struct {
	UID          types.UID
	version      string
	began, ended time.Time
	clock        clock.PassiveClock
	spent        bool
}

// NewWitness returns a Witness for reads that began at the given time and end now.
func NewWitness(c clock.PassiveClock, began time.Time, uid types.UID, version string) *Witness {
	return &Witness{UID: uid, version: version, began: began, ended: c.Now(), clock: c}
}

// ForOneMoreWrite returns the same proof for one more write. It expires at the same time.
func (w *Witness) ForOneMoreWrite() *Witness {
	if w == nil {
		return nil
	}
	again := *w
	again.spent = false
	return &again
}

// MatchesVersion reports whether an object is the one that was read, in the same version.
func (w *Witness) MatchesVersion(obj metav1.Object) bool {
	return w != nil && w.UID == obj.GetUID() && w.version == obj.GetResourceVersion()
}

func (w *Witness) String() string {
	return fmt.Sprintf("UID %q at resourceVersion %q, read at %s", w.UID, w.version, w.ended.Format(time.RFC3339))
}

// SpendProofs consumes the proofs. It fails unless the proofs are in the order of their reads and none
// has expired.
func SpendProofs(proofs ...*Witness) error {
	for i, w := range proofs {
		if w == nil {
			return NewUnprovenError("a proof is missing")
		}
		next := w.clock.Now()
		if i+1 < len(proofs) && proofs[i+1] != nil {
			next = proofs[i+1].began
		}
		switch gap := next.Sub(w.ended); {
		case w.spent:
			return NewUnprovenError("a proof has been used before (%s)", w)
		case gap < 0:
			return NewUnprovenError("the proofs are out of order (%s)", w)
		case gap > ProofLifetime:
			return NewUnprovenError("a proof has expired (%s)", w)
		}
	}
	for _, w := range proofs {
		w.spent = true
	}
	return nil
}

// NewUnprovenError returns an error that wraps ErrUnproven and names the cause.
func NewUnprovenError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnproven, fmt.Sprintf(format, args...))
}
