// Package run moves a claim, or reverts a move. Move contains the whole sequence. Each step starts
// from the record and from the current objects in the host, so another run can continue after a run
// ends at any write.
package run
