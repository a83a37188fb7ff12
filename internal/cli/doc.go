// Package cli is the kubectl plugin `kubectl xylem`: the root command, to which each
// package below adds one. Package command has what they share.
package cli
