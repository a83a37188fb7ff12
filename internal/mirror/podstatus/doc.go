// Package podstatus translates the status of a leaf Pod to that of its root, and reads the
// state of Pods. It is pure.
package podstatus
