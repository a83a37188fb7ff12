// Package move tests `kubectl xylem move` with real files: exec sessions run this machine's
// programs on the disks that the members' CSI driver creates.
package move
