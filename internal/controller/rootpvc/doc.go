// Package rootpvc pushes claims down: it records in which member a root claim
// is placed, makes the leaf claim there, lets it grow with the root, and takes
// back what was never bound.
//
// It writes the root's placed-in annotation and its Placed condition, and leaf
// claims. Leaf claims of bound volumes are deleted by root_pv.
package rootpvc
