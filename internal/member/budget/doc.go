// Package budget limits what the answers of a member may take of this process. It also
// signs requests, and removes the token from errors.
//
// # Limits on a member's answers
//
// An empty object takes two bytes on the wire and up to a kilobyte in memory. So every
// answer of a member is weighed before client-go decodes it (package weigh): protobuf by
// the sizes of the Go types that its kind decodes into, JSON by the number of its values.
// Compressed answers are weighed as they are unpacked, each event of a watch by itself.
// Other encodings are rejected. Limits of one member:
//
//	one answer, or one event of a watch, decoded      --member-answer-limit (128Mi)
//	one answer on the wire, unpacked; one event       32 MiB; 4 MiB
//	all answers that are being read                   64 MiB
//	what is decoded in the long run                   64 MiB a second; more waits
//	all objects in the Link's caches, as reduced      --member-cache-limit (256Mi)
//
// The last one is counted where a cache lists and watches, which reduces each object before
// it decodes the next, and requests pages of 100 if a member does not stream lists. A
// member that exceeds a limit loses its Link with reason AnswersRefused, and is tried again
// after a minute.
package budget
