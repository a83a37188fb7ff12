package lookup

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/nodeapi/call"
	"github.com/xylem-io/xylem/internal/nodeapi/failure"
	"github.com/xylem-io/xylem/internal/nodeapi/usage"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/placement"
)

// Target is the Pod or node that a call addresses.
type Target struct {
	Root *corev1.Pod
	// Node and Registration are names. The audit log contains them too.
	Node, Registration string
	// Up is the member's link. If it is not nil, the caller of Reach or Link must call Leave.
	Up *Upstream
}

// Finder finds the leaf that a call addresses.
type Finder struct {
	// HostID is the host's cluster ID.
	HostID string
	// Host is the host's cache of Nodes. HostLive bypasses it.
	Host, HostLive client.Reader
	// State returns the state of a registration's member, or false if this process has none.
	State func(registration string) (fleet.State, bool)
	// Leads reports whether this replica is the leader. Leader returns the leader's name.
	Leads  func() bool
	Leader func(context.Context) (string, error)
	// Check returns refused, or another failure, unless the user may access a subresource of a node.
	Check func(ctx context.Context, who user.Info, verb, subresource, node string, refused *failure.Failure) *failure.Failure
	// Links are the links to the members.
	Links Links
}

// Authorize finds the root for a call. It fails if the caller lacks permission, whether or not the root
// exists.
func (f *Finder) Authorize(ctx context.Context, who user.Info, c call.Call, t *Target) *failure.Failure {
	var err error
	if t.Root, err = index.Find[corev1.Pod](ctx, f.HostLive, c.Pod); err != nil {
		return failure.Slow(ctx, failure.Unavailable("the host's API server is unreachable: %v. Try again", err))
	}
	if t.Root != nil {
		t.Node = t.Root.Spec.NodeName
	}
	return f.Check(ctx, who, c.Verb(), "proxy", t.Node, failure.ErrUnauthorized)
}

// Reach finds the leaf for an authorized call. It fails if the leaf does not belong to the root.
func (f *Finder) Reach(ctx context.Context, c call.Call, t *Target) *failure.Failure {
	if failed := f.onVirtualNode(ctx, c, t); failed != nil {
		return failed
	}
	if failed := f.enter(ctx, t); failed != nil {
		return failed
	}
	return f.leaf(ctx, c, t)
}

// Link finds a virtual node's link. It does not check the caller's permissions.
func (f *Finder) Link(ctx context.Context, t *Target) *failure.Failure {
	node, err := index.Find[corev1.Node](ctx, f.Host, index.Named(t.Node))
	switch {
	case err != nil:
		return failure.Unavailable("the manager cannot read node %q: %v. Try again", t.Node, err)
	case node == nil || !nodes.IsVirtual(node):
		return failure.NotFound("no virtual node %q exists. Check the path", t.Node)
	}
	t.Registration = node.Labels[v1alpha1.LabelCluster]
	return f.enter(ctx, t)
}

// enter enters the link of the target's node.
func (f *Finder) enter(ctx context.Context, t *Target) *failure.Failure {
	if t.Up = f.Links.Enter(t.Node); t.Up == nil {
		return f.noLink(ctx, t)
	}
	t.Registration = t.Up.Registration
	return nil
}

// Pushed returns the leaves of a node's Pods, by name. It omits leaves whose UID differs from the
// UID recorded on the root.
func (f *Finder) Pushed(ctx context.Context, t *Target) (map[types.NamespacedName]usage.Leaf, error) {
	roots, err := index.PodsOnNode(ctx, f.Host, t.Node)
	if err != nil {
		return nil, err
	}
	leaves := make(map[types.NamespacedName]usage.Leaf, len(roots))
	for i := range roots {
		root := &roots[i]
		key := client.ObjectKeyFromObject(root)
		leaf, origin, err := index.Leaf[corev1.Pod](ctx, t.Up.Cache, f.HostID, key)
		if err != nil {
			return nil, err
		}
		if leaf == nil || origin != mirror.OriginFor(f.HostID, root) || podstatus.LeafUID(root) != leaf.UID {
			continue
		}
		containers := map[string]bool{}
		for _, c := range slices.Concat(root.Spec.InitContainers, root.Spec.Containers, podspec.AsContainers(root.Spec.EphemeralContainers)) {
			containers[c.Name] = true
		}
		leaves[key] = usage.Leaf{Pod: key, UID: leaf.UID, Created: leaf.CreationTimestamp.Time, Containers: containers}
	}
	return leaves, nil
}

// onVirtualNode returns a failure if the root does not exist or is not on a virtual node.
func (f *Finder) onVirtualNode(ctx context.Context, c call.Call, t *Target) *failure.Failure {
	switch {
	case t.Root == nil:
		return failure.NotFound("Pod %q does not exist in the host. Check the name", c.Pod)
	case t.Node == "":
		return failure.BadRequest("Pod %q is not bound to a node yet: the scheduler is waiting for the Pod's volumes or for a suitable node. Run kubectl describe pod", c.Pod)
	}
	node, err := index.Find[corev1.Node](ctx, f.Host, index.Named(t.Node))
	if err != nil {
		return failure.Unavailable("the manager cannot read node %q: %v. Try again", t.Node, err)
	}
	if node == nil || !nodes.IsVirtual(node) {
		return failure.NotFound("Pod %q runs on node %q, which is not a virtual node: only the kubelet of that node can serve requests for the Pod. Check the address in the status of node %[2]q", c.Pod, t.Node)
	}
	t.Registration = node.Labels[v1alpha1.LabelCluster]
	return nil
}

