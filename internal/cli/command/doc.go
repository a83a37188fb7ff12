// Package command has what the plugin's commands are made of: the streams, the
// clients of host and members, colour, and printed objects.
package command
