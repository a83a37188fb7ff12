// Package podspec translates a root Pod to its leaf Pod, and computes what must change in a
// leaf Pod after its root has changed. It is pure.
//
// Its part scheduling translates a Pod's scheduling constraints. The host's scheduler has already
// satisfied some of them. The leaf keeps the others for the member's scheduler. It is pure.
package podspec
