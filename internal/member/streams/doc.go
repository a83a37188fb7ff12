// Package streams opens log streams and connections to a member's Pods through the member's API
// server, for the node API.
package streams
