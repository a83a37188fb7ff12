// Package adopt implements `kubectl xylem adopt`, which makes a member's existing volume available
// in the host. An admin of both clusters runs it. It labels the volume in the member, which
// represents the consent of the member's admin, and creates the host PersistentVolume that requests
// the volume. First, it checks everything that the controllers check, with live reads and the
// controllers' code (package volume), and validates both writes with dry runs.
package adopt
