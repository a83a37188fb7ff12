// Package memberpart is the member's part of a registration: what `kubectl xylem register`
// creates there, the token that it requests, the address that the manager uses, and the
// journal that undoes a failed run.
package memberpart
