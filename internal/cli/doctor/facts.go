package doctor

import (
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// Facts contains what doctor has read.
type Facts struct {
	// Version is the plugin's version, or "" for a development build.
	Version string
	Host    Host
	Members []Member
	Missing []inspect.Missing
}

// Object is one object. Item is nil if it does not exist, or if it was not read.
type Object[T any] struct {
	Item *T
	Read bool
}

// Absent reports whether the object is known not to exist.
func (o Object[T]) Absent() bool { return o.Read && o.Item == nil }

// List is a list of objects. Read is false if the list was not read completely.
type List[T any] struct {
	Items []T
	Read  bool
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
	// Policies and Bindings are all the ValidatingAdmissionPolicies and their bindings.
	Policies List[admissionv1.ValidatingAdmissionPolicy]
	Bindings List[admissionv1.ValidatingAdmissionPolicyBinding]
	// Webhooks are the webhook configurations and mutating policies with Xylem's label.
	Webhooks List[metav1.PartialObjectMetadata]
	// Account is the manager's account in the cluster, and Rights are its permissions.
	Account Account
	Rights  Rights
	// Snapshots is true if the API server serves VolumeSnapshots.
	Snapshots Object[bool]
}

// Rights are permissions of an account.
type Rights struct {
	// Lacks are permissions that Xylem needs but the account lacks. Excess are dangerous permissions
	// that the account has but Xylem does not need.
	Lacks, Excess []authorizationv1.ResourceAttributes
	Read          bool
}

// Host contains the facts about the host.
type Host struct {
	Cluster
	Namespace  string
	Deployment Object[appsv1.Deployment]
	Leader     Object[coordinationv1.Lease]
	Definition Object[unstructured.Unstructured]
	// Driver is the CSIDriver for volumes in members, and Promises is the one for promises.
	Driver, Promises Object[storagev1.CSIDriver]
	// Mutating is true if the API server serves MutatingAdmissionPolicies.
	Mutating Object[bool]

	Registrations List[v1alpha1.ClusterRegistration]
	// Nodes are the virtual nodes. Paths shows, by node name, whether the API server can reach the
	// manager as the node's kubelet.
	Nodes List[corev1.Node]
	Paths map[string]Path
	// CSINodes are the CSINodes that Xylem created for the virtual nodes.
	CSINodes List[storagev1.CSINode]

	DaemonSets List[appsv1.DaemonSet]
	// Control contains the Pods of kube-apiserver, kube-controller-manager and kube-scheduler, if they
	// are visible. Gates are the feature gates of the API server that responded.
	Control List[corev1.Pod]
	Gates   Object[map[string]bool]

	// Heartbeats are the Leases of virtual nodes.
	Heartbeats List[coordinationv1.Lease]
	// Volumes are the metadata of the members' host PVs, and Secrets are the metadata of the Secrets
	// in the manager's namespace.
	Volumes, Secrets List[metav1.PartialObjectMetadata]
	Capacities       List[storagev1.CSIStorageCapacity]
	Classes          List[storagev1.StorageClass]
	// Annotated are the claims without a volume whose class only the old annotation names.
	Annotated List[Claim]
	// Unbound are the VolumeSnapshots without a content.
	Unbound List[Snapshot]
}

// Claim is a claim, and the name of its class.
type Claim struct {
	Namespace, Name, Class string
}

// Snapshot is a VolumeSnapshot that has no content yet.
type Snapshot struct {
	Namespace, Name string
	Age             time.Duration
}

// Path is the response to a request that the API server sends to the manager as the kubelet of a
// virtual node.
type Path struct {
	// Code is the HTTP status code, or 0 if there was no response.
	Code int
	// Own is true if the API server itself rejected the request, because the user lacks permission, or
	// because it does not proxy requests to the node's address. It still serves logs and exec there.
	Own bool
	// Detail is the error if the code is not 200.
	Detail string
}

// Member contains the facts about a member.
type Member struct {
	Cluster
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
	Fence Object[coordinationv1.Lease]
	// Leaves counts, by kind, this host's objects in an unregistered member.
	Leaves map[string]int
}

// Base returns the account that a member's policies name. If a is an account for an individual
// host, Base removes the host's suffix from its name.
func Base(a Account) Account {
	if name, _, cut := strings.Cut(a.Name, "-host-"); cut {
		a.Name = name
	}
	return a
}
