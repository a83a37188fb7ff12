// Package triggers has the events of both clusters that root_pvc reacts to, and which claims each
// of them concerns. A claim is enqueued by the name that root and leaf share.
package triggers
