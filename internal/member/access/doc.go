// Package access defines how the manager may reach a member: which kubeconfigs it accepts,
// which addresses it dials, how it reads service account tokens, and, as a ConnectionProblem, why it
// cannot connect.
package access
