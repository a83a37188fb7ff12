// Package adopt implements `kubectl xylem adopt`, which makes a member's existing volume available
// in the host. An admin of both clusters runs it. The command labels the volume in the member, and
// creates the host PersistentVolume that requests the volume. The label represents the consent of
// the member's admin. First, the command checks everything that the controllers check, with live
// reads and the controllers' code (package volume), and validates both writes with dry runs.
package adopt
