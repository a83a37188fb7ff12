// Package weigh estimates how much memory a response will take once it is decoded, before it is
// decoded.
//
// An empty object takes two bytes on the wire and up to a kilobyte in memory, so the length of a
// response is a poor estimate. This package's estimates are upper bounds. For protobuf, they depend
// on the sizes of the Go types into which the response is decoded, and for JSONWeigher on the number of
// values.
package weigh
