// Package nodes reads virtual nodes: is a Node the one that stands for a given
// member, and what does it say of itself. It is pure. The controller
// virtual_node writes these Nodes; whoever else wants to know about them asks
// here, so that all give the same answer.
package nodes
