// Package csidriver is a CSI controller that makes a directory for each volume
// and keeps a ledger of every call. The real csi-provisioner and csi-resizer
// drive it, so that everything above it is as in production; it has no node
// side, for there are no kubelets.
//
// Its state is its directory: volumes/<id>/ for each volume, ledger.jsonl, and
// faults.json, by which a test makes calls fail, stall, or lose their answer
// while the driver runs (SetFaults).
//
// StorageClass parameters that it knows: ParamMaxBytes and ParamNodeExpansion.
package csidriver
