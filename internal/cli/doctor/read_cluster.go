package doctor

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/command"
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

func (r *reader) snapshots() Object[bool] {
	groups, err := r.raw.Discovery().ServerGroups()
	if err != nil {
		r.miss("whether VolumeSnapshots are served", err)
		return Object[bool]{}
	}
	served := false
	for _, group := range groups.Groups {
		served = served || group.Name == snapshotGroup.Group
	}
	return Object[bool]{Item: &served, Read: true}
}

// labelled selects objects from Xylem's manifests and charts.
var labelled = client.MatchingLabels{command.LabelName: command.LabelNameValue}

// policies reads all policies, and other admission objects with Xylem's label.
func (r *reader) policies(ctx context.Context, c *Cluster) {
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

// rights returns the permissions that check found, or reports that they cannot be read.
func (r *reader) rights(found Rights, err error) Rights {
	if err != nil {
		r.miss("the permissions of the manager's account", err)
	}
	return found
}

// managers selects the manager's Deployment and Pods.
var managers = client.MatchingLabels{command.LabelName: command.LabelNameValue, "control-plane": "controller-manager"}

// pods returns the Pods of a list.
func pods(l *corev1.PodList) []corev1.Pod { return l.Items }
