// Package datasource reads from a claim what its volume is to be created from: another claim,
// a snapshot, or something that a populator knows. It is pure.
//
// Xylem records on the root claim what its source was (Record): the member that has it, and
// its UID. A source is named, and somebody may delete it and create another one of its name;
// the record keeps Xylem from copying that one. The leaf claim has the UID too.
//
// A claim with a source must never get an empty disk. Same compares what the leaf claim asks
// for with what the root does, before its volume is used.
package datasource
