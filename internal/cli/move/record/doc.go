// Package record defines the durable state of a move, stores it in a ConfigMap in the claim's
// namespace, and derives the claims and annotations of the move from it. The reclaim policy that a
// volume had before the move is an annotation of the volume, because tenants can write the ConfigMap.
//
// Each run writes its ID to the record first. Every later write of an earlier run then fails with
// ErrTakenOver.
package record
