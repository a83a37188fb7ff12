// Package datasource reads the data source of a claim: another claim, a snapshot, or an object that
// only a populator supports. It is pure.
//
// Xylem records the source on the root claim (Record): the member that has it, and its UID. A claim
// refers to its source by name, and a user may delete the source and create another one with that
// name. The record keeps Xylem from copying the new one. The leaf claim records the UID too.
//
// A claim with a source must never get an empty disk. Before Xylem uses the volume, Same compares
// the leaf claim's source with the root's.
package datasource