// noLink reports why this replica has no link to the member.
func (f *Finder) noLink(ctx context.Context, t *Target) *failure.Failure {
	if !f.Leads() {
		leader, err := f.Leader(ctx)
		if err != nil || leader == "" {
			leader = "unknown"
		}
		failed := failure.Unavailable("this replica of Xylem's manager has no link to member %q: only the leading replica (%s) has links. Try again in a few seconds", t.Registration, leader)
		failed.Exact = true
		return failed
	}
	why := "Xylem is connecting to it"
	if state, known := f.State(t.Registration); known && state.Problem != nil {
		why = state.Problem.Message
	}
	return failure.Unavailable("member %q is away: %s. Run kubectl describe clusterregistration %[1]s", t.Registration, why)
}

// leaf returns a failure if the Pod in the member is not the root's leaf, or if Xylem's account
// lacks permission. It reads the member live.
func (f *Finder) leaf(ctx context.Context, c call.Call, t *Target) *failure.Failure {
	var leaf *corev1.Pod
	var namespace *corev1.Namespace
	allowed := true
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		leaf, err = index.Find[corev1.Pod](ctx, t.Up.Live, c.Pod)
		return err
	})
	group.Go(func() (err error) {
		namespace, err = index.Find[corev1.Namespace](ctx, t.Up.Live, index.Named(c.Pod.Namespace))
		return err
	})
	if c.Streams() { // for logs, the permission is checked after a 403 instead
		group.Go(func() (err error) {
			allowed, err = t.Up.Streams.May(ctx, c.Verb(), c.Subresource, c.Pod.Namespace)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return failure.Slow(ctx, failure.Unavailable("member %q is unreachable: %v. Run kubectl describe clusterregistration %[1]s", t.Registration, err))
	}
	if failed := judge(t, f.HostID, leaf, namespace); failed != nil {
		return failed
	}
	if !allowed {
		return MissingPermission(c, t.Registration)
	}
	return nil
}

// judge returns a failure if a Pod in the member is not the root's leaf.
func judge(t *Target, hostID string, leaf *corev1.Pod, namespace *corev1.Namespace) *failure.Failure {
	root := t.Root
	pod := root.Namespace + "/" + root.Name
	recorded := podstatus.LeafUID(root)
	switch {
	case leaf == nil && podstatus.Pushed(root) != corev1.ConditionTrue:
		return failure.BadRequest("Pod %q is not running in member %q yet: Xylem has not created the Pod there. Run kubectl describe pod, and check the condition xylem.io/Pushed", pod, t.Registration)
	case leaf == nil:
		return failure.NotFound("Pod %q is gone from member %q: somebody deleted the Pod there. If the Pod has an owner, the owner re-creates it; otherwise, create the Pod again", pod, t.Registration)
	}
	there := placement.Member{Member: t.Up.Member, Inside: &placement.Inside{Namespace: namespace}}
	if refusal := there.Answer(placement.Request{Namespace: placement.Namespace{Name: root.Namespace}}).Refusal; refusal != nil && refusal.Reason != v1alpha1.ReasonNamespaceTerminating {
		return failure.Forbidden("the namespace of Pod %q does not belong to this host: %s", pod, refusal.Message)
	}
	origin, ours := mirror.OriginIn(hostID, leaf)
	switch {
	case namespace == nil, !ours, origin != mirror.OriginFor(hostID, root):
		return failure.Forbidden("member %q already has a Pod %q that Xylem did not create for the Pod in the host, so Xylem does not access it. Ask the member's admin to delete that Pod, or use another name", t.Registration, pod)
	case recorded != "" && recorded != leaf.UID:
		return failure.Forbidden("Pod %q was replaced in member %q by a Pod that Xylem did not create (UID %s instead of %s), so Xylem does not access the new Pod. Delete the Pod in the host, so that its owner re-creates it", pod, t.Registration, leaf.UID, recorded)
	}
	return nil
}

// grants maps each subresource to the options with which the member's admin grants access to it: a
// flag of kubectl xylem register, and a value of the chart xylem-member.
var grants = map[string]struct{ flag, value string }{
	call.Log: {"--with-logs", "logs.enabled"}, call.Exec: {"--with-exec", "exec.enabled"},
	call.Attach: {"--with-exec", "exec.enabled"}, call.PortForward: {"--with-exec", "exec.enabled"},
}

// MissingPermission returns a failure that names the permission that the account lacks in the
// member, and how to grant it.
func MissingPermission(c call.Call, registration string) *failure.Failure {
	grant := grants[c.Subresource]
	return failure.Forbidden("member %q does not let Xylem %s: Xylem's account in the member lacks the verb %q on pods/%s. An admin of the member can grant the verb with kubectl xylem register %s --member-kubeconfig FILE %s, or with the value %s=true of the chart xylem-member",
		registration, map[string]string{call.Log: "read logs", call.Exec: "exec", call.Attach: "attach", call.PortForward: "forward ports"}[c.Subresource],
		c.Verb(), c.Subresource, registration, grant.flag, grant.value)
}
