package register

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
)

const (
	// fieldOwner of all that the plugin applies.
	fieldOwner = command.FieldOwner
	// settling is how long a member may take to follow its own new RBAC.
	settling = 20 * time.Second

	kindNamespace = "Namespace"
)

// preflight finds out, without a change, whether all of the member's part can be
// applied: by a dry run of each object, or, where its namespace is not there yet,
// by asking what one may do.
func (r *run) preflight(ctx context.Context) error {
	var problems []error
	if !r.prepared {
		there, err := r.found(ctx, r.objects[0])
		if err != nil {
			return err
		}
		if there != nil && there.GetDeletionTimestamp() != nil {
			return fmt.Errorf("namespace %s in the member is being deleted: wait until it is gone, and run this again", there.GetName())
		}
		for _, obj := range r.objects {
			if there != nil && obj.GetKind() == kindNamespace {
				continue
			}
			if there == nil && obj.GetNamespace() != "" {
				problems = append(problems, r.may(ctx, "patch", obj, ""), r.may(ctx, "create", obj, ""))
				continue
			}
			problems = append(problems, r.apply(ctx, obj.DeepCopy(), client.DryRunAll))
		}
	}
	account := &unstructured.Unstructured{}
	account.SetAPIVersion("v1")
	account.SetKind("ServiceAccount")
	account.SetNamespace(r.env.Namespace)
	account.SetName(r.account)
	problems = append(problems, r.may(ctx, "create", account, "token"))
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if r.prepared {
		there, err := r.found(ctx, account)
		if err != nil {
			return err
		}
		if there == nil {
			return fmt.Errorf("the member has no ServiceAccount %s/%s, which --member-prepared takes for granted: install the chart xylem-member there, or leave the flag out", r.env.Namespace, r.account)
		}
	}
	return nil
}

// found is the object as it is in the member; nil if it is not.
func (r *run) found(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(obj.GroupVersionKind())
	err := r.member.Get(ctx, client.ObjectKeyFromObject(obj), there)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, command.Explain("the member", r.member.Config, fmt.Errorf("read %s: %w", named(obj), err))
	}
	return there, nil
}

func (r *run) may(ctx context.Context, verb string, obj *unstructured.Unstructured, subresource string) error {
	mapping, err := r.member.RESTMapper().RESTMapping(obj.GroupVersionKind().GroupKind(), obj.GroupVersionKind().Version)
	if err != nil {
		return command.Explain("the member", r.member.Config, fmt.Errorf("look up %s: %w", obj.GetKind(), err))
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: mapping.Resource.Group, Resource: mapping.Resource.Resource, Subresource: subresource,
			Namespace: obj.GetNamespace(), Name: obj.GetName(),
		},
	}}
	if err := r.member.Create(ctx, review); err != nil {
		return command.Explain("the member", r.member.Config, fmt.Errorf("ask what the kubeconfig's user may do: %w", err))
	}
	if review.Status.Allowed {
		return nil
	}
	what := named(obj)
	if subresource != "" {
		what = "the " + subresource + " of " + what
	}
	return fmt.Errorf("the member's kubeconfig may not %s %s: take one of a cluster admin", verb, what)
}

func (r *run) apply(ctx context.Context, obj *unstructured.Unstructured, opts ...client.ApplyOption) error {
	there, err := r.found(ctx, obj)
	switch {
	case err != nil:
		return err
	case there == nil:
	case there.GetLabels()[v1alpha1.LabelManagedBy] == "Helm":
		return fmt.Errorf("%s in the member is Helm's: give --member-prepared, and upgrade the chart xylem-member there if need be", named(obj))
	case !command.Xylems(there):
		return fmt.Errorf("%s in the member was not made for Xylem (it lacks the label %s=%s), and would be overwritten: remove or rename it there; or label it so, if it is Xylem's",
			named(obj), command.LabelName, command.LabelNameValue)
	}
	err = r.member.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), append(opts, fieldOwner, client.ForceOwnership)...)
	if err != nil {
		return command.Explain("the member", r.member.Config, fmt.Errorf("apply %s: %w", named(obj), err))
	}
	return nil
}

