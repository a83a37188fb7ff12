package doctor

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// CheckFence is the name of this check.
const CheckFence Check = "Fence"

var fenceCheck = checkOf[*Member]{name: CheckFence, read: readFence, judge: infallible(judgeFence)}

func readFence(ctx context.Context, r *inspect.Reader, m *Member) {
	m.Fence = inspect.ReadObject[coordinationv1.Lease](ctx, r, "the fence Lease "+m.host.ID, client.ObjectKey{Namespace: m.host.Namespace, Name: m.host.ID})
}

// judgeFence checks whether the manager holds its Lease in the member.
func judgeFence(m *Member) []Finding {
	h := m.host
	if !m.isRegisteredAndRead() || !m.Fence.Read || !m.isConnected() {
		return nil
	}
	now := m.At.Add(m.Clock.Ahead)
	if m.Fence.Item == nil || inspect.LeaseExpired(m.Fence.Item, now) {
		return []Finding{problem(Error, fmt.Sprintf("the manager reports that it is connected, but nobody holds the fence: Lease \"%s/%s\" %s", h.Namespace, h.ID, inspect.LeaseRenewal(m.Fence.Item, now)),
			"Check that the manager is running, and that nobody deletes the Lease.")}
	}
	return []Finding{passed("the manager holds the fence")}
}
