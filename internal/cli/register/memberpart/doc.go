// Package memberpart is the member's part of a registration: what `kubectl xylem register`
// creates there, the token that it asks for, the manager's way to the member, and the
// journal by which a run that fails is undone.
package memberpart
