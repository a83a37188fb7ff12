// Package mirror says how an object of one cluster looks in the other: names,
// origin stamps, and the translation of claims, volumes, Pods and their
// statuses between host and member. It is pure: it has no client, no clock and
// no log, never changes what it is given, and gives the same answer twice.
package mirror
