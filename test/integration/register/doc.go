// Package register tests `kubectl xylem register` and `deregister`, and the renewal
// of tokens, on real control planes: a host with a running manager, and members that
// have nothing of Xylem yet.
package register
