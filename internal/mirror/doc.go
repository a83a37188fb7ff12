// Package mirror says how an object of one cluster looks in the other. It has
// what its parts share: who a member is, origin stamps, names, namespaces, and
// refusals; the parts are the packages beneath it. All of them are pure: no client,
// no clock and no log, never changing what they are given, and giving the same
// answer twice.
package mirror
