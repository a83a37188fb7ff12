// Package namespaces proves that a namespace in a member is empty, before Xylem deletes it. A
// namespace is deleted with everything in it, including claims.
package namespaces
