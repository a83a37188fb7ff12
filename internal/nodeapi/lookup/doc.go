// Package lookup finds the leaf Pod of a request, and the link to its member. The caller has
// to have the right on the Pod's node, the node has to be a virtual one, and the leaf has to
// carry the stamp of the root and the UID that root_pod recorded, in a namespace of this host
// (I4, I8). Root and leaf are read live.
package lookup
