package guarded

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

// NodeIdentity sends requests to the host as a member's virtual node (constrained impersonation, KEP-5284). The host's
// node authorizer and NodeRestriction admission then allow what they allow a kubelet: Secrets that Pods on the node
// use, and tokens of these Pods' ServiceAccounts, each bound to its Pod.
type NodeIdentity struct {
	client  client.Client
	guard   Guard
	cluster string
}

// NewNodeIdentity creates the identity for one member. The client impersonates the virtual node. cluster is the
// registration's name.
func NewNodeIdentity(asNode client.Client, cluster string, guard Guard) *NodeIdentity {
	return &NodeIdentity{client: asNode, guard: guard, cluster: cluster}
}

// RequestToken requests a token of the Pod's ServiceAccount that is valid while the Pod exists. It changes nothing in the
// host.
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
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}
	err := n.client.SubResource("token").Create(ctx, account, review, by.fieldOwner())
	if err := CountWrite(n.cluster, HostSide, "create_token", account, err); err != nil {
		return authenticationv1.TokenRequestStatus{}, fmt.Errorf("request a token of ServiceAccount %s for Pod %s: %w", client.ObjectKeyFromObject(account), client.ObjectKeyFromObject(pod), err)
	}
	return review.Status, nil
}
