package facts

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
	"github.com/xylem-io/xylem/internal/cli/doctor/shipped"
	"github.com/xylem-io/xylem/internal/cli/tree/model"
)

// Facts are what was read.
type Facts struct {
	// Version of the plugin, or "" if it was built without one.
	Version string
	Host    Host
	Members []Member
	Missing []model.Missing
}

// Object is one object. Item is nil if it does not exist, or if it was not read.
type Object[T any] struct {
	Item *T
	Read bool
}

// Absent reports whether it is known that the object does not exist.
func (o Object[T]) Absent() bool { return o.Read && o.Item == nil }

// List is a list of objects. Read is false if it was not read, or only in part.
type List[T any] struct {
	Items []T
	Read  bool
}

// Cluster has what is read of every cluster.
type Cluster struct {
	// ID is the UID of the kube-system namespace, or "" if it was not read.
	ID string
	// Version of Kubernetes, such as v1.36.3, or "".
	Version string
	// At is when it was read, by this machine's clock.
	At time.Time
	// Clock is the difference between the cluster's clock and this machine's.
	Clock Clock
	// Policies and their Bindings, all of them.
	Policies List[admissionv1.ValidatingAdmissionPolicy]
	Bindings List[admissionv1.ValidatingAdmissionPolicyBinding]
	// Webhooks and mutating policies that have Xylem's label.
	Webhooks List[metav1.PartialObjectMetadata]
	// Account of the manager there. Rights are what it may do.
	Account shipped.Account
	Rights  Rights
	// Snapshots tells whether the API server serves VolumeSnapshots.
	Snapshots Object[bool]
}

// Clock is the difference of a cluster's clock from this machine's, within Precision. Known is
// false if no answer had a date.
type Clock struct {
	Ahead, Precision time.Duration
	Known            bool
}

// Rights are permissions of an account.
type Rights struct {
	// Lacks are those that Xylem needs and the account does not have; Excess is the opposite.
	Lacks, Excess []authorizationv1.ResourceAttributes
	Read          bool
}

// Host has what was read of the host.
type Host struct {
	Cluster
	Namespace  string
	Deployment Object[appsv1.Deployment]
	Leader     Object[coordinationv1.Lease]
	Definition Object[unstructured.Unstructured]
	// Driver and Promises are the CSIDrivers of volumes in members, and of promises.
	Driver, Promises Object[storagev1.CSIDriver]
	// Mutating tells whether the API server serves MutatingAdmissionPolicies.
	Mutating Object[bool]

	Registrations List[v1alpha1.ClusterRegistration]
	// Nodes are virtual nodes. Paths has, by their names, whether the API server reaches the
	// manager through them.
	Nodes List[corev1.Node]
	Paths map[string]Path
	// CSINodes are those that Xylem created for them.
	CSINodes List[storagev1.CSINode]

	DaemonSets List[appsv1.DaemonSet]
	// Control has the Pods of kube-apiserver, kube-controller-manager and kube-scheduler, where
	// they are visible. Gates are feature gates of the API server that answered.
	Control List[corev1.Pod]
	Gates   Object[map[string]bool]

	// Heartbeats are the Leases of virtual nodes.
	Heartbeats List[coordinationv1.Lease]
	// Volumes are the host PVs of members, Secrets those in the manager's namespace: metadata.
	Volumes, Secrets List[metav1.PartialObjectMetadata]
	Capacities       List[storagev1.CSIStorageCapacity]
	Classes          List[storagev1.StorageClass]
	// Unbound are VolumeSnapshots without a content.
	Unbound List[Snapshot]
}

// Snapshot is a VolumeSnapshot that has no content yet.
type Snapshot struct {
	Namespace, Name string
	Age             time.Duration
}

// Path is the answer to a request that the API server sends to the manager as the kubelet of a
// virtual node.
type Path struct {
	// Code of HTTP, or 0 if nothing answered.
	Code int
	// Own reports whether the API server answered itself, because it does not let the user ask.
	Own bool
	// Detail is the answer of anything but code 200.
	Detail string
}

// Member has what was read of a member.
type Member struct {
	Cluster
	// Registration is the registration's name, or "" if the cluster has none.
	Registration string
	// Recorded is the cluster ID that the registration has recorded.
	Recorded string
	// Away is why the member could not be read, and Secret whether that was its kubeconfig.
	Away   string
	Secret bool
	// Own reports whether the user's own kubeconfig was used, and not the registration's.
	Own bool
	// Issued is when the manager's token was issued, or zero.
	Issued time.Time
	// Fence is the manager's Lease there.
	Fence Object[coordinationv1.Lease]
	// Leaves are objects of this host in a member that is not registered, by kind.
	Leaves map[string]int
}

// Base returns the account that a member's policies name: those of single hosts have its name as
// prefix.
func Base(a shipped.Account) shipped.Account {
	if name, _, cut := strings.Cut(a.Name, "-host-"); cut {
		a.Name = name
	}
	return a
}
