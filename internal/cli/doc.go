// Package cli implements the kubectl plugin `kubectl xylem`. It contains the root command. Each
// subpackage adds a command, and package command contains what the commands share.
package cli
