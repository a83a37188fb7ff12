// Package nodes reads virtual nodes: whether a Node represents a given member, and which state
// its conditions report. It is pure. The controller virtual_node writes these Nodes; all other
// packages read them through this one, so that they agree.
package nodes
