// Package tree implements `kubectl xylem tree`: where the volume of a claim or a Pod really is.
// It reads the requested object and those around it (package gather), builds a tree (build),
// and prints it (render).
//
// The host's objects are enough for a tree. The command reads the member's objects if the user has
// a kubeconfig of it, or asks to use the registration's own. Otherwise, the tree shows the host's
// records of them, and notes that. If an object cannot be read, the tree names it with the cause,
// and shows the rest.
package tree
