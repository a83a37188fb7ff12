// Package snapshots tests VolumeSnapshots on real control planes, with snapshot-controller in the
// host and the members, and with csi-snapshotter and a driver in the members. Each driver's ledger
// records which snapshots it took and destroyed.
package snapshots
