package doctor

import (
	"cmp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// Facts contains what doctor has read.
type Facts struct {
	// Version is the plugin's version, or "" for a development build.
	Version string
	Host    HostFacts
	Members []Member
	Missing []inspect.Missing
}

// Cluster contains the facts that are read from every cluster.
type Cluster struct {
	// ID is the UID of the kube-system namespace, or "" if it was not read.
	ID string
	// Version is the Kubernetes version, such as v1.36.3, or "".
	Version string
	// At is the time of the reads, by this machine's clock.
	At time.Time
	// Clock is the difference between the cluster's clock and this machine's.
	Clock inspect.Clock
	// Domain is the cluster domain, or "" if it is unknown.
	Domain string
	// Account is the manager's account in the cluster, and Rights are its permissions.
	Account Account
	Rights  Rights
	// Snapshots is true if the API server serves VolumeSnapshots.
	Snapshots inspect.Object[bool]

	policyFacts
}

// HostFacts contains the facts about the host.
type HostFacts struct {
	Cluster
	Namespace string
	// Registrations and Nodes, the virtual nodes, are read first, because several checks need them.
	Registrations inspect.Objects[v1alpha1.ClusterRegistration]
	Nodes         inspect.Objects[corev1.Node]
	// Definition is the CustomResourceDefinition of ClusterRegistrations.
	Definition inspect.Object[unstructured.Unstructured]
	// Mutating is true if the API server serves MutatingAdmissionPolicies.
	Mutating inspect.Object[bool]
	// Paths shows, by node name, whether the API server can reach the manager as the node's kubelet.
	Paths      map[string]nodePath
	DaemonSets inspect.Objects[appsv1.DaemonSet]
	// Unbound are the VolumeSnapshots without a content.
	Unbound inspect.Objects[unboundSnapshot]

	managerFacts
	driverFacts
	controlPlaneFacts
	leftoverFacts
}

// Member contains the facts about a member.
type Member struct {
	Cluster
	host *HostFacts
	// Registration is the registration's name, or "" if the cluster is not registered.
	Registration string
	// Recorded is the cluster ID in the registration's status.
	Recorded string
	// Away is the reason why the member could not be read. Secret is true if the plugin could not get
	// a kubeconfig from the registration's Secret.
	Away   string
	Secret bool
	// Own is true if the user's own kubeconfig was used, not the registration's.
	Own bool
	// Issued is when the manager's token was issued, or zero.
	Issued time.Time
	// Fence is the manager's Lease in the member.
	Fence inspect.Object[coordinationv1.Lease]
	// Leaves counts, by kind, this host's objects in an unregistered member.
	Leaves map[string]int
}

// unregistered is the name of a member without a registration.
const unregistered = "(not registered)"

// shownName returns the member's name in findings.
func (m *Member) shownName() string { return cmp.Or(m.Registration, unregistered) }

// isRegisteredAndRead reports whether a registered member could be read.
func (m *Member) isRegisteredAndRead() bool { return m.Away == "" && m.Registration != "" }
