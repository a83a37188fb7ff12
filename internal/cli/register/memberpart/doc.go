// Package memberpart implements the member's part of a registration: the objects that `kubectl
// xylem register` creates in the member, the token that it requests, the address that the manager
// uses, and the journal that undoes a failed run.
package memberpart
