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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
)

const (
	// FieldOwner is the field owner of all objects that the plugin applies.
	FieldOwner = command.FieldOwner
	// Settling is how long a member may take to enforce new RBAC objects.
	Settling = 20 * time.Second

	kindNamespace = "Namespace"
)

// memberPart is the member's part of a registration.
type memberPart struct {
	Env *command.Env
	// Member is a client with the credentials of the member's admin. Way describes how the manager
	// connects.
	Member *command.Cluster
	Way    memberWay
	// MemberID is the member's cluster ID.
	MemberID string
	// Account is the manager's ServiceAccount in the member. Lifetime is the lifetime of its tokens.
	Account  string
	Lifetime time.Duration
	// Prepared means that the member already has the required objects. If it is false, the command
	// applies Objects.
	Prepared bool
	Objects  []*unstructured.Unstructured
	// Journal records all created objects, including those in the host.
	Journal journal
}

// Preflight checks, without changing anything, whether the member's part can be applied. It uses a
// dry run of each object or, if the object's namespace does not exist yet, checks the user's
// permissions.
func (r *memberPart) Preflight(ctx context.Context) error {
	var problems []error
	if !r.Prepared {
		there, err := r.namespace(ctx)
		if err != nil {
			return err
		}
		if there != nil && there.GetDeletionTimestamp() != nil {
			return fmt.Errorf("namespace %q in the member is being deleted. Wait until it is deleted, then run this command again", there.GetName())
		}
		for _, obj := range r.Objects {
			if there != nil && obj.GetKind() == kindNamespace {
				continue
			}
			if there == nil && obj.GetNamespace() != "" {
				problems = append(problems, r.mayCreate(ctx, "patch", obj, ""), r.mayCreate(ctx, "create", obj, ""))
				continue
			}
			problems = append(problems, r.applyObject(ctx, obj.DeepCopy(), client.DryRunAll))
		}
	}
	account := &unstructured.Unstructured{}
	account.SetAPIVersion("v1")
	account.SetKind("ServiceAccount")
	account.SetNamespace(r.Env.Namespace)
	account.SetName(r.Account)
	problems = append(problems, r.mayCreate(ctx, "create", account, "token"))
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if r.Prepared {
		there, err := r.findExisting(ctx, account)
		if err != nil {
			return err
		}
		if there == nil {
			return fmt.Errorf("the member has no ServiceAccount \"%s/%s\", which --member-prepared requires. Install the chart xylem-member in the member, or omit the flag", r.Env.Namespace, r.Account)
		}
	}
	return nil
}

// namespace returns the member's namespace, or nil. If an earlier deregistration is still deleting it,
// namespace waits for a short time.
func (r *memberPart) namespace(ctx context.Context) (*unstructured.Unstructured, error) {
	there, err := r.findExisting(ctx, r.Objects[0])
	if err != nil || there == nil || there.GetDeletionTimestamp() == nil {
		return there, err
	}
	fmt.Fprintf(r.Env.ErrOut, "waiting until namespace %q in the member is deleted\n", there.GetName())
	limited, cancel := context.WithTimeout(ctx, Settling)
	defer cancel()
	err = retryPatiently(limited, func(ctx context.Context) (bool, error) {
		now, err := r.findExisting(ctx, r.Objects[0])
		if err == nil {
			there = now
		}
		return err == nil && (now == nil || now.GetDeletionTimestamp() == nil), err
	})
	if limited.Err() != nil && ctx.Err() == nil {
		return there, nil // the caller reports that it is still being deleted
	}
	return there, err
}

// findExisting returns the current object in the member, or nil.
func (r *memberPart) findExisting(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(obj.GroupVersionKind())
	err := r.Member.Get(ctx, client.ObjectKeyFromObject(obj), there)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, command.Explain("the member", r.Member.Config, fmt.Errorf("read %s: %w", kindAndName(obj), err))
	}
	return there, nil
}

