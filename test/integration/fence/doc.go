// Package fence tests a member's fence, and the caches' indexes, against a real API server.
// One API server can be both host and member, because the Lease and the record have different
// names. The fence uses a fake clock.
package fence
