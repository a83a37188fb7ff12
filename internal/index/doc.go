// Package index provides the caches' field indexes as typed lookups, and the reads that all
// controllers share. Callers do not depend on an index and cannot misspell its name.
//
// An object from a cache belongs to the cache (ReadOnly): code that needs to change it changes a
// copy. `make test` runs the manager with client-go's cache mutation detector, which terminates a
// process that changes a cached object.
package index
