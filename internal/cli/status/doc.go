// Package status implements `kubectl xylem status`: the fleet at a glance, from the host's
// objects alone.
package status
