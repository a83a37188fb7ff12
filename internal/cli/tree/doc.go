// Package tree is kubectl xylem tree: where a claim's, or a Pod's, volume really is. It
// reads the object that was requested (package gather), builds the tree of what was read
// (build), and prints it (render).
//
// What the host's objects say is enough for a tree. The member's side is read where
// the user has a kubeconfig of it, or asks for the registration's own; else the tree
// shows what the host has recorded of it, and says so. What cannot be read is named,
// with the cause, and the rest is shown.
package tree
