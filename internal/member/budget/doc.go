// Package budget limits how much memory of this process the responses of a member may take. It
// also adds the token to requests, and removes it from errors.
//
// # Limits on a member's responses
//
// An empty object takes two bytes on the wire and up to a kilobyte in memory. So the package
// weighs every response of a member before client-go decodes it (package weigh): protobuf by
// the sizes of the Go types that its kind decodes into, JSON by the number of its values. It
// weighs compressed responses as they are decompressed, and each event of a watch separately.
// It rejects other encodings. Limits of one member:
//
//	one response, or one event of a watch, decoded    --member-answer-limit (128Mi)
//	one response on the wire, decompressed; one event 32 MiB; 4 MiB
//	all responses that are being read                 64 MiB
//	decoding, on average                              64 MiB a second; more waits
//	all objects in the Link's caches, as reduced      --member-cache-limit (256Mi)
//
// Package leafcache enforces the last limit where a cache lists and watches. It reduces each
// object before it decodes the next one, and requests pages of 100 if the member does not
// stream lists. A member that exceeds a limit loses its Link with reason AnswersRefused. The
// fleet connects again after a minute.
package budget
