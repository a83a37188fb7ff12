// Package leafattachment sets the condition xylem.io/Attached on root claims. It reports to which
// of the member's nodes the volume is attached. The host attaches nothing itself (its CSIDriver has
// attachRequired: false), so nothing there depends on the condition.
//
// Its controller leaf_attachment, in each member's Link, derives the condition from the member's
// VolumeAttachments. If a volume never had one, its claim has no condition, because the driver may
// attach nothing. A claim that has the condition keeps it as long as it has its volume.
//
// Its controller away_attachment, on the leader, reconciles the claims on which no Link reports. It
// sets the condition to Unknown if the member is away or was deregistered, and removes it from a
// claim without a volume in a member. Both controllers write as the same field owner.
package leafattachment
