// Package precondition makes a write fail if the object has changed since it was read.
package precondition
