// Package fields has the tables of decisions about each field of an object, and applies
// them. It also has the metadata that every leaf object gets, and the bodies of status
// writes. FIELDS.md shows the tables. It is pure.
package fields
