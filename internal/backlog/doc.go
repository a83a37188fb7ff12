// Package backlog holds back claims that the host could not bind yet.
//
// The host's PV controller binds one claim after the other, with a few requests each, while
// members provision side by side. If thousands of claims arrive at once, everything that is
// pushed for those that must wait takes processor time from the claim that is being bound:
// 5,000 claims over four members never finished on two processors.
//
// At most 300 claims are under way at a time: those that the gate admitted within the last ten
// seconds, and those whose volume waits for the PV controller. Above that, new claims queue,
// namespaces take turns, and the gate admits one for each that is bound. TestBursts simulates
// it: a burst takes as long as the PV controller does, up to 30 claims a second.
//
// Four rules keep claims that cannot be bound from blocking others:
//
//   - A member has its share of the 300, whatever the others have (I7).
//   - An admitted claim without a volume no longer counts after ten seconds.
//   - A volume that is not bound no longer counts after five minutes.
//   - A claim that is not to be placed any more leaves the queue.
//
// A claim that waits for half a minute gets the event HeldBack; the metric
// xylem_claims_held_back counts all that wait. Nothing of this is kept over a restart:
// claims queue again. The gate delays a placement and decides none. It does not delay a
// claim that was reassigned to another member, since that one has waited before.
package backlog
