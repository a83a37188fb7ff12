// Package triggers lists the events of both clusters to which root_pod reacts, and maps each event to
// the Pods that it concerns. A Pod is enqueued by the name that root and leaf share.
package triggers
