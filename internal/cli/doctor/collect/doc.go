// Package collect reads what `kubectl xylem doctor` examines, from the host and from members. It
// only gets and lists objects, in pages and up to a limit, and creates access reviews.
package collect
