// Package restores records when the host and a member were last restored, as detected by the fences of
// all members.
package restores
