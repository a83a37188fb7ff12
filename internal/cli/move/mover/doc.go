// Package mover runs the two Pods of a move: the reader in the member with the old disk, and the
// writer in the member with the copy. Package transfer runs its scripts in these Pods.
package mover
