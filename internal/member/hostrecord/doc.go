// Package hostrecord keeps the host's record of a member: a Lease that outlives the
// member's registration.
package hostrecord
