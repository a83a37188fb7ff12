// Package pacing limits the writes to the host that one member causes: how many are in flight at a
// time, how many bytes of status they change per second, and how often they change each object.
package pacing
