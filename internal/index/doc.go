// Package index provides the caches' field indexes as typed lookups, and the reads that all
// controllers share. Callers do not depend on an index and cannot misspell its name.
//
// Cache makes the manager's caches smaller and lookups cheaper: it answers lookups from the informers, spreads
// the keys of large indexes over a limited number of sets, and lets the handlers of an informer share a listener.
//
// An object from a cache belongs to the cache (ReadOnly): code that needs to change it changes a
// copy. `make test` runs the manager with client-go's cache mutation detector, which terminates a
// process that changes a cached object.
//
// Its part registered returns the registered members, their virtual nodes, and the connections and
// capacity that they report, according to the objects in the host's cache.
package index
