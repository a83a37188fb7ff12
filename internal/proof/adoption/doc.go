// Package adoption reads both clusters live before an admin's host PV is recorded as the
// representation of an existing volume in a member. Its proofs are not part of an Evidence, because
// nothing is destroyed after them.
package adoption
