// Package scheduling translates a Pod's scheduling constraints. The host's scheduler has
// already satisfied some of them; the leaf keeps the rest for the member's scheduler. It is
// pure.
package scheduling
