// Package backlog delays claims that the host cannot bind yet.
//
// The host's PV controller binds one claim at a time, with a few requests each, while members
// provision in parallel. If thousands of claims arrive at the same time, creating the leaf objects
// of waiting claims takes CPU time away from binding: with two CPUs, 5,000 claims across four
// members were never all bound.
//
// By default, at most 300 claims are in progress at a time (--claims-in-progress): those that the queue admitted within the last ten
// seconds, and those whose volume waits for the PV controller. Above that, new claims queue,
// namespaces alternate, and the queue admits one claim for each that is bound. TestBursts simulates
// this: as long as the PV controller binds up to 30 claims a second, it alone determines how long a
// burst takes.
//
// Four rules keep claims that cannot be bound from blocking others:
//
//   - Each member has its share of the limit, regardless of how many claims the others have (I7).
//   - An admitted claim without a volume no longer counts after ten seconds.
//   - A volume that is not bound no longer counts after five minutes.
//   - A claim that must no longer be placed leaves the queue.
//
// A claim that waits for half a minute gets the event HeldBack. The metric xylem_claims_held_back
// counts all waiting claims. The queue does not survive a restart: claims queue again. The queue
// delays placements but does not decide them. It does not delay a claim that was reassigned to
// another member, because that claim has already waited.
package backlog
