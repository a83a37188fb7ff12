// Package lookup finds the leaf Pod of a request and the link to its member. The caller must
// have the right on the Pod's node, which must be a virtual node. The leaf must carry the
// stamp of the root and have the UID that root_pod recorded, in a namespace of this host (I4,
// I8). Root and leaf are read live.
package lookup
