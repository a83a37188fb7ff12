package mirror

import "github.com/xylem-io/xylem/internal/weigh"

// SizeLimit is the maximum memory, in bytes, that a leaf object may take in the manager. etcd limits
// an object to 1.5 MiB, so only an object with tens of thousands of parts exceeds SizeLimit. Without
// this limit, a tenant's few objects could exceed the limits of a member's responses and caches.
const SizeLimit = 4 << 20

// SizeLimitText is SizeLimit for messages.
const SizeLimitText = "4 MiB"

// TooLarge reports whether a leaf object exceeds SizeLimit.
func TooLarge(leaf any) bool { return weigh.Object(leaf) > SizeLimit }
