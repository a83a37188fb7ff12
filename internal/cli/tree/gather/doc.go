// Package gather reads, from the host and from members, what a tree is made of.
package gather
