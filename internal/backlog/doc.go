// Package backlog holds claims back that the host could not bind yet.
//
// The host's PV controller binds one claim after the other, with a few requests each,
// while members make volumes side by side. Where thousands of claims come at once, all
// that is pushed for those whose turn has not come takes the control planes' time from
// the one whose turn it is, and none is bound any sooner for it. So claims are placed as
// fast as volumes are bound, once those that wait for the PV controller are many.
package backlog