// prepare applies the member's part. A namespace that is there stays as it is: what
// somebody else made is not for this command to label, or to delete one day.
func (r *run) prepare(ctx context.Context) error {
	for _, obj := range r.objects {
		there, err := r.found(ctx, obj)
		if err != nil {
			return err
		}
		applied := obj.DeepCopy()
		switch {
		case there == nil:
			by := "kubectl delete " + strings.ToLower(obj.GetKind()) + inNamespace(obj) + " " + obj.GetName() + " (in the member)"
			err = r.journal.do(step{what: named(obj) + " in the member", by: by, undo: func(ctx context.Context) (bool, error) {
				return r.takeBack(ctx, applied)
			}}, func() error { return r.apply(ctx, applied) })
		case obj.GetKind() == kindNamespace:
		default:
			err = r.apply(ctx, applied)
			if !command.Refused(err) && (err != nil || !same(applied, there)) {
				r.journal.changed(named(obj) + " in the member")
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// same reports whether two readings of an object differ in nothing but what the
// cluster itself keeps of it. Pure.
func same(a, b *unstructured.Unstructured) bool {
	bare := func(obj *unstructured.Unstructured) map[string]any {
		c := obj.DeepCopy()
		c.SetResourceVersion("")
		c.SetGeneration(0)
		c.SetManagedFields(nil)
		delete(c.Object, "status")
		return c.Object
	}
	return equality.Semantic.DeepEqual(bare(a), bare(b))
}

// takeBack deletes what this run has made, unless the manager has begun to rely on
// it, or somebody else: the fence must not be forgotten.
func (r *run) takeBack(ctx context.Context, obj *unstructured.Unstructured) (bool, error) {
	if obj.GetKind() == kindNamespace {
		var leases coordinationv1.LeaseList
		if err := r.member.List(ctx, &leases, client.InNamespace(obj.GetName())); err != nil {
			return false, err
		}
		if len(leases.Items) > 0 {
			return false, errLed
		}
		held, err := r.member.Holds(ctx, obj.GetName(), "")
		if err != nil {
			return false, err
		}
		if len(held) > 0 {
			return false, fmt.Errorf("it holds what this command did not make: %s", strings.Join(held, ", "))
		}
	}
	return r.unmake(ctx, r.member, obj)
}

// refuseHosts refuses a member that has Xylem's own manager: the member's policies
// would take from that what it writes, and deregistering would remove it. Who may
// not look, in a member that is prepared, changes nothing there.
func (r *run) refuseHosts(ctx context.Context) error {
	const advice = "a host cannot be a member as well: its own manager and a member's policies exclude each other; register another cluster"
	var registrations v1alpha1.ClusterRegistrationList
	var managers appsv1.DeploymentList
	for list, opts := range map[client.ObjectList][]client.ListOption{
		&registrations: nil,
		&managers:      {client.InNamespace(r.env.Namespace), client.MatchingLabels{"app.kubernetes.io/name": "xylem", "control-plane": "controller-manager"}},
	} {
		err := r.member.List(ctx, list, opts...)
		switch {
		case err == nil, meta.IsNoMatchError(err), apierrors.IsNotFound(err), r.prepared && apierrors.IsForbidden(err):
		default:
			return command.Explain("the member", r.member.Config, fmt.Errorf("see whether the member is a host of Xylem itself: %w", err))
		}
	}
	switch {
	case len(managers.Items) > 0:
		return fmt.Errorf("the member runs Xylem's manager itself (Deployment %s/%s): %s", r.env.Namespace, managers.Items[0].Name, advice)
	case len(registrations.Items) > 0:
		return fmt.Errorf("the member has members itself (registration %s): %s", registrations.Items[0].Name, advice)
	}
	return nil
}

// request asks the member for a token of the manager's account.
func (r *run) request(ctx context.Context) (string, error) {
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = r.env.Namespace, r.account
	review := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(r.lifetime / time.Second))}}
	if err := r.member.SubResource("token").Create(ctx, account, review); err != nil {
		return "", command.Explain("the member", r.member.Config, fmt.Errorf("ask for a token of %s/%s: %w", r.env.Namespace, r.account, err))
	}
	return review.Status.Token, nil
}

// verify sees, by the way that the manager will take, that the token leads to the
// member and may read there. A new role is followed with a delay.
func (r *run) verify(ctx context.Context, token string) error {
	config := r.way.config(token)
	config.Timeout = r.member.Config.Timeout
	account, err := r.env.NewCluster(config)
	if err != nil {
		return err
	}
	var id string
	var last error
	err = wait.PollUntilContextTimeout(ctx, time.Second, settling, true, func(ctx context.Context) (bool, error) {
		if id, last = account.ID(ctx); last == nil {
			return true, nil
		}
		if apierrors.IsForbidden(last) || apierrors.IsUnauthorized(last) {
			return false, nil
		}
		return false, last
	})
	if err != nil {
		if last == nil {
			last = err // interrupted before it was asked
		}
		return command.Explain("the member, as the manager's account there,", config, last)
	}
	if id != r.memberID {
		return fmt.Errorf("%s leads to cluster %s, and the member's kubeconfig to %s", r.way.server, id, r.memberID)
	}
	return nil
}

func named(obj client.Object) string {
	name := obj.GetName()
	if obj.GetNamespace() != "" {
		name = obj.GetNamespace() + "/" + name
	}
	return obj.GetObjectKind().GroupVersionKind().Kind + " " + name
}

func inNamespace(obj client.Object) string {
	if obj.GetNamespace() == "" {
		return ""
	}
	return " -n " + obj.GetNamespace()
}
