// Package weigh estimates how much memory an answer takes when decoded, before anything
// decodes it.
//
// An empty object takes two bytes on the wire and up to a kilobyte in memory, so the length
// of an answer says little. The estimates are upper bounds: for protobuf, from the sizes of
// the Go types that the answer's kind decodes into; for JSON, from the number of its
// values.
package weigh
