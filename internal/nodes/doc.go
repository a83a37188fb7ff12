// Package nodes reads virtual nodes: whether a Node represents a given member, and what it
// says about itself. It is pure. The controller virtual_node writes these Nodes; all others
// ask here, so that they get the same answer.
package nodes
