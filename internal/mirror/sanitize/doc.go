// Package sanitize makes a member's data fit for the host: plain text of limited length,
// short lists, no negative amounts, and only addresses of Pods and nodes. It does not
// change what an honest member reports. It is pure.
package sanitize
