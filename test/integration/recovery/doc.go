// Package recovery follows the procedures of internal/RECOVERY.md, one story for each, as an
// operator does after a whole cluster was lost or restored. In each story, Xylem destroys no data
// by mistake, reports the problem, and continues to serve other members.
package recovery
