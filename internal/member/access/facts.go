package access

// Facts about a cluster and its credentials. The Connected condition and the kubectl plugin report
// them with the same text. The first argument names the cluster, or the kubeconfig or flag that
// points to it. AlreadyRegisteredFormat takes only the registration's name.
const (
	UnreachableFormat       = "%s is unreachable"
	UnauthorizedFormat      = "%s rejects the credentials"
	ForbiddenFormat         = "the credentials lack a permission in %s"
	IsHostFormat            = "%s points to the host itself, which cannot be its own member"
	OtherClusterFormat      = "%s points to cluster %s, but %s belongs to cluster %s"
	AlreadyRegisteredFormat = "this cluster is already registered as %q"
)
