// Package scheduling translates a Pod's scheduling constraints. The host's scheduler has already
// satisfied some of them. The leaf keeps the others for the member's scheduler. It is pure.
package scheduling
