// Package pacing limits what one member makes Xylem write to the host: how many writes are in flight
// at a time, and how many bytes of statuses change in a second.
package pacing
