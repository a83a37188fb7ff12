// Package account keeps facts about each member's leaf volumes that no cache contains: which
// volumes are orphans, according to live reads of host and member, and which deletions are stuck.
// The members' controllers record these facts, and the host's controllers read them. If a fact
// cannot be read, it counts as unknown from that time on, not as absent. The package also records
// the host PVs that this process created, and provisioning latencies.
package account
