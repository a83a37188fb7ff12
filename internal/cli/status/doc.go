// Package status implements `kubectl xylem status`, which prints an overview of the fleet, based
// only on objects in the host.
package status
