// Package reflectedclass publishes the members' classes in the host. It has two controllers.
// reflected_class runs on the leader, reconciles one class name for each request, and is the only
// writer of reflected StorageClasses. It also reports invalid parameters of Xylem's own classes, in an
// event on the StorageClass. member_class runs for each Link and records the member's classes. Package
// reflection makes the decisions.
//
// A reflected class has the name, reclaim policy and allowVolumeExpansion of the member's class,
// and no parameters. Its binding mode is WaitForFirstConsumer, and its allowedTopologies select the
// members that offer it. If an immutable field must change, the controller deletes the class and
// re-creates it in one step, with the labels and annotations that others set, such as the
// annotation that marks the default class. Between the two writes, these exist only in the
// manager's memory. If the manager is killed at that moment, they are lost.
//
// Deleting or re-creating a reflected class does not affect volumes: a volume got its policy when
// it was mirrored, and claims need their class only to expand. A volume that is mirrored while its
// class is missing gets policy Retain, as with any missing class (hostpv.HostReclaimPolicy), because the
// intended policy is unknown (I2). Such a volume becomes Released when its claim is deleted. The
// deletion of a class does not wait for pending claims, because their member may be the reason for
// the deletion.
//
// A class is reflected if it has Xylem's provisioner, the managed-by label, and a label that names
// a registration that offers it. An admin who removes these labels takes over the class. The
// controller then reports the class as a conflict.
package reflectedclass
