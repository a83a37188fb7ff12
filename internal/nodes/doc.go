// Package nodes interprets virtual nodes: whether a Node represents a given member, and which state
// its conditions report. Its functions are pure. The virtual_node controller writes these Nodes.
// All other packages read them through this package, so that they agree.
package nodes
