// Package index holds the field indexes of the caches, as typed look-ups:
// who asks does not see that there is an index, and cannot misspell its name;
// and the reads that all controllers have in common.
//
// What is found in a cache is the cache's own (ReadOnly): whoever changes it changes a
// copy.
package index
