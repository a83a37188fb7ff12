// Package pacing limits the writes to the host that one member causes: how many are in flight at a
// time, and how many bytes of status they change per second.
package pacing
