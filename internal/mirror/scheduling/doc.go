// Package scheduling translates what a Pod asks of the nodes that it runs on: the host's
// scheduler has followed it by then, and the member's has to follow what is left. It is pure.
package scheduling
