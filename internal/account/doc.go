// Package account keeps facts about the leaf volumes in each member that no cache has: which of
// them are orphans, by live reads of both sides, and which deletions are stuck. Members'
// controllers write it, and the host's controllers read it. Facts that could not be read are
// unknown since a time, and not absent. The package also records the host PVs that this process
// created, withdrawn claims, and provisioning latencies.
package account
