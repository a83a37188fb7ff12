// Package access defines how a member may be reached: which kubeconfigs the manager accepts,
// which addresses it dials, what service account tokens contain, and, as a Problem, why a
// member cannot be reached.
package access
