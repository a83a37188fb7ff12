// Package weigh estimates how much memory a response takes once decoded, before anything
// decodes it.
//
// An empty object takes two bytes on the wire and up to a kilobyte in memory, so the length of a
// response is a poor estimate. The estimates are upper bounds. For protobuf, they depend on the
// sizes of the Go types that the response's kind decodes into; for JSON, on the number of its
// values.
package weigh
