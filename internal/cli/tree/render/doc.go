// Package render prints a tree on a terminal.
package render
