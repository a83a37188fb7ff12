// Package csidriver is a CSI driver that creates a directory for each volume and keeps a ledger of
// every call to its controller. The real csi-provisioner and csi-resizer call it, so everything
// above it is as in production. Loopback clusters have no kubelets, so it has no node service
// there. On a node with a kubelet (Options.Node), it registers itself there and mounts the
// directories.
//
// Its state is its directory: volumes/<id>/ for each volume, snapshots/<id>/ for each snapshot,
// ledger.jsonl, and faults.json. With faults.json, a test makes calls fail, stall, or lose their
// response while the driver runs (SetFaults).
//
// The content of a disk is its directory. The file "data" identifies the content: in a new disk,
// it contains the disk's own ID, and in a clone or restored disk, the content of the source's file
// (WriteData, ReadData).
//
// It supports the StorageClass parameters ParamMaxBytes, ParamNodeExpansion and
// ParamHeldBySnapshots, and the VolumeSnapshotClass parameter ParamReadyAfter.
package csidriver
