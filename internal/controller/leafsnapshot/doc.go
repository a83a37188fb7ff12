// Package leafsnapshot mirrors a member's snapshots to the host. It first stamps the leaf content
// and sets its policy to Retain, and then records it on the host content. It writes the host
// content's status: what the member's driver reports, or why the snapshot cannot be taken or
// restored.
package leafsnapshot
