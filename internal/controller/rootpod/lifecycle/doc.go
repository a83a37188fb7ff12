// Package lifecycle is the life of a Pod in one member, as a pure function: Next maps what
// root_pod has observed of the root, its leaf and its claims to the next step, and to the
// message that the user gets meanwhile. root_pod takes the step.
//
// # Early push
//
// A WaitForFirstConsumer class in the member waits for a Pod. So Xylem creates the leaf Pod
// before the host has bound the root (mayGoEarly). Its containers may start shortly before
// the host shows the Pod as scheduled. The Pod's nomination shows that the scheduler wants
// it there. A scheduler that waited for a volume in vain can lose its next nomination
// (podstatus.NominationLost); then, and with schedulers that do not nominate, Next checks
// the Pod itself.
//
// # Ran once
//
// The condition xylem.io/Pushed records the UID of the leaf that runs for a root. Such a
// root never gets another leaf; leaf_pod ends it when the leaf is gone. If a restored member
// runs the leaf of a root that has ended or is gone, that leaf is deleted.
//
// An early leaf that is gone is withdrawn only if it cannot have started: a claim was not
// bound in the member, neither by its leaf claim nor, if that is gone as well, by the host
// PV that mirrors its volume. One write lies between the leaf's creation and the record: a
// leaf that vanishes just then, while the manager is killed, is created again.
package lifecycle
