// Package mirror says what an object of one cluster looks like in the other. It has what
// its parts share: the member, origin stamps, names, namespaces, and refusals. The packages
// below it are the parts. All of them are pure: they have no client, no clock and no log,
// never change their arguments, and give the same answer twice.
package mirror
