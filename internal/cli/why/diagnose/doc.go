// Package diagnose finds out why a Pod does not run, or a claim is not bound. It is pure: its input
// is what `kubectl xylem tree` gathers.
//
// Each problem that an object reports is a Cause. Causes are ordered by stage: causes that must be
// solved first come first, because later ones often follow from them. A missing StorageClass
// precedes a member that is away, which precedes a claim's conditions, then the Pod, the member's
// scheduler, its provisioner and its kubelets. If nothing reports a problem, the Pod or claim waits
// for the deepest object that is not ready yet.
package diagnose
