// Package weigh estimates how much memory an answer takes once it is decoded,
// before anything decodes it.
//
// An empty object takes two bytes on the wire and up to a kilobyte in memory, so
// the length of an answer says little. The estimates are upper bounds: of
// protobuf, from the sizes of the Go types that the answer's kind decodes into; of
// JSON, from the number of its values, whatever they are.
package weigh
