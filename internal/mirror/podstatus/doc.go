// Package podstatus translates a leaf Pod's status to its root's, and reads the state of Pods. It
// is pure.
package podstatus
