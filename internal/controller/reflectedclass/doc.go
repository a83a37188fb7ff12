// Package reflectedclass publishes classes of members in the host: the controller
// reflected_class, on the leader, one request per name, the only writer of those
// host StorageClasses; and member_class, for each Link, which notes what classes
// the member has.
//
// A reflected class has the member's name, reclaim policy and allowVolumeExpansion,
// no parameters, waits for its consumer, and is held by its allowedTopologies to the
// members that offer it. When policy or anything else that cannot be changed becomes
// another, it is deleted and made anew, with what others had put on it. Claims do not need their class to live, grow
// excepted, nor to be deleted: their volumes carry the policy. What is being made at
// the moment when its class goes is retained (hostpv.Policy).
package reflectedclass
