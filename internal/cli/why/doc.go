// Package why implements `kubectl xylem why`, which explains why a Pod does not run or a claim is
// not bound, and what to do, in one sentence each. It then lists the evidence. The diagnosis is pure: its input is what
// package inspect reads.
//
// Each problem that an object reports is a Cause. Causes are ordered by stage: problems that must
// be solved first come first, because they often lead to the others. A missing StorageClass comes
// before a member that is away. A claim's conditions come next, followed by those of the Pod and by
// the problems of the member's provisioner, scheduler and kubelets. Problems of a Pod's claims that do
// not concern the Pod, such as a rejected expansion, come last and do not explain the Pod. If nothing
// else reports a problem, the diagnosis is what the Pod or claim waits for.
package why
