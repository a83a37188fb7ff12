package guarded

import (
	"context"
	"fmt"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

// NodeIdentity sends requests to the host as a virtual node of a member (constrained impersonation, KEP-5284). The host's
// node authorizer and NodeRestriction admission then allow what they allow a kubelet: Secrets that Pods on the node
// use, and tokens of these Pods' ServiceAccounts, each bound to its Pod.
type NodeIdentity struct {
	newClient func(node string) (client.Client, error)
	guard     Guard
	cluster   string

	mu      sync.Mutex
	clients map[string]client.Client // by node
}

// NewNodeIdentity creates the identity for one member. newClient returns a client that impersonates a node. cluster is the
// registration's name.
func NewNodeIdentity(newClient func(node string) (client.Client, error), cluster string, guard Guard) *NodeIdentity {
	return &NodeIdentity{newClient: newClient, guard: guard, cluster: cluster, clients: map[string]client.Client{}}
}

// ReaderAs returns a reader that acts as one of the member's virtual nodes.
func (n *NodeIdentity) ReaderAs(node string) (client.Reader, error) { return n.clientAs(node) }

func (n *NodeIdentity) clientAs(node string) (client.Client, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.clients[node]; known != nil {
		return known, nil
	}
	created, err := n.newClient(node)
	if err == nil {
		n.clients[node] = created
	}
	return created, err
}

// RequestToken requests a token of the Pod's ServiceAccount, as the Pod's node. The token is valid while the Pod exists.
// RequestToken changes nothing in the host.
func (n *NodeIdentity) RequestToken(ctx context.Context, by Actor, pod *corev1.Pod, token podspec.Token) (authenticationv1.TokenRequestStatus, error) {
	if err := n.guard.CheckFenceHeld(); err != nil {
		return authenticationv1.TokenRequestStatus{}, err
	}
	review := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &token.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if token.Audience != "" {
		review.Spec.Audiences = []string{token.Audience}
	}
	asNode, err := n.clientAs(pod.Spec.NodeName)
	if err != nil {
		return authenticationv1.TokenRequestStatus{}, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}
	err = asNode.SubResource("token").Create(ctx, account, review, by.fieldOwner())
	if err := CountWrite(n.cluster, HostSide, "create_token", account, err); err != nil {
		return authenticationv1.TokenRequestStatus{}, fmt.Errorf("request a token of ServiceAccount %s for Pod %s: %w", client.ObjectKeyFromObject(account), client.ObjectKeyFromObject(pod), err)
	}
	return review.Status, nil
}
