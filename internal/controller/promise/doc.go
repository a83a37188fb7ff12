// Package promise is the controller promise: it binds the claims of classes with
// xylem.io/provisioning: promise at once, each to a PV of its own that promises a
// disk, whichever binding mode the class has. The disk is made in the member in
// which the first Pod of the claim lands (root_pvc), and recorded on the PV then
// (leaf_pv); its end is root_pv's, and that of a promise that no member ever had is
// host_volume's.
//
// It keeps the claim's Promise condition, so that Bound does not hide for longer than
// seconds that there is no disk, and tells Pods on nodes of the host that no disk can
// reach them there.
package promise
