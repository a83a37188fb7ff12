// Package lifecycle decides the lifecycle of a Pod in one member. The pure function NextDecision maps what
// root_pod has observed of the root, its leaf and its claims to the next step, and to the message
// for the user. root_pod takes the step.
//
// # Early push
//
// A WaitForFirstConsumer class in the member waits for a Pod. Xylem therefore creates the leaf Pod
// before the host has bound the root (decideEarlyPush). As a result, the leaf's containers may start
// before the host reports the Pod as scheduled. The Pod's nominated node shows that the scheduler
// chose the member. For schedulers that do not nominate nodes, NextDecision checks whether the Pod fits the node. A
// scheduler whose attempt failed can lose its next nomination (podstatus.NominationLost). It would then
// wait for the volume until its attempt times out, after ten minutes by default, and Xylem would wait for the
// nomination. Xylem therefore removes selected-node from a claim of the Pod, and the scheduler chooses again. This
// needs no trust in the cause of the failure, which may be a tenant's change.
//
// If an admin cordons the node before the scheduler has bound the root, and the scheduler restarts, it
// cannot bind the root, and a drain does not evict an unbound Pod. The leaf may run, so it stays, and the
// root's condition xylem.io/Pushed reports this (UnbindableLeafRuns).
//
// # A Pod runs only once
//
// The condition xylem.io/Pushed records the UID of the leaf that runs for a root. Xylem never
// creates another leaf for such a root: leaf_pod fails the root when the leaf is gone. If a
// restored member runs the leaf of a root that has finished or is gone, root_pod deletes that leaf.
//
// If an early leaf is gone, the root counts as withdrawn only if the leaf cannot have started. That
// is the case if the member has not bound one of its claims: the leaf claim is not bound or gone, and
// no host PV mirrors its volume. root_pod proves this with live reads. Creating the leaf and recording
// its UID are two writes. If the manager is killed and the leaf vanishes between them, the leaf is
// created again.
package lifecycle
