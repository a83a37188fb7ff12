package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"
)

// deletionPolicy is the name of the admission policy for deletions by KWOK.
const deletionPolicy = "controlplane-kwok-deletions"

// ensureDeletionPolicy lets KWOK delete only objects that are already being deleted. KWOK deletes
// Pods by name, without a UID and without a grace period. Without the policy, a late request
// would destroy the next Pod with that name. KWOK does not retry a rejected request. It deletes
// the next Pod when that Pod is deleted itself.
func (c *Cluster) ensureDeletionPolicy(ctx context.Context) error {
	meta, fail := metav1.ObjectMeta{Name: deletionPolicy}, admissionv1.Fail
	_, err := c.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Delete},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes", "pods"}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{Name: "kwok", Expression: fmt.Sprintf("request.userInfo.username == %q", userKWOK)}},
			Validations: []admissionv1.Validation{{
				Expression: "has(oldObject.metadata.deletionTimestamp)", Message: "KWOK may delete only objects that are already being deleted",
			}},
		},
	}, metav1.CreateOptions{})
	if err := unlessExists(err); err != nil {
		return err
	}
	_, err = c.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: deletionPolicy, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}, metav1.CreateOptions{})
	return unlessExists(err)
}

// deletionsLimited returns an error while the API server does not enforce the policy, which takes
// about a second after its creation. It tries to delete a Node as KWOK, in a dry run.
func (c *Cluster) deletionsLimited(ctx context.Context, node string) error {
	err := c.client.CoreV1().RESTClient().Delete().Resource("nodes").Name(node).
		SetHeader(transport.ImpersonateUserHeader, userKWOK).
		Body(&metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}).Do(ctx).Error()
	if apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("the API server does not enforce admission policy %q: %w", deletionPolicy, cmp.Or(err, errors.New("KWOK may delete Nodes")))
}
