// Package index holds the field indexes of the caches as typed look-ups, and the reads that
// all controllers share. A caller does not see that there is an index, and cannot misspell
// its name.
//
// An object from a cache belongs to the cache (ReadOnly): code that changes it changes a
// copy. `make test` runs the manager with client-go's detector of changes to caches, which
// ends a process that makes one.
package index
