// Package command provides what the plugin's commands share: streams, clients for the host and
// members, colors, and printing of objects.
package command
