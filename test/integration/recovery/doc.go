// Package recovery walks the way of an operator after something went wrong with
// a whole cluster, as internal/RECOVERY.md describes it: each walk there is a
// story here. In all of them nothing is destroyed that was not to be, what is
// wrong is reported, and other members continue.
package recovery
