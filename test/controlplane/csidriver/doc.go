// Package csidriver is a CSI controller that makes a directory for each volume
// and keeps a ledger of every call. The real csi-provisioner and csi-resizer
// drive it, so that everything above it is as in production; it has no node
// side, for there are no kubelets.
//
// Its state is its directory: volumes/<id>/ for each volume, snapshots/<id>/ for each
// snapshot, ledger.jsonl, and faults.json, by which a test makes calls fail, stall, or lose their answer
// while the driver runs (SetFaults).
//
// A disk's data is its directory. The file "data" identifies it: a new disk's is its own
// ID, a clone and a restored disk have their source's (WriteData, ReadData).
//
// StorageClass parameters that it knows: ParamMaxBytes, ParamNodeExpansion and
// ParamHeldBySnapshots; of a VolumeSnapshotClass: ParamReadyAfter.
package csidriver
