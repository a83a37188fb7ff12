// Package conditions has the conditions of a registration, and the lists in its status. It is pure.
package conditions
