// Package deregistration removes a member from the host step by step: it evicts the member's Pods,
// withdraws its claims without a volume, releases its volumes, and finally removes the
// registration's finalizer. It destroys nothing in the member.
package deregistration
