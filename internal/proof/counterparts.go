package proof

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/index"
)

// counterpartTimeout is the timeout for the reads of all other members. A member that does not respond in
// time is treated as away, and the check is repeated.
const counterpartTimeout = 5 * time.Second

// OtherMember is another registered member in which a root may have been placed.
type OtherMember struct {
	Registration string
	// Live reads the member, bypassing caches. It is nil while the member has no Link.
	Live client.Reader
	// CheckUnrestored returns nil if a live read shows that the member does not lack objects because
	// of a restore.
	CheckUnrestored func(context.Context) error
}

// Counterparts are the registrations of other members that have a leaf claim for a root, and of
// members that could not be checked. Both are sorted.
type Counterparts struct {
	Found, Unchecked []string
}

// MayExist reports whether another member has, or may have, a leaf claim for the root.
func (c Counterparts) MayExist() bool { return len(c.Found)+len(c.Unchecked) > 0 }

// FindCounterparts checks by live reads whether another member has a leaf claim for a root. It
// returns an error only if the context ends. A member that cannot be read is listed in
// Unasked.
func FindCounterparts(ctx context.Context, hostID string, root *corev1.PersistentVolumeClaim, others []OtherMember) (Counterparts, error) {
	asking, cancel := context.WithTimeout(ctx, counterpartTimeout)
	defer cancel()
	var found Counterparts
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, other := range others {
		asked.Go(func() {
			has, known := findCounterpartIn(asking, hostID, root, other)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case has:
				found.Found = append(found.Found, other.Registration)
			case !known:
				found.Unchecked = append(found.Unchecked, other.Registration)
			}
		})
	}
	asked.Wait()
	slices.Sort(found.Found)
	slices.Sort(found.Unchecked)
	return found, ctx.Err()
}

// findCounterpartIn reports whether a member has a leaf claim for a root, and whether this is known.
func findCounterpartIn(ctx context.Context, hostID string, root *corev1.PersistentVolumeClaim, other OtherMember) (has, known bool) {
	if other.Live == nil {
		return false, false
	}
	leaf, origin, err := index.FindStamped[corev1.PersistentVolumeClaim](ctx, other.Live, hostID, client.ObjectKeyFromObject(root))
	if err != nil {
		return false, false
	}
	if leaf != nil && origin.UID == root.UID {
		return true, true
	}
	return false, other.CheckUnrestored(ctx) == nil
}
