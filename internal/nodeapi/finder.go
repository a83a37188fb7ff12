package nodeapi

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
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/placement"
)

// Target is the Pod or node that a call addresses.
type Target struct {
	Root *corev1.Pod
	// Node and Registration are names. The audit log contains them too.
	Node, Registration string
	// Upstream is the member's link. If it is not nil, the caller of FindLeaf or FindLink must call EndRequest.
	Upstream *Upstream
}

// Finder finds the leaf that a call addresses.
type Finder struct {
	// HostID is the host's cluster ID.
	HostID string
	// Host is the host's cache of Nodes. HostLive bypasses it.
	Host, HostLive client.Reader
	// MemberState returns the state of a registration's member, or false if this process has none.
	MemberState func(registration string) (fleet.State, bool)
	// IsLeader reports whether this replica is the leader. Leader returns the leader's name.
	IsLeader   func() bool
	LeaderName func(context.Context) (string, error)
	// CheckNodeAccess returns refused, or another failure, unless the user may access a subresource of a node.
	CheckNodeAccess func(ctx context.Context, who user.Info, verb, subresource, node string, refused *Failure) *Failure
	// Links are the links to the members.
	Links Links
}

// AuthorizeCall finds the root for a call. It fails if the caller lacks permission, whether or not the root
// exists.
func (f *Finder) AuthorizeCall(ctx context.Context, who user.Info, c Call, t *Target) *Failure {
	var err error
	if t.Root, err = index.FindObject[corev1.Pod](ctx, f.HostLive, c.Pod); err != nil {
		return TimeoutFailureOr(ctx, UnavailableFailure("the host's API server is unreachable: %v. Try again", err))
	}
	if t.Root != nil {
		t.Node = t.Root.Spec.NodeName
	}
	return f.CheckNodeAccess(ctx, who, c.RequiredVerb(), "proxy", t.Node, ErrUnauthorized)
}

// FindLeaf finds the leaf for an authorized call. It fails if the leaf does not belong to the root.
func (f *Finder) FindLeaf(ctx context.Context, c Call, t *Target) *Failure {
	if failed := f.checkVirtualNode(ctx, c, t); failed != nil {
		return failed
	}
	if failed := f.enterLinkOfNode(ctx, t); failed != nil {
		return failed
	}
	return f.checkLeafPod(ctx, c, t)
}

// FindLink finds a virtual node's link. It does not check the caller's permissions.
func (f *Finder) FindLink(ctx context.Context, t *Target) *Failure {
	node, err := index.FindObject[corev1.Node](ctx, f.Host, index.ClusterScopedKey(t.Node))
	switch {
	case err != nil:
		return UnavailableFailure("the manager cannot read node %q: %v. Try again", t.Node, err)
	case node == nil || !nodes.IsVirtual(node):
		return NotFoundFailure("no virtual node %q exists. Check the path", t.Node)
	}
	t.Registration = node.Labels[v1alpha1.LabelCluster]
	return f.enterLinkOfNode(ctx, t)
}

// enterLinkOfNode enters the link of the target's node.
func (f *Finder) enterLinkOfNode(ctx context.Context, t *Target) *Failure {
	if t.Upstream = f.Links.EnterLink(t.Node); t.Upstream == nil {
		return f.noLinkFailure(ctx, t)
	}
	t.Registration = t.Upstream.Registration
	return nil
}

// PushedLeaves returns the leaves of a node's Pods, by name. It omits leaves whose UID differs from the
// UID recorded on the root.
func (f *Finder) PushedLeaves(ctx context.Context, t *Target) (map[types.NamespacedName]MeasuredLeaf, error) {
	roots, err := index.PodsOnNode(ctx, f.Host, t.Node)
	if err != nil {
		return nil, err
	}
	leaves := make(map[types.NamespacedName]MeasuredLeaf, len(roots))
	for i := range roots {
		root := &roots[i]
		key := client.ObjectKeyFromObject(root)
		leaf, origin, err := index.FindStamped[corev1.Pod](ctx, t.Upstream.Cache, f.HostID, key)
		if err != nil {
			return nil, err
		}
		if leaf == nil || origin != mirror.OriginForRoot(f.HostID, root) || podstatus.RecordedLeafUID(root) != leaf.UID {
			continue
		}
		containers := map[string]bool{}
		for _, c := range slices.Concat(root.Spec.InitContainers, root.Spec.Containers, podspec.EphemeralAsContainers(root.Spec.EphemeralContainers)) {
			containers[c.Name] = true
		}
		leaves[key] = MeasuredLeaf{Pod: key, UID: leaf.UID, Created: leaf.CreationTimestamp.Time, Containers: containers}
	}
	return leaves, nil
}

// checkVirtualNode returns a failure if the root does not exist or is not on a virtual node.
func (f *Finder) checkVirtualNode(ctx context.Context, c Call, t *Target) *Failure {
	switch {
	case t.Root == nil:
		return NotFoundFailure("Pod %q does not exist in the host. Check the name", c.Pod)
	case t.Node == "":
		return BadRequestFailure("Pod %q is not bound to a node yet: the scheduler is waiting for the Pod's volumes or for a suitable node. Run kubectl describe pod", c.Pod)
	}
	node, err := index.FindObject[corev1.Node](ctx, f.Host, index.ClusterScopedKey(t.Node))
	if err != nil {
		return UnavailableFailure("the manager cannot read node %q: %v. Try again", t.Node, err)
	}
	if node == nil || !nodes.IsVirtual(node) {
		return NotFoundFailure("Pod %q runs on node %q, which is not a virtual node: only the kubelet of that node can serve requests for the Pod. Check the address in the status of node %[2]q", c.Pod, t.Node)
	}
	t.Registration = node.Labels[v1alpha1.LabelCluster]
	return nil
}

