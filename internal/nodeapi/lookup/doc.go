// Package lookup finds the leaf Pod for a request and the link to its member. The caller must have
// permission for the Pod's node, which must be a virtual node. The leaf must have the root's stamp
// and the UID that root_pod recorded, in a namespace that belongs to this host (I4, I8). Root and
// leaf are read live.
package lookup
