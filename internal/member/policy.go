package member

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/wording"
)

// PolicyProbeName is the name of a namespace that the policy must reject, and the label that makes the
// policy reject it.
const PolicyProbeName = "xylem-policy-probe"

// PolicyState reports whether the member's admission policies limit the link's account.
type PolicyState struct {
	// Enforced is nil if unknown.
	Enforced *bool
	// Detail is the member's response if the policy did not reject the probe.
	Detail string
}

// ProbePolicyEnforced sends a dry-run create of a namespace that has a label that Xylem must not set. The
// current policy must reject it; older versions accept it. Xylem links the member in any case,
// because the policies protect the member and its admin may omit them.
func (c *Connection) ProbePolicyEnforced(ctx context.Context, hostID string) PolicyState {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	root := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: PolicyProbeName, UID: PolicyProbeName}}
	probe := mirror.LeafNamespace(root, mirror.Member{HostID: hostID})
	metav1.SetMetaDataLabel(&probe.ObjectMeta, PolicyProbeName, "")
	return policyStateOf(c.Live.Create(ctx, probe, client.DryRunAll))
}

// IsEnforced reports whether the policies limit the account.
func (p PolicyState) IsEnforced() bool { return p.Enforced != nil && *p.Enforced }

// policyStateOf evaluates the response to the probe. It is a pure function.
func policyStateOf(err error) PolicyState {
	yes, no := true, false
	switch {
	case err == nil:
		return PolicyState{Enforced: &no, Detail: fmt.Sprintf("a dry run succeeded in creating namespace %q with a label that Xylem must not set", PolicyProbeName)}
	case wording.DeniedByPolicy(err, access.AccountPolicy):
		return PolicyState{Enforced: &yes}
	}
	return PolicyState{Detail: fmt.Sprintf("a dry run to create namespace %q failed: %v", PolicyProbeName, err)}
}

// MayLoosenPodSecurity reports whether the member's admin allows the account to loosen Pod Security. The
// policies check the same permission. On an error, MayLoosenPodSecurity returns false.
func (c *Connection) MayLoosenPodSecurity(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "use", Group: "xylem.io", Resource: "podsecurity", Name: "privileged"},
	}}
	return c.Live.Create(ctx, review) == nil && review.Status.Allowed
}
