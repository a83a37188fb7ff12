// Package reassignment decides whether the claims of a Pod are reassigned to another member, and to
// which one. The pure function Decide maps what recovery has observed to the next step, which
// recovery takes. See recovery for the rules.
package reassignment
