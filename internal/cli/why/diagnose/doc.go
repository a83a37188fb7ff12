// Package diagnose finds out why a Pod does not run, or a claim is not bound. It is pure: its input
// is what `kubectl xylem tree` gathers.
//
// Each problem that an object reports is a Cause. Causes are ordered by stage: causes that must be
// solved first come first, because later ones often follow from them. A missing StorageClass comes
// before a member that is away. A claim's conditions come next, followed by the Pod and the
// member's scheduler, provisioner and kubelets. If nothing reports a problem, the Pod or claim
// waits for the deepest object that is not ready yet.
package diagnose