// noLinkFailure reports why this replica has no link to the member.
func (f *Finder) noLinkFailure(ctx context.Context, t *Target) *Failure {
	if !f.IsLeader() {
		leader, err := f.LeaderName(ctx)
		if err != nil || leader == "" {
			leader = "unknown"
		}
		failed := UnavailableFailure("this replica of Xylem's manager has no link to member %q: only the leading replica (%s) has links. Try again in a few seconds", t.Registration, leader)
		failed.Exact = true
		return failed
	}
	why := "Xylem is connecting to it"
	if state, known := f.MemberState(t.Registration); known && state.Problem != nil {
		why = state.Problem.Message
	}
	return UnavailableFailure("member %q is away: %s. Run kubectl describe clusterregistration %[1]s", t.Registration, why)
}

// checkLeafPod returns a failure if the Pod in the member is not the root's leaf, or if Xylem's account
// lacks permission. It reads the member live.
func (f *Finder) checkLeafPod(ctx context.Context, c Call, t *Target) *Failure {
	var leaf *corev1.Pod
	var namespace *corev1.Namespace
	allowed := true
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		leaf, err = index.FindObject[corev1.Pod](ctx, t.Upstream.Live, c.Pod)
		return err
	})
	group.Go(func() (err error) {
		namespace, err = index.FindObject[corev1.Namespace](ctx, t.Upstream.Live, index.ClusterScopedKey(c.Pod.Namespace))
		return err
	})
	if c.NeedsStream() { // for logs, the permission is checked after a 403 instead
		group.Go(func() (err error) {
			allowed, err = t.Upstream.Streams.HasPermission(ctx, c.RequiredVerb(), c.Subresource, c.Pod.Namespace)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return TimeoutFailureOr(ctx, UnavailableFailure("member %q is unreachable: %v. Run kubectl describe clusterregistration %[1]s", t.Registration, err))
	}
	if failed := judgeLeafPod(t, f.HostID, leaf, namespace); failed != nil {
		return failed
	}
	if !allowed {
		return MissingPermission(c, t.Registration)
	}
	return nil
}

// judgeLeafPod returns a failure if a Pod in the member is not the root's leaf.
func judgeLeafPod(t *Target, hostID string, leaf *corev1.Pod, namespace *corev1.Namespace) *Failure {
	root := t.Root
	pod := root.Namespace + "/" + root.Name
	recorded := podstatus.RecordedLeafUID(root)
	switch {
	case leaf == nil && podstatus.PushedStatus(root) != corev1.ConditionTrue:
		return BadRequestFailure("Pod %q is not running in member %q yet: Xylem has not created the Pod there. Run kubectl describe pod, and check the condition xylem.io/Pushed", pod, t.Registration)
	case leaf == nil:
		return NotFoundFailure("Pod %q is gone from member %q: somebody deleted the Pod there. If the Pod has an owner, the owner re-creates it; otherwise, create the Pod again", pod, t.Registration)
	}
	there := placement.Member{Member: t.Upstream.Member, Objects: &placement.MemberObjects{Namespace: namespace}}
	if refusal := there.AnswerRequest(placement.Request{Namespace: placement.Namespace{Name: root.Namespace}}).Refusal; refusal != nil && refusal.Reason != v1alpha1.ReasonNamespaceTerminating {
		return ForbiddenFailure("the namespace of Pod %q does not belong to this host: %s", pod, refusal.Message)
	}
	origin, ours := mirror.LeafOriginFromHost(hostID, leaf)
	switch {
	case namespace == nil, !ours, origin != mirror.OriginForRoot(hostID, root):
		return ForbiddenFailure("member %q already has a Pod %q that Xylem did not create for the Pod in the host, so Xylem does not access it. Ask the member's admin to delete that Pod, or use another name", t.Registration, pod)
	case recorded != "" && recorded != leaf.UID:
		return ForbiddenFailure("Pod %q was replaced in member %q by a Pod that Xylem did not create (UID %s instead of %s), so Xylem does not access the new Pod. Delete the Pod in the host, so that its owner re-creates it", pod, t.Registration, leaf.UID, recorded)
	}
	return nil
}

// permissionGrants maps each subresource to the options with which the member's admin grants access to it: a
// flag of kubectl xylem register, and a value of the chart xylem-member.
var permissionGrants = map[string]struct{ flag, value string }{
	SubresourceLog: {"--with-logs", "logs.enabled"}, SubresourceExec: {"--with-exec", "exec.enabled"},
	SubresourceAttach: {"--with-exec", "exec.enabled"}, SubresourcePortForward: {"--with-exec", "exec.enabled"},
}

// MissingPermission returns a failure that names the permission that the account lacks in the
// member, and how to grant it.
func MissingPermission(c Call, registration string) *Failure {
	grant := permissionGrants[c.Subresource]
	return ForbiddenFailure("member %q does not let Xylem %s: Xylem's account in the member lacks the verb %q on pods/%s. An admin of the member can grant the verb with kubectl xylem register %s --member-kubeconfig FILE %s, or with the value %s=true of the chart xylem-member",
		registration, map[string]string{SubresourceLog: "read logs", SubresourceExec: "exec", SubresourceAttach: "attach", SubresourcePortForward: "forward ports"}[c.Subresource],
		c.RequiredVerb(), c.Subresource, registration, grant.flag, grant.value)
}
