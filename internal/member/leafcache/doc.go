// Package leafcache creates the caches of a member: what they watch, what they keep of each
// object, and how much memory they may take.
package leafcache
