// Package optional reads kinds that a member may not serve, or may not allow Xylem to read: snapshots
// and VolumeAttachments. The link to such a member still works, and the controllers of these kinds
// report the problem. If a member stops serving them, the link ends, and the next link begins
// without them.
package optional
