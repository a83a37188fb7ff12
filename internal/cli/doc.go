// Package cli implements the kubectl plugin `kubectl xylem`. It has the root command. Each
// subpackage adds a command, and package command has what they share.
package cli
