// Package cli is kubectl's plugin, `kubectl xylem`: one command that the packages
// below it add theirs to. What these have in common is in package command.
package cli
