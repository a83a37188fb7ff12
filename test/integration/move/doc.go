// Package move tests `kubectl xylem move` with real files: exec sessions run programs of this
// machine on the disks of the members' CSI driver.
package move
