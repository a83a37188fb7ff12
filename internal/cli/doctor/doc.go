// Package doctor implements `kubectl xylem doctor`, which checks an installation from outside, in
// the host and in members.
package doctor
