// Package account keeps facts about each member's leaf volumes that no cache contains: which
// volumes are orphans, according to live reads of host and member, and which deletions are stuck.
// The members' controllers record these facts, and the host's controllers read them. If a fact
// cannot be read, it counts as unknown from that time on, not as absent. The package also records
// the host PVs that this process created, and provisioning latencies.
//
// Its part exhausted records the sizes of volumes that a member's drivers rejected for lack of
// space. The recovery controller records the sizes, and the capacity controller publishes only the
// capacity that remains.
//
// Its part withdrawn keeps a record of leaf claims that were withdrawn from a member, in the host's
// record of the member and in the member's fence. A provisioner may still create a volume for such
// a claim, and the orphan controller recognizes the volume by this record.
package account
