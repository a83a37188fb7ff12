// Package fields defines the tables of decisions about each field of an object, and applies
// them. It also builds the metadata of leaf objects, and the bodies of status writes. FIELDS.md
// shows the tables. The package is pure.
package fields
