// Package registered returns the registered members, their virtual nodes, and the connections and
// capacity that they report, according to the objects in the host's cache.
package registered
