// Package fence tests the fence of a member, and the indexes of caches, against
// a real API server. One plays host and member at once, since lease and record
// have different names. The clock of the fence is a fake one.
package fence
