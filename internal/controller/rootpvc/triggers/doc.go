// Package triggers lists the events of both clusters to which root_pvc reacts, and maps each event
// to the claims that it concerns. A claim is enqueued by the name that root and leaf share.
package triggers
