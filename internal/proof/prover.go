package proof

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror"
)

// Prover proves facts by reading the host and one member.
type Prover struct {
	mirror.Member
	// HostLive and Live bypass the caches of the host and the member.
	HostLive, Live client.Reader
	// Host and Cache read these caches, which can refute but never prove.
	Host, Cache client.Reader
	Clock       clock.PassiveClock
	// MayBeRestored reports whether an object in the member may come from a backup.
	MayBeRestored func(metav1.Object) bool
	// MayLackRoot reports whether the host may have lost the root of an object in the member when the
	// host was restored.
	MayLackRoot func(metav1.Object) bool
	// CheckUnrestored returns nil if a live read shows that the member was not restored while this
	// process ran.
	CheckUnrestored func(context.Context) error
	// WaitingClaims shares live lists of a namespace's claims whose volume may still be created from others.
	WaitingClaims *SharedReads[string, []corev1.PersistentVolumeClaim]
	// RecordedLeaves shares live lists of the host's PVs, as the UIDs of those that name each leaf PV of the member.
	RecordedLeaves *SharedReads[struct{}, map[string][]types.UID]
}

// newWitness returns a Witness for reads that began at the given time and end now.
func (p Prover) newWitness(began time.Time, uid types.UID, version string) *Witness {
	return NewWitness(p.Clock, began, uid, version)
}

// MemberCurrent is the proof that the member was not restored while this process ran.
type MemberCurrent struct{ witness *Witness }

// ProveMemberCurrent proves by a live read of the member's fence that the presence or absence of the
// member's objects does not result from a restore. Call it after the reads that depend on it.
func (p Prover) ProveMemberCurrent(ctx context.Context) (MemberCurrent, error) {
	began := p.Clock.Now()
	if err := p.CheckUnrestored(ctx); err != nil {
		return MemberCurrent{}, err
	}
	return MemberCurrent{p.newWitness(began, "", "")}, nil
}

// Witness returns the proof, for an Evidence in a subpackage.
func (m MemberCurrent) Witness() *Witness { return m.witness }
