// Package doctor implements `kubectl xylem doctor`, which checks an installation from outside, in
// the host and in members. Package collect reads the facts, and package judge evaluates them.
package doctor
