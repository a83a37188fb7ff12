// Package index holds the field indexes of the host's and the members' caches,
// as typed look-ups: who asks does not see that there is an index, and cannot
// misspell its name.
package index
