// Package reflectedclass publishes classes of members in the host: the controller
// reflected_class, on the leader, one request per name, the only writer of those host
// StorageClasses; and member_class, for each Link, which notes what classes the member has.
// Package reflection decides.
//
// A reflected class has the member's name, reclaim policy and allowVolumeExpansion, and no
// parameters. It waits for its consumer, and its allowedTopologies select the members that
// offer it. If an immutable field must change, the class is deleted and created again in
// one step, with the labels and annotations of others, such as the default class's. Between
// the two writes these are in the manager's memory only: a manager that is killed just then
// loses them.
//
// A reflected class that is deleted or re-created takes nothing with it: a volume has its
// policy from when it was mirrored, and claims need their class only to expand. A volume
// that is mirrored in that very moment is retained, as with any class that is gone
// (hostpv.Policy), since nobody can be asked whether it should not be (I2); it shows as a
// Released volume when its claim is deleted. Deletion of a class does not wait for claims
// under way: their member may be the reason why the class is deleted.
//
// Ours is a class with our provisioner, managed-by label and an offer's label. An admin who
// removes these takes over the class; it is then a conflict like any other, and reported.
package reflectedclass
