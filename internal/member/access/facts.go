package access

// Facts about a cluster and its credentials. The Connected condition and the kubectl plugin report
// them with the same text. The first argument names the cluster, or the kubeconfig or flag that
// points to it. AlreadyRegistered takes only the registration's name.
const (
	Unreachable       = "%s is unreachable"
	Unauthorized      = "%s rejects the credentials"
	Forbidden         = "the credentials lack a permission in %s"
	IsHost            = "%s points to the host itself, which cannot be its own member"
	OtherCluster      = "%s points to cluster %s, but %s belongs to cluster %s"
	AlreadyRegistered = "this cluster is already registered as %q"
)
