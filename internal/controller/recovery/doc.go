// Package recovery sends claims that a member cannot meet to another one: the
// controller recovery, for each Link, one request per root claim.
//
// root_pvc keeps the evidence: the claim's Placed condition, with the member's own
// words, and since when. When that has stood for the class's timeout, all unbound
// claims of the Pod are steered, together, to the next member that has the class,
// has room, and that the Pod may run in: their selected-node is rewritten, which
// fails the scheduler's waiting PreBind and makes it try that node only. All else
// follows from there: root_pod and root_pvc take back what was pushed, and
// root_pvc of the other member places the claim once the scheduler agrees. What
// was tried stands in an annotation, so that a restart forgets nothing, no member
// is tried twice in a round, and rounds have pauses between them.
//
// A volume is never left behind knowingly: nothing is moved while a live read
// shows one for any of the claims, or one of the Pod's claims is bound. A leaf
// claim that is bound in the moment after that stays, and wins (root_pvc).
//
// It writes the root's steered-to and tried annotations, and selected-node.
package recovery
