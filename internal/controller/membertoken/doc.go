// Package membertoken renews the manager's token for a member, so that a copy of the Secret
// that nobody has renewed expires. It runs in the member's Link, and so only where the
// fence is held.
//
// A Secret that `kubectl xylem register` creates has a short-lived token and the annotation
// xylem.io/token-lifetime, which requests renewal. The renewal is due after a third to a
// half of the token's life (--renew-tokens-after, and a jitter that depends on the token,
// so that a restart does not change it). The controller requests a token for the same
// account (TokenRequest), checks that the new one is of that account and leads to the same
// cluster, and writes it into the Secret that it read live, by resourceVersion. The token
// itself says how long it lives, since members may shorten or extend what is requested. The
// time is the member's, from the Date header of its answers: its clock issued the token and
// judges it.
//
// Nothing is kept in memory. A manager that ends between the answer and the write leaves a
// token that nobody has and that expires; the next one requests another.
//
// A changed Secret ends the Link, which starts again with all its lists, with one
// exception. If only the token changed, and the new one has the same issuer and account, it
// replaces the old one within the connection. The fence and the caches stay; open watches
// continue until they end. If the member then rejects the token, the Link ends as with any
// rejected token.
//
// A failure emits an event and sets the registration's condition TokenFresh, with the time
// until which the present token is valid. The controller retries after ten seconds to five
// minutes; by default, seven hours are left then. An expired token is named in the
// condition Connected: `kubectl xylem register` creates a new one.
package membertoken
