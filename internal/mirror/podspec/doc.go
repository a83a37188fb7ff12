// Package podspec translates a root Pod to its leaf Pod, and says what must change in a
// leaf Pod if its root has changed. It is pure.
package podspec
