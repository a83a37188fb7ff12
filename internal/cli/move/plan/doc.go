// Package plan checks everything that a move needs before the command writes anything: the members,
// the claim and its volume, and the class and capacity for the copy.
package plan
