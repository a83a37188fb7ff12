package collect

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/doctor/facts"
	"github.com/xylem-io/xylem/internal/cli/doctor/shipped"
	"github.com/xylem-io/xylem/internal/text"
)

// jobs runs independent reads, a few at a time. Each read records what it cannot read.
func jobs(reads ...func()) { jobsAtOnce(asking, reads) }

func jobsAtOnce(limit int, reads []func()) {
	var group errgroup.Group
	group.SetLimit(limit)
	for _, read := range reads {
		group.Go(func() error {
			read()
			return nil
		})
	}
	_ = group.Wait() // reads never return an error
}

// identity returns the cluster's ID: the UID of the kube-system namespace.
func (r *reader) identity(ctx context.Context) (string, error) {
	system, err := r.raw.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the kube-system namespace, whose UID identifies the cluster: %w", err)
	}
	return string(system.UID), nil
}

func (r *reader) version() string {
	v, err := r.raw.Discovery().ServerVersion()
	if err != nil {
		r.miss("the Kubernetes version", err)
		return ""
	}
	return v.GitVersion
}

// snapshotGroup is the API group of VolumeSnapshots.
var snapshotGroup = schema.GroupVersion{Group: "snapshot.storage.k8s.io", Version: "v1"}

func (r *reader) snapshots() facts.Object[bool] {
	groups, err := r.raw.Discovery().ServerGroups()
	if err != nil {
		r.miss("whether VolumeSnapshots are served", err)
		return facts.Object[bool]{}
	}
	served := false
	for _, group := range groups.Groups {
		served = served || group.Name == snapshotGroup.Group
	}
	return facts.Object[bool]{Item: &served, Read: true}
}

// labelled selects objects from Xylem's manifests and charts.
var labelled = client.MatchingLabels{command.LabelName: command.LabelNameValue}

// policies reads all policies, and other admission objects with Xylem's label.
func (r *reader) policies(ctx context.Context, c *facts.Cluster) {
	jobs(
		func() {
			c.Policies = list(ctx, r, "ValidatingAdmissionPolicies", &admissionv1.ValidatingAdmissionPolicyList{},
				func(l *admissionv1.ValidatingAdmissionPolicyList) []admissionv1.ValidatingAdmissionPolicy {
					return l.Items
				})
		},
		func() {
			c.Bindings = list(ctx, r, "ValidatingAdmissionPolicyBindings", &admissionv1.ValidatingAdmissionPolicyBindingList{},
				func(l *admissionv1.ValidatingAdmissionPolicyBindingList) []admissionv1.ValidatingAdmissionPolicyBinding {
					return l.Items
				})
		},
		func() {
			c.Webhooks.Read = true
			for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"} {
				some := r.metadata(ctx, text.Plural(kind), admissionv1.SchemeGroupVersion.WithKind(kind), labelled)
				c.Webhooks.Items, c.Webhooks.Read = append(c.Webhooks.Items, some.Items...), c.Webhooks.Read && some.Read
			}
		},
	)
}

// rightsOf checks which of the needed and excessive permissions an account has, with
// SubjectAccessReviews.
func (r *reader) rightsOf(ctx context.Context, of shipped.Account, needs, excess []authorizationv1.ResourceAttributes) facts.Rights {
	return r.ask(ctx, needs, excess, func(a authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + of.Namespace + ":" + of.Name,
			Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + of.Namespace, "system:authenticated"},
			ResourceAttributes: &a,
		}}
		answer, err := r.raw.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return answer.Status.Allowed, nil
	})
}

// ownRights is like rightsOf, but checks the account whose credentials r uses.
func (r *reader) ownRights(ctx context.Context, needs, excess []authorizationv1.ResourceAttributes) facts.Rights {
	return r.ask(ctx, needs, excess, func(a authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
		answer, err := r.raw.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return answer.Status.Allowed, nil
	})
}

// ask checks each permission, a few at a time, until a request fails.
func (r *reader) ask(ctx context.Context, needs, excess []authorizationv1.ResourceAttributes, may func(authorizationv1.ResourceAttributes) (bool, error)) facts.Rights {
	var mu sync.Mutex
	var rights facts.Rights
	lacks, has := make([]bool, len(needs)), make([]bool, len(excess))
	group, _ := errgroup.WithContext(ctx)
	group.SetLimit(asking)
	var failed error
	for i, a := range append(append([]authorizationv1.ResourceAttributes{}, needs...), excess...) {
		group.Go(func() error {
			mu.Lock()
			stop := failed != nil
			mu.Unlock()
			if stop {
				return nil
			}
			allowed, err := may(a)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				failed = err
			case i < len(needs):
				lacks[i] = !allowed
			default:
				has[i-len(needs)] = allowed
			}
			return nil
		})
	}
	_ = group.Wait() // the error is in failed
	if failed != nil {
		r.miss("the permissions of the manager's account", failed)
		return rights
	}
	rights.Read = true
	rights.Lacks, rights.Excess = picked(needs, lacks), picked(excess, has)
	return rights
}

func picked(of []authorizationv1.ResourceAttributes, which []bool) []authorizationv1.ResourceAttributes {
	var some []authorizationv1.ResourceAttributes
	for i, is := range which {
		if is {
			some = append(some, of[i])
		}
	}
	return some
}

// managers selects the manager's Deployment and Pods.
var managers = client.MatchingLabels{command.LabelName: command.LabelNameValue, "control-plane": "controller-manager"}

// pods returns the Pods of a list.
func pods(l *corev1.PodList) []corev1.Pod { return l.Items }
