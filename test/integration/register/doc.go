// Package register tests `kubectl xylem register` and `deregister`, and the renewal of tokens, on
// real control planes: a host with a running manager, and members without any Xylem object.
package register
