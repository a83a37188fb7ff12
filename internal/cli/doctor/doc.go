// Package doctor implements `kubectl xylem doctor`, which checks an installation from outside, in
// the host and in members. Each check is one file, with the check's name, its facts, and the functions
// that read and judge them. Reading only gets and lists objects, in pages and up to a limit, and creates
// access reviews. Judging is pure.
package doctor
