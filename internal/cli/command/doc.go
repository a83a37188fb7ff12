// Package command has what the plugin's commands share: streams, clients of host and members,
// colors, and printing of objects.
package command
