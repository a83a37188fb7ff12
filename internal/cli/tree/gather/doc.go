// Package gather reads the objects of a tree from the host and from members.
package gather
