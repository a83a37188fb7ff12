// Package leafcache creates the caches of a member: which kinds they watch, which fields they
// keep of each object, and how much memory they may take.
package leafcache
