// Package objects reads and writes the objects of a move in the host: its record, its claims and
// volumes, and the two mover Pods. The reader runs in the member with the old disk, and the writer in
// the member with the copy.
//
// The record is the durable state of a move, in a ConfigMap in the claim's namespace. Each run writes
// its ID to the record first. Every later write of an earlier run then fails with ErrTakenOver. The
// reclaim policy that a volume had before the move is an annotation of the volume, because tenants can
// write the ConfigMap.
//
// Between reading a claim or a volume and changing or deleting it, an ObjectWriter checks that no
// other run has taken over. The write has the object's resourceVersion as a precondition. A run that
// takes over changes the object before relying on it, so a delayed write of an earlier run fails.
package objects
