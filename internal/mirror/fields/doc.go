// Package fields decides what becomes of each field of an object between host and
// member: tables of decisions, their application, the metadata that every leaf object
// has, and the bodies of status writes. FIELDS.md shows the tables. It is pure.
package fields
