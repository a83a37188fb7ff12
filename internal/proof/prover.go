package proof

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
)

// lifetime is how long after a proof the next one may begin, or the write may be sent.
const lifetime = 10 * time.Second

// ErrUnproven reports that a write lacks the evidence that it needs.
var ErrUnproven = errors.New("not proven")

// Prover reads the host and one member.
type Prover struct {
	mirror.Member
	// HostLive and Live bypass the caches of the host and the member.
	HostLive, Live client.Reader
	// Host and Cache read those caches, which can refute but never prove.
	Host, Cache client.Reader
	Clock       clock.PassiveClock
	// MayBeRestored reports whether an object of the member may come from a backup.
	MayBeRestored func(metav1.Object) bool
	// Unrestored returns nil if a live read shows that the member was not restored while this
	// process ran.
	Unrestored func(context.Context) error
}

// witness is the result of a live read: an object in a certain state, or the absence of a UID.
type witness struct {
	uid          types.UID
	version      string
	began, ended time.Time
	clock        clock.PassiveClock
	spent        bool
}

// testify returns a witness of reads that began at the given time and end now.
func (p Prover) testify(began time.Time, uid types.UID, version string) *witness {
	return &witness{uid: uid, version: version, began: began, ended: p.Clock.Now(), clock: p.Clock}
}

func (w *witness) String() string {
	return fmt.Sprintf("UID %q at resourceVersion %q, read at %s", w.uid, w.version, w.ended.Format(time.RFC3339))
}

// spend consumes the proofs. It fails unless they are in the order of their reads and none has
// expired.
func spend(proofs ...*witness) error {
	for i, w := range proofs {
		if w == nil {
			return unproven("a proof is missing")
		}
		next := w.clock.Now()
		if i+1 < len(proofs) && proofs[i+1] != nil {
			next = proofs[i+1].began
		}
		switch gap := next.Sub(w.ended); {
		case w.spent:
			return unproven("a proof was used before: %s", w)
		case gap < 0:
			return unproven("proofs are out of order: %s", w)
		case gap > lifetime:
			return unproven("a proof has expired: %s", w)
		}
	}
	for _, w := range proofs {
		w.spent = true
	}
	return nil
}

func unproven(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnproven, fmt.Sprintf(format, args...))
}

// MemberCurrent is the proof that the member was not restored while this process ran.
type MemberCurrent struct{ w *witness }

// MemberCurrent proves, by a live read of the member's fence, that the presence or absence of
// member objects does not come from a backup. Call it after the reads that depend on it.
func (p Prover) MemberCurrent(ctx context.Context) (MemberCurrent, error) {
	began := p.Clock.Now()
	if err := p.Unrestored(ctx); err != nil {
		return MemberCurrent{}, err
	}
	return MemberCurrent{p.testify(began, "", "")}, nil
}
