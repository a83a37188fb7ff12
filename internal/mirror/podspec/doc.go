// Package podspec translates a root Pod to its leaf Pod, and computes what must change in a
// leaf Pod after its root has changed. It is pure.
package podspec