func (r *memberPart) mayCreate(ctx context.Context, verb string, obj *unstructured.Unstructured, subresource string) error {
	mapping, err := r.Member.RESTMapper().RESTMapping(obj.GroupVersionKind().GroupKind(), obj.GroupVersionKind().Version)
	if err != nil {
		return command.Explain("the member", r.Member.Config, fmt.Errorf("look up kind %s: %w", obj.GetKind(), err))
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: mapping.Resource.Group, Resource: mapping.Resource.Resource, Subresource: subresource,
			Namespace: obj.GetNamespace(), Name: obj.GetName(),
		},
	}}
	if err := r.Member.Create(ctx, review); err != nil {
		return command.Explain("the member", r.Member.Config, fmt.Errorf("check the permissions of the user in the member's kubeconfig: %w", err))
	}
	if review.Status.Allowed {
		return nil
	}
	what := kindAndName(obj)
	if subresource != "" {
		what = "a " + subresource + " for " + what
	}
	return fmt.Errorf("the user in the member's kubeconfig is not allowed to %s %s. Specify a kubeconfig that belongs to a cluster admin", verb, what)
}

func (r *memberPart) applyObject(ctx context.Context, obj *unstructured.Unstructured, opts ...client.ApplyOption) error {
	there, err := r.findExisting(ctx, obj)
	switch {
	case err != nil:
		return err
	case there == nil:
	case there.GetLabels()[v1alpha1.LabelManagedBy] == "Helm":
		return fmt.Errorf("%s in the member is managed by Helm. Specify --member-prepared, and upgrade the chart xylem-member in the member if needed", kindAndName(obj))
	case !command.Xylems(there):
		return fmt.Errorf("%s in the member does not belong to Xylem: the object lacks the label %s=%s. Delete or rename the object. If it does belong to Xylem, add the label instead",
			kindAndName(obj), command.LabelName, command.LabelNameValue)
	}
	err = r.Member.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), append(opts, FieldOwner, client.ForceOwnership)...)
	if err != nil {
		return command.Explain("the member", r.Member.Config, fmt.Errorf("apply %s: %w", kindAndName(obj), err))
	}
	return nil
}

