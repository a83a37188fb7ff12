// Package adoption reads both clusters live before a volume gets a new owner: before an admin's host PV
// is recorded as the representation of an existing volume in a member, or a claim gets the volume that
// it requests. Its proofs are not part of an Evidence, because nothing is destroyed after them.
package adoption
