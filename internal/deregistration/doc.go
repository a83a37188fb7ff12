// Package deregistration removes a member from the host step by step: it evicts the member's Pods,
// withdraws its claims without a volume, releases its volumes, and finally removes the
// registration's finalizer. It destroys nothing in the member.
//
// When a deregistration begins, a new link, which knows that the member is leaving, replaces the
// earlier one: it creates no leaf Pods, and fails roots without one. So the deregistration ignores
// these roots, which their owners may re-create forever. Before the link ends, live lists show that
// no leaf Pods remain, and that no claim in the host lacks the record that the member has its disk, for
// example after a restore of the host.
//
// A forced deregistration abandons what an unreachable member has. A member that is not connected is
// not necessarily unreachable: after a restart of the manager, or a change of the registration, the
// deregistration waits until the link works, or until several attempts have failed. It also waits until
// the manager knows which snapshots the host has.
package deregistration
