// Package leafattachment reports on root claims to which node of the member their volume is
// attached: the condition xylem.io/Attached. The host attaches nothing itself (its CSIDriver has
// attachRequired: false), so nothing there depends on the condition.
//
// Its controller leaf_attachment, in each member's Link, derives the condition from the member's
// VolumeAttachments. A volume that never had one has no condition: its driver may attach nothing.
// Once a claim has the condition, it keeps it as long as it has its volume.
//
// Its controller away_attachment, on the leader, reconciles the claims on which no Link reports. It
// sets the condition to Unknown if the member is away or was deregistered, and removes it from a
// claim without a volume in a member. Both controllers write as the same field owner.
package leafattachment
