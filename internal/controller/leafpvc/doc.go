// Package leafpvc copies the status of a leaf claim to its root: capacity, the state of a
// resize, volume attributes, and their conditions. The host's PV controller owns the root's
// phase and binding.
//
// The controller also sets the condition xylem.io/Attached on the root, from the member's
// VolumeAttachments: it reports to which of the member's nodes the volume is attached. The host attaches
// nothing itself (its CSIDriver has attachRequired: false), so nothing there depends on the condition. If
// a volume never had a VolumeAttachment, its claim has no condition, because the driver may attach
// nothing. A claim that has the condition keeps it as long as it has its volume. away_attachment reports
// while there is no Link.
package leafpvc
