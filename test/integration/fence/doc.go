// Package fence tests the fence of a member, and the indexes of caches, against a real API
// server. One API server is both host and member, because lease and record have different names.
// The fence has a fake clock.
package fence
