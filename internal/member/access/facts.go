package access

// Facts about a cluster and its credentials. The condition Connected and the kubectl plugin both
// report them, in the same words. Arguments are the cluster, or the kubeconfig or flag that selects
// it, and then those that the text shows.
const (
	Unreachable       = "%s is unreachable"
	Unauthorized      = "%s rejects the credentials"
	Forbidden         = "the credentials lack a permission in %s"
	IsHost            = "%s points to the host itself, which cannot be its own member"
	OtherCluster      = "%s points to cluster %s, but %s belongs to cluster %s"
	AlreadyRegistered = "this cluster is already registered as %q"
)
