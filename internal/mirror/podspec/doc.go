// Package podspec translates a root Pod to its leaf Pod, and says what has to change of a
// leaf Pod whose root has changed. It is pure.
package podspec
