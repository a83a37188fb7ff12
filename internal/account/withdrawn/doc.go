// Package withdrawn keeps a record of leaf claims that were withdrawn from a member, in the host's
// record of the member and in the member's fence. A provisioner may still create a volume for such
// a claim, and the orphan controller recognizes the volume by this record.
package withdrawn
