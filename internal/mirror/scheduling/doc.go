// Package scheduling translates a Pod's scheduling constraints. The host's scheduler has
// already followed them; the member's scheduler must follow the rest. It is pure.
package scheduling
