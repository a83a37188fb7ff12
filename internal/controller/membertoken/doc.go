// Package membertoken renews the manager's token for a member, so that a leaked copy of the Secret
// soon expires. It runs as part of the member's Link, and therefore only while the manager holds
// the fence.
//
// A Secret that `kubectl xylem register` creates contains a short-lived token and the annotation
// xylem.io/token-lifetime, which requests renewal. The renewal is due after a third to a half of
// the token's lifetime (--renew-tokens-after, plus jitter that depends on the token, so that a
// restart does not change it). The controller requests a token for the same account (TokenRequest)
// and checks that the new token is for that account and works for the same cluster. Then it patches
// the Secret, with the resourceVersion that it has read live. It takes the lifetime from the token,
// because members may shorten or extend the requested one. It uses the member's time, from the Date
// header of the member's responses, because the member's clock decides whether the token is valid.
//
// The controller keeps no token in memory. If the manager is killed between the response and the
// write, the unused token expires, and the next manager requests another one.
//
// A change to the Secret ends the Link. The next Link lists all objects again. There is one
// exception: if only the token changed, and the new one has the same issuer and account, it
// replaces the old one in the existing connection. The fence and the caches remain, and open
// watches continue until they end. If the member then rejects the token, the Link ends as with any
// rejected token.
//
// On a failure, the controller emits an event and sets the registration's condition TokenFresh,
// which reports until when the current token is valid. It retries with a backoff of ten seconds to
// five minutes. With the default settings, about seven hours are left for retries. If the token
// expires, the condition Connected reports that. Run `kubectl xylem register` to create a new
// token.
package membertoken
