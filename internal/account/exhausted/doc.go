// Package exhausted records the sizes of volumes that a member's drivers rejected for lack of
// space. The recovery controller records the sizes, and the capacity controller publishes only the
// capacity that remains.
package exhausted
