// Package weigh estimates how much memory a response will take once it is decoded, before it is
// decoded.
//
// An empty object takes two bytes on the wire and up to a kilobyte in memory, so the length of a
// response is a poor estimate. This package's estimates are upper bounds. For protobuf, they depend
// on the sizes of the Go types into which the response is decoded, and for JSON on the number of
// values.
//
// Its part quantity bounds the resource quantities that a member reports.
//
// resource.ParseQuantity accepts any exponent. To round, compare or add "1e-2147483647" or
// "1e2000000001", it computes a power of ten with up to two billion digits. That takes minutes of CPU
// and almost a gigabyte of memory, and cannot be canceled. Xylem therefore checks a member's
// quantities before it decodes them, and again before it compares them or writes them to the host.
package weigh
