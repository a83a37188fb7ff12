// Package membertoken renews the token by which the manager speaks to a member, so
// that a copy of the Secret that nobody has renewed ages out. It runs in the member's
// Link, and so only where the fence is held; it asks the member, verifies what it got,
// and writes it into the Secret that it read, by resourceVersion. The Link goes on with
// the new token when the Secret is seen to have it: nothing is kept in memory, and a
// manager that ends between the two leaves a token that nobody has and that expires.
package membertoken
