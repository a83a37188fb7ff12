// Package leafcache creates the caches of a member. It defines which kinds they watch, which fields
// of each object they keep, and how much memory they may take.
package leafcache
