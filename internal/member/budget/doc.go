// Package budget limits how much of this process's memory a member's responses may take. It also
// adds the token to requests, and removes it from errors.
//
// # Limits on a member's responses
//
// An empty object takes two bytes on the wire, but up to a kilobyte in memory. So the package
// weighs every response before client-go decodes it (see package weigh). It weighs protobuf by the
// sizes of the Go types that the kind decodes into, and JSON by the number of values. It weighs
// compressed responses as they are decompressed, and each event of a watch separately. It rejects
// other encodings. The limits for one member are:
//
//	one response, or one event of a watch, decoded    --member-answer-limit (128Mi)
//	one response on the wire, after decompression     32 MiB
//	one event of a watch on the wire                  4 MiB
//	all responses that are being read                 64 MiB
//	decoding, on average                              64 MiB per second; beyond that, reads wait
//	the same for the fence's requests                 4 MiB per second, independently
//	all objects in the Link's caches, once reduced    --member-cache-limit (256Mi)
//
// Package leafcache enforces the last limit where a cache lists and watches. It reduces each object
// before it decodes the next one. If the member does not stream lists, it requests pages of 100,
// and smaller ones if a page is larger than 4 MiB or the first limit. A member that exceeds a limit
// loses its Link with reason AnswersRefused. The fleet connects again after a minute.
package budget
