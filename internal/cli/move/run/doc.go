// Package run moves a claim, reverts a move, or deletes the old disks of a claim. Move contains the
// whole sequence. Each step starts from the record and from the current objects in the host, so
// another run can continue after a run ends at any write.
package run
