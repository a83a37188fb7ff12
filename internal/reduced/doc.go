// Package reduced determines what caches keep of the objects that they receive.
//
// ListWatch reduces each object of a stream before it decodes the next one, and skips those that no controller
// asks for. API servers stream lists, too, unless this is disabled; then, ListWatch reduces one response at a time.
//
// Claim, InternVolume and InternText let cached objects share equal values: labels, sizes, and the names of classes,
// drivers and members. A cache holds tens of thousands of claims and volumes. Without sharing, each
// decoded object has its own maps, and even a map with a single entry takes several hundred bytes.
// Shared values are never modified: the cache does not change its objects, and readers receive
// copies, or objects that they must not change (index.ReadOnly).
package reduced
