// Package diagnose finds out why a Pod does not run, or a claim is not bound. It is pure: it
// reads what `kubectl xylem tree` gathers.
//
// Each problem that an object reports is a Cause. Causes are ordered by stage: what has to be
// solved first comes first, since the later ones often follow from it. A missing StorageClass
// precedes a member that is away, which precedes what a claim reports, then the Pod, the
// member's scheduler, its provisioner and its kubelets. If nothing reports a problem, the
// deepest object that is not ready yet says what the Pod or claim waits for.
package diagnose
