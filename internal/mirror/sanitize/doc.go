// Package sanitize makes a member's data safe for the host: plain text of limited length, short
// lists, no quantities that are negative or out of range, and only valid addresses of Pods and nodes.
// It does not change what an honest member reports. It is pure.
package sanitize