// PrepareObjects applies the member's part. It does not change an existing namespace: the command must not
// label, or later delete, a namespace that somebody else created.
func (r *memberPart) PrepareObjects(ctx context.Context) error {
	for _, obj := range r.Objects {
		there, err := r.findExisting(ctx, obj)
		if err != nil {
			return err
		}
		applied := obj.DeepCopy()
		switch {
		case there == nil:
			by := "kubectl delete " + strings.ToLower(obj.GetKind()) + inNamespace(obj) + " " + obj.GetName() + " (in the member)"
			err = r.Journal.DoAndRemember(undoStep{What: kindAndName(obj) + " in the member", By: by, Undo: func(ctx context.Context) (bool, error) {
				return r.takeBackObject(ctx, applied)
			}}, func() error { return r.applyObject(ctx, applied) })
		case obj.GetKind() == kindNamespace:
		default:
			err = r.applyObject(ctx, applied)
			if !command.Refused(err) && (err != nil || !sameObject(applied, there)) {
				r.Journal.changedObjects(kindAndName(obj) + " in the member")
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sameObject reports whether two versions of an object are equal except for fields that the cluster
// sets. It is pure.
func sameObject(a, b *unstructured.Unstructured) bool {
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

// takeBackObject deletes an object that this run has created, unless the manager or somebody else already
// depends on it. It never deletes a fence.
func (r *memberPart) takeBackObject(ctx context.Context, obj *unstructured.Unstructured) (bool, error) {
	if obj.GetKind() == kindNamespace {
		var leases coordinationv1.LeaseList
		if err := r.Member.List(ctx, &leases, client.InNamespace(obj.GetName())); err != nil {
			return false, err
		}
		if len(leases.Items) > 0 {
			return false, errLed
		}
		held, err := r.Member.Holds(ctx, obj.GetName(), "")
		if err != nil {
			return false, err
		}
		if len(held) > 0 {
			return false, fmt.Errorf("the namespace also contains %s, which this command did not create", strings.Join(held, ", "))
		}
	}
	return r.UndoCreation(ctx, r.Member, obj)
}

// RefuseHosts rejects a member that runs a Xylem manager of its own. The member's policies would
// reject that manager's writes, and deregistering the member would delete that manager. In a
// prepared member, RefuseHosts skips a check that the user is not allowed to make, because the
// command changes nothing there.
func (r *memberPart) RefuseHosts(ctx context.Context) error {
	const advice = "a host cannot also be a member, because a member's policies would block the host's manager. Register another cluster"
	var registrations v1alpha1.ClusterRegistrationList
	var managers appsv1.DeploymentList
	for list, opts := range map[client.ObjectList][]client.ListOption{
		&registrations: nil,
		&managers:      {client.InNamespace(r.Env.Namespace), client.MatchingLabels{"app.kubernetes.io/name": "xylem", "control-plane": "controller-manager"}},
	} {
		err := r.Member.List(ctx, list, opts...)
		switch {
		case err == nil, meta.IsNoMatchError(err), apierrors.IsNotFound(err), r.Prepared && apierrors.IsForbidden(err):
		default:
			return command.Explain("the member", r.Member.Config, fmt.Errorf("check whether the member is a Xylem host itself: %w", err))
		}
	}
	switch {
	case len(managers.Items) > 0:
		return fmt.Errorf("the member runs Xylem's manager (Deployment \"%s/%s\"): %s", r.Env.Namespace, managers.Items[0].Name, advice)
	case len(registrations.Items) > 0:
		return fmt.Errorf("the member is a host (it has registration %q): %s", registrations.Items[0].Name, advice)
	}
	return nil
}

// RequestToken requests a token for the manager's account from the member.
func (r *memberPart) RequestToken(ctx context.Context) (string, error) {
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = r.Env.Namespace, r.Account
	review := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(r.Lifetime / time.Second))}}
	if err := r.Member.SubResource("token").Create(ctx, account, review); err != nil {
		return "", command.Explain("the member", r.Member.Config, fmt.Errorf("request a token for ServiceAccount \"%s/%s\": %w", r.Env.Namespace, r.Account, err))
	}
	return review.Status.Token, nil
}

// VerifyCredentials checks that the member accepts the token and that the token grants read access. It
// connects in the same way as the manager. The member may take some time to enforce a new role.
func (r *memberPart) VerifyCredentials(ctx context.Context, token string) error {
	config := r.Way.configOfManager(token)
	config.Timeout = r.Member.Config.Timeout
	account, err := r.Env.NewCluster(config)
	if err != nil {
		return err
	}
	var id string
	var last error
	err = wait.PollUntilContextTimeout(ctx, time.Second, Settling, true, func(ctx context.Context) (bool, error) {
		if id, last = account.ReadClusterID(ctx); last == nil {
			return true, nil
		}
		if apierrors.IsForbidden(last) || apierrors.IsUnauthorized(last) {
			return false, nil
		}
		return false, last
	})
	if err != nil {
		if last == nil {
			last = err // interrupted before the request
		}
		return command.Explain("the member (with the manager's account)", config, last)
	}
	if id != r.MemberID {
		return fmt.Errorf("%s is the address of cluster %s, but --member-kubeconfig points to cluster %s. Specify the address of cluster %[3]s with --member-server", r.Way.Server, id, r.MemberID)
	}
	return nil
}

// kindAndName returns an object's kind and name.
func kindAndName(obj client.Object) string {
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

// UndoCreation deletes an object that this run has created. If the response to the write was lost, the
// UID is unknown. In this case, Unmake deletes the object with that name if the plugin wrote it,
// because none existed when the run began.
func (r *memberPart) UndoCreation(ctx context.Context, in *command.Cluster, obj client.Object) (bool, error) {
	found := false
	err := retryPatiently(ctx, func(ctx context.Context) (bool, error) {
		if obj.GetUID() == "" {
			now := &metav1.PartialObjectMetadata{}
			gvk, err := in.GroupVersionKindFor(obj)
			if err != nil {
				return false, err
			}
			now.SetGroupVersionKind(gvk)
			if err := in.Get(ctx, client.ObjectKeyFromObject(obj), now); err != nil {
				return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
			}
			if !command.CreatedByXylem(now) {
				return true, nil
			}
			obj.SetUID(now.GetUID())
		}
		found = true
		err := in.Delete(ctx, obj, client.Preconditions{UID: ptr.To(obj.GetUID())})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // a conflict means that another object has the name now
			return false, err
		}
		return true, nil
	})
	return found, err
}

// retryPatiently calls do until it succeeds, is rejected, or ctx ends. It retries other errors, so that
// temporary errors do not leave an undo incomplete.
func retryPatiently(ctx context.Context, do func(context.Context) (bool, error)) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, PollInterval, true, func(ctx context.Context) (bool, error) {
		done, err := do(ctx)
		if err != nil && !command.Refused(err) {
			last = err
			return false, nil
		}
		return done, err
	})
	if err != nil && last != nil && ctx.Err() != nil {
		return last
	}
	return err
}

// PollInterval is the interval at which the plugin reads an object that it waits for.
const PollInterval = 300 * time.Millisecond
