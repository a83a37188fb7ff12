// Package leafsnapshot carries what a member has of a snapshot up. It stamps the leaf content and
// sets it to Retain before the host knows of it, records it on the host content, and writes that
// content's status: what the member's driver says, or why the snapshot can't be taken or restored.
package leafsnapshot
