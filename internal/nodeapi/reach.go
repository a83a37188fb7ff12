package nodeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/placement"
)

// target is where a call leads.
type target struct {
	root *corev1.Pod
	// node and registration by name, for the audit line too.
	node, registration string
	// up is the member's link; the caller of reach ends its part in its sessions.
	up *upstream
}

// reach finds the leaf of a call, if the caller may and the leaf is the root's.
func (s *Server) reach(r *http.Request, who user.Info, c call, t *target) *failure {
	ctx := r.Context()
	var err error
	if t.root, err = index.Find[corev1.Pod](ctx, s.HostLive, c.pod); err != nil {
		return s.slow(ctx, unavailable("the host's API server does not answer: %v. Try again", err))
	}
	if t.root != nil {
		t.node = t.root.Spec.NodeName
	}
	if !s.may(ctx, who, c.verb(), "proxy", t.node) {
		return errUnauthorized
	}
	if failed := s.onVirtualNode(ctx, c, t); failed != nil {
		return failed
	}
	if t.up = s.links.enter(t.node); t.up == nil {
		return s.noLink(ctx, t)
	}
	t.registration = t.up.Registration
	return s.leaf(ctx, c, t)
}

// onVirtualNode reports what is wrong with the root or its node.
func (s *Server) onVirtualNode(ctx context.Context, c call, t *target) *failure {
	switch {
	case t.root == nil:
		return notFound("there is no Pod %q in the host. Check the name", c.pod)
	case t.node == "":
		return badRequest("Pod %q is not bound to a node yet: the scheduler waits for its volumes, or for a node that suits it. Run kubectl describe pod", c.pod)
	}
	node, err := index.Find[corev1.Node](ctx, s.Host, index.Named(t.node))
	if err != nil {
		return unavailable("the manager cannot read node %q: %v. Try again", t.node, err)
	}
	if node == nil || !nodes.IsVirtual(node) {
		return notFound("Pod %q runs on node %q, which is no virtual node: its own kubelet has to be asked. Check the address in the status of node %[2]q", c.pod, t.node)
	}
	t.registration = node.Labels[v1alpha1.LabelCluster]
	return nil
}

// noLink says why there is no link to the member, and who has it.
func (s *Server) noLink(ctx context.Context, t *target) *failure {
	if !s.Leads() {
		leader, err := s.Leader(ctx)
		if err != nil || leader == "" {
			leader = "none at present"
		}
		failed := unavailable("this replica of Xylem's manager has no link to member %q: the leading replica has it (%s). Try again in some seconds", t.registration, leader)
		failed.exact = true
		return failed
	}
	why := "it is being connected"
	if state, known := s.State(t.registration); known && state.Problem != nil {
		why = state.Problem.Message
	}
	return unavailable("member %q is away: %s. Run kubectl describe clusterregistration %[1]s", t.registration, why)
}

// leaf reports why the leaf Pod in the member is not the root's; nil if it is. It reads
// the member live.
func (s *Server) leaf(ctx context.Context, c call, t *target) *failure {
	var leaf *corev1.Pod
	var namespace *corev1.Namespace
	allowed := true
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		leaf, err = index.Find[corev1.Pod](ctx, t.up.live, c.pod)
		return err
	})
	group.Go(func() (err error) {
		namespace, err = index.Find[corev1.Namespace](ctx, t.up.live, index.Named(c.pod.Namespace))
		return err
	})
	if c.streams() { // what a member answers to an upgrade is not looked into
		group.Go(func() (err error) {
			allowed, err = t.up.streams.May(ctx, c.verb(), c.subresource, c.pod.Namespace)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return s.slow(ctx, unavailable("member %q does not answer: %v. Run kubectl describe clusterregistration %[1]s", t.registration, err))
	}
	if failed := judge(t, s.HostID, leaf, namespace); failed != nil {
		return failed
	}
	if !allowed {
		return lacksRight(c, t.registration)
	}
	return nil
}

// judge whether a Pod in the member is the leaf of the root. Pure.
func judge(t *target, hostID string, leaf *corev1.Pod, namespace *corev1.Namespace) *failure {
	root := t.root
	pod := root.Namespace + "/" + root.Name
	recorded := root.Annotations[v1alpha1.AnnotationLeafUID]
	switch {
	case leaf == nil && podstatus.Pushed(root) != corev1.ConditionTrue:
		return badRequest("Pod %q does not run in member %q yet: Xylem has not created it there. Run kubectl describe pod, condition xylem.io/Pushed", pod, t.registration)
	case leaf == nil:
		return notFound("Pod %q is gone in member %q: it was deleted there. Its owner re-creates it; without an owner, create it again", pod, t.registration)
	}
	there := placement.Member{Member: t.up.Member, Inside: &placement.Inside{Namespace: namespace}}
	if refusal := there.Answer(placement.Request{Namespace: root.Namespace}).Refusal; refusal != nil && refusal.Reason != v1alpha1.ReasonNamespaceTerminating {
		return forbidden("the namespace of Pod %q is not this host's: %s", pod, refusal.Message)
	}
	origin, ours := mirror.OriginIn(hostID, leaf)
	switch {
	case namespace == nil, !ours, origin != mirror.OriginFor(hostID, root):
		return forbidden("member %q has another Pod under the name %q, which Xylem did not create for this one: nothing is asked of it. Have the member's admin remove it, or use another name", t.registration, pod)
	case recorded != "" && recorded != string(leaf.UID):
		return forbidden("Pod %q was replaced in member %q by one that Xylem did not create (UID %s instead of %s): nothing is asked of it. Delete the Pod in the host, so that its owner re-creates it", pod, t.registration, leaf.UID, recorded)
	}
	return nil
}

// grants are the parts that the member's admin can give, by subresource: the flag of
// register, and the value of the chart xylem-member.
var grants = map[string]struct{ flag, value string }{
	subLog: {"--with-logs", "logs.enabled"}, subExec: {"--with-exec", "exec.enabled"},
	subAttach: {"--with-exec", "exec.enabled"}, subPortForward: {"--with-exec", "exec.enabled"},
}

// lacksRight says which right the account lacks in the member, and who can grant it.
func lacksRight(c call, registration string) *failure {
	grant := grants[c.subresource]
	return forbidden("member %q does not let Xylem %s: its account there lacks the verb %q on pods/%s. An admin of the member can grant it with kubectl xylem register %s, or with the value %s=true of the chart xylem-member",
		registration, map[string]string{subLog: "read logs", subExec: "exec", subAttach: "attach", subPortForward: "forward ports"}[c.subresource],
		c.verb(), c.subresource, grant.flag, grant.value)
}

// slow is what to answer after a failure: that the time was up, if it was.
func (s *Server) slow(ctx context.Context, failed *failure) *failure {
	if errors.Is(context.Cause(ctx), errSetupTimeout) {
		return &failure{code: http.StatusGatewayTimeout, message: fmt.Sprintf("no answer within %s. %s", setupTimeout, failed.message)}
	}
	return failed
}
