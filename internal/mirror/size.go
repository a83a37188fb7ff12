package mirror

import "github.com/xylem-io/xylem/internal/weigh"

// LeafSizeLimit is the maximum memory, in bytes, that a leaf object may take in the manager. etcd limits
// an object to 1.5 MiB, so only an object with tens of thousands of parts exceeds LeafSizeLimit. Without
// this limit, a tenant's few objects could exceed the limits of a member's responses and caches.
const LeafSizeLimit = 4 << 20

// LeafSizeLimitText is LeafSizeLimit for messages.
const LeafSizeLimitText = "4 MiB"

// IsLeafTooLarge reports whether a leaf object exceeds LeafSizeLimit.
func IsLeafTooLarge(leaf any) bool { return weigh.WeighObject(leaf) > LeafSizeLimit }
