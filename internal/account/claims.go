package account

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// maxRecordedClaims is the maximum number of recorded claims. The oldest ones are dropped first.
const maxRecordedClaims = 500

// WithdrawnClaim is a leaf claim that was withdrawn while a provisioner may have been creating a
// volume that outlives it.
type WithdrawnClaim struct {
	// Root is the claim's <namespace>/<name>, which is also in its volume's claimRef. It is empty
	// in the member's record, and also in the host's record if its annotation ran out of space.
	Root string `json:"root,omitempty"`
	// At is when the claim was withdrawn, in seconds since 1970.
	At int64 `json:"at"`
}

// WithdrawnClaimsInRecord reads the withdrawn claims from the host's record of a member, or from the fence
// in the member, by the UIDs of the leaf claims. It returns none for a nil Lease.
func WithdrawnClaimsInRecord(record *coordinationv1.Lease) (map[types.UID]WithdrawnClaim, error) {
	claims := map[types.UID]WithdrawnClaim{}
	if record == nil || record.Annotations[v1alpha1.AnnotationWithdrawn] == "" {
		return claims, nil
	}
	if err := json.Unmarshal([]byte(record.Annotations[v1alpha1.AnnotationWithdrawn]), &claims); err != nil {
		return nil, fmt.Errorf("parse annotation %s of Lease %s: %w", v1alpha1.AnnotationWithdrawn, record.Name, err)
	}
	if claims == nil { // the annotation is "null"
		claims = map[types.UID]WithdrawnClaim{}
	}
	return claims, nil
}

// RecordWithWithdrawnClaim returns a copy of a record with the claim added, or the record itself if it already
// contains the claim. root is the same as WithdrawnClaim.Root. It replaces a record that does not parse.
func RecordWithWithdrawnClaim(record *coordinationv1.Lease, leaf types.UID, root string, now time.Time) (*coordinationv1.Lease, error) {
	claims, err := WithdrawnClaimsInRecord(record)
	if err != nil {
		claims = map[types.UID]WithdrawnClaim{}
	}
	if _, has := claims[leaf]; has {
		return record, nil
	}
	claims[leaf] = WithdrawnClaim{Root: root, At: now.Unix()}
	oldest := slices.SortedFunc(maps.Keys(claims), func(a, b types.UID) int {
		return cmp.Or(cmp.Compare(claims[a].At, claims[b].At), cmp.Compare(a, b))
	})
	for len(claims) > maxRecordedClaims {
		delete(claims, oldest[0])
		oldest = oldest[1:]
	}
	text, err := encodeWithinLimit(claims, oldest, mirror.RecordAnnotationSpace(record.Annotations, v1alpha1.AnnotationWithdrawn))
	if err != nil {
		return nil, err
	}
	after := record.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	after.Annotations[v1alpha1.AnnotationWithdrawn] = string(text)
	return after, nil
}

// encodeWithinLimit encodes the claims in no more than limit bytes. It first drops the names of the oldest
// claims, because the UID is enough to recognize a volume. If even the UIDs do not fit, it drops
// the oldest claims.
func encodeWithinLimit(claims map[types.UID]WithdrawnClaim, oldest []types.UID, limit int) ([]byte, error) {
	for named := 0; ; {
		text, err := json.Marshal(claims)
		if err != nil {
			return nil, fmt.Errorf("encode the withdrawn claims: %w", err)
		}
		excess := len(text) - limit
		if excess <= 0 || len(oldest) == 0 {
			return text, nil
		}
		for ; excess > 0 && named < len(oldest); named++ {
			uid := oldest[named]
			excess -= len(claims[uid].Root)
			claims[uid] = WithdrawnClaim{At: claims[uid].At}
		}
		for ; excess > 0 && len(oldest) > 0; oldest = oldest[1:] {
			excess -= len(oldest[0])
			delete(claims, oldest[0])
		}
		named = min(named, len(oldest))
	}
}
