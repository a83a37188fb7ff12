// Package placement has one answer to "may this claim, class or Pod go to that
// member, and if not, why?", for every controller that asks: by the registration's
// rules, the class's allowedTopologies, the volume's node affinity, and what the
// member has. It is pure: it has no client, no clock and no log.
package placement
