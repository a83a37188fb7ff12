// Package guarded is the only place that writes to a cluster on behalf of a
// member's controllers. Each write is checked first: is the fence still ours
// (DESIGN: the fence), is the object ours (I4: stamp or label, and UID), may
// anything be destroyed at present (I2). What ends a leaf claim, or sets a leaf PV to Delete,
// takes evidence of package proof that covers the object. Deletes carry a UID precondition, in the
// host a resourceVersion as well, patches both, server-side applies a UID, so that a
// write meant for one object can never meet another of the same name.
//
// A Leaf writes to a member, a Root to the host. Neither retries: a conflict is
// an error, and the watch that brings the newer object brings the reconcile.
package guarded
