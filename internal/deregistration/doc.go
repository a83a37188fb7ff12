// Package deregistration takes a member out of the host, step by step: its Pods are evicted,
// its claims without a volume withdrawn, its volumes released, and the registration's
// finalizer removed last. Nothing in the member is destroyed.
package deregistration
