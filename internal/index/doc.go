// Package index provides the field indexes of the caches as typed lookups, and the reads that
// all controllers share. Callers do not depend on the index, and cannot misspell its name.
//
// An object from a cache belongs to the cache (ReadOnly): code that needs to change it changes
// a copy. `make test` runs the manager with client-go's cache mutation detector, which ends a
// process that changes a cached object.
package index
