// Package collect reads what `kubectl xylem doctor` examines, from the host and from members. It
// only gets and lists, in pages and up to a limit, and asks the API servers who may do what.
package collect
