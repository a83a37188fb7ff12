// Package share lets objects in caches have in common what most of them have alike:
// labels, sizes, the names of classes, drivers and members. A cache holds tens of
// thousands of claims and volumes, and each decoded one has maps of its own, of which
// one with a single entry takes several hundred bytes.
//
// What is shared is never written to: objects in caches are not, and what readers get
// of them are copies, or not to be changed (index.ReadOnly).
package share
