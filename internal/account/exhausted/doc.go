// Package exhausted records the sizes of volumes that a member's drivers rejected for lack of
// space. recovery writes it, and capacity publishes no more than the remaining capacity.
package exhausted
