// Package olddisks destroys the disks that finished moves of a claim kept. It destroys none while
// the claim may have lost its current disk.
package olddisks
