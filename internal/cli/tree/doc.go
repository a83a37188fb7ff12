// Package tree implements `kubectl xylem tree`, which shows where the volume of a claim or a Pod
// really is. It reads the requested object and related ones (package inspect), builds a tree of
// nodes, and prints it.
//
// The host's objects are sufficient for a tree. The command reads the member's objects if the user
// specifies a kubeconfig for the member, or requests to use the registration's. Otherwise, the tree
// shows the host's records of these objects, and notes this. If an object cannot be read, the tree
// lists it with the cause, and shows the rest.
package tree
