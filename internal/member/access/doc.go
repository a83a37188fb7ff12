// Package access says how a member may be reached: which kubeconfigs the manager follows,
// which addresses it dials, what service account tokens say of themselves, and, as a
// Problem, why a member cannot be reached.
package access
