package placing

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/index"
)

// askTimeout is the timeout for the reads of all other members. A member that does not respond in
// time is treated as away, and the check is repeated.
const askTimeout = 5 * time.Second

// Other is another registered member in which a root may have been placed.
type Other struct {
	Registration string
	// Live reads the member, bypassing caches. It is nil while the member has no Link.
	Live client.Reader
	// Unrestored returns nil if a live read shows that the member does not lack objects because
	// of a restore.
	Unrestored func(context.Context) error
}

// Counterparts are the registrations of other members that have a leaf claim for a root, and of
// members that could not be checked. Both are sorted.
type Counterparts struct {
	In, Unasked []string
}

// Any reports whether another member has, or may have, a leaf claim for the root.
func (c Counterparts) Any() bool { return len(c.In)+len(c.Unasked) > 0 }

// CounterpartsOf checks by live reads whether another member has a leaf claim for a root. It
// returns an error only if the context ends. A member that cannot be read is listed in
// Unasked.
func CounterpartsOf(ctx context.Context, hostID string, root *corev1.PersistentVolumeClaim, others []Other) (Counterparts, error) {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var found Counterparts
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, other := range others {
		asked.Go(func() {
			has, known := counterpartIn(asking, hostID, root, other)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case has:
				found.In = append(found.In, other.Registration)
			case !known:
				found.Unasked = append(found.Unasked, other.Registration)
			}
		})
	}
	asked.Wait()
	slices.Sort(found.In)
	slices.Sort(found.Unasked)
	return found, ctx.Err()
}

// counterpartIn reports whether a member has a leaf claim for a root, and whether this is known.
func counterpartIn(ctx context.Context, hostID string, root *corev1.PersistentVolumeClaim, other Other) (has, known bool) {
	if other.Live == nil {
		return false, false
	}
	leaf, origin, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, other.Live, hostID, client.ObjectKeyFromObject(root))
	if err != nil {
		return false, false
	}
	if leaf != nil && origin.UID == root.UID {
		return true, true
	}
	return false, other.Unrestored(ctx) == nil
}
