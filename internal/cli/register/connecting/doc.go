// Package connecting waits until the manager has connected to a registered member.
package connecting
