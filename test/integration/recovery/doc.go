// Package recovery follows the walks of internal/RECOVERY.md, one story for each, as an operator does
// when something has happened to a whole cluster. In all of them, nothing is destroyed by mistake,
// the problem is reported, and other members continue.
package recovery
