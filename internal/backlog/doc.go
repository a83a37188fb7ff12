// Package backlog holds back claims that the host could not bind yet.
//
// The host's PV controller binds one claim after the other, with a few requests each, while
// members provision side by side. If thousands of claims arrive at once, everything that is
// pushed for those that must wait takes processor time from the claim that is being bound:
// 5,000 claims over four members never finished on two processors.
//
// The gate counts the host's PVs that have a claim and are not bound to it yet. While there
// are fewer than 300, it admits claims as they come. Above that, new claims queue, and
// namespaces take turns. For each member, it admits as many claims a second as volumes of
// that member were bound: half as many while too many wait, half as many more and a few
// extra while few do, over all members. So 300 is where it settles and not a limit: what
// was admitted is under way for as long as the member's provisioner takes.
//
// Four rules keep claims that cannot be bound from blocking others:
//
//   - A member has its share of the 300, whatever the others have (I7).
//   - A volume no longer counts when one that is two minutes younger was bound.
//   - If no claim of a member was admitted for ten seconds, ten are admitted anyway.
//   - A claim that is not to be placed any more leaves the queue.
//
// A claim that waits for half a minute gets the event HeldBack; the metric
// xylem_claims_held_back counts all that wait. Nothing of this is kept over a restart:
// claims queue again. The gate delays a placement and decides none. It does not delay a
// claim that was reassigned to another member, since that one has waited before.
package backlog
