// Package doctor implements `kubectl xylem doctor`: it checks an installation, in the host and in
// members, from outside. Package facts reads, and package judge decides.
package doctor
