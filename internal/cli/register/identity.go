package register

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/config"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/index"
)

const (
	flagNodeIdentity   = "node-identity"
	flagManagerAccount = "manager-account"
)

// nodeIdentity contains the flags for the ClusterRole with which the manager acts as the virtual node.
type nodeIdentity struct {
	secrets        bool
	managerAccount string
}

func (n *nodeIdentity) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&n.secrets, flagNodeIdentity, false, "Let the manager act in the host as the virtual node, to get the Secrets of its Pods as a kubelet does (secrets.access=Node of chart xylem). Creates a ClusterRole that is limited to this node, and needs Kubernetes 1.36 or later in the host.")
	flags.StringVar(&n.managerAccount, flagManagerAccount, command.DefaultManagerAccount, "With --"+flagNodeIdentity+" or --"+flagAPIServer+": name of the manager's ServiceAccount in the host. Its namespace is the value of --xylem-namespace.")
}

// needsIdentity reports whether the command writes the ClusterRole.
func (r *run) needsIdentity() bool { return r.identity.secrets || r.spec.given(flagAPIServer) }

// plannedIdentity returns the ClusterRole and its binding. The role lets the manager get tokens if the registration has
// apiServer, and Secrets if secrets is set. Once the registration exists, it owns both, so they are deleted with it.
func (r *run) plannedIdentity(cr *v1alpha1.ClusterRegistration, virtualNodes []corev1.Node, secrets bool) (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, error) {
	role, binding, err := config.NodeIdentity(cr.Name, inspect.NodeNames(cr, virtualNodes), r.Env.Namespace, r.identity.managerAccount)
	if err != nil {
		return nil, nil, err
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Resources, resourceTokens) && cr.Spec.APIServer == nil || slices.Contains(rule.Resources, resourceSecrets) && !secrets
	})
	if cr.UID == "" {
		return role, binding, nil
	}
	for _, obj := range []client.Object{role, binding} {
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ClusterRegistration", Name: cr.Name, UID: cr.UID}})
	}
	return role, binding, nil
}

// Resources in the rules of the ClusterRole.
const (
	resourceTokens  = "serviceaccounts/token"
	resourceSecrets = "secrets"
)

// writeIdentity creates or corrects the ClusterRole and its binding, if the user requested them. If dry is set, the host
// only validates them.
func (r *run) writeIdentity(ctx context.Context, dry bool) error {
	if !r.needsIdentity() {
		return nil
	}
	cr := r.registration()
	if !dry {
		if err := r.host.Get(ctx, client.ObjectKey{Name: r.name}, cr); err != nil {
			return fmt.Errorf("read the registration: %w", err)
		}
	}
	virtualNodes, err := r.virtualNodes(ctx, cr)
	if err != nil {
		return err
	}
	role, _, err := r.plannedIdentity(cr, virtualNodes, true)
	if err != nil {
		return err
	}
	var roleBefore rbacv1.ClusterRole
	var bindingBefore rbacv1.ClusterRoleBinding
	if err := client.IgnoreNotFound(r.host.Get(ctx, client.ObjectKeyFromObject(role), &roleBefore)); err != nil {
		return fmt.Errorf("read %s: %w", kindAndName(role), err)
	}
	granted := slices.ContainsFunc(roleBefore.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, resourceSecrets) })
	role, binding, err := r.plannedIdentity(cr, virtualNodes, r.identity.secrets || granted)
	if err != nil {
		return err
	}
	if err := r.writeIdentityObject(ctx, role, &roleBefore, dry); err != nil || dry {
		return err // a binding can be validated only once its role exists
	}
	if err := client.IgnoreNotFound(r.host.Get(ctx, client.ObjectKeyFromObject(binding), &bindingBefore)); err != nil {
		return fmt.Errorf("read %s: %w", kindAndName(binding), err)
	}
	return r.writeIdentityObject(ctx, binding, &bindingBefore, false)
}

// virtualNodes returns the virtual nodes of a registration with spec.nodes. The ClusterRole must name each of them, because
// RBAC has no wildcards for names.
func (r *run) virtualNodes(ctx context.Context, cr *v1alpha1.ClusterRegistration) ([]corev1.Node, error) {
	if len(cr.Spec.Nodes) == 0 {
		return nil, nil
	}
	return index.ListVirtualNodes(ctx, r.host) //nolint:wrapcheck // it names the list
}

// writeIdentityObject creates an object of the identity, or corrects the one that is there. An object that somebody else
// created keeps its owner references.
func (r *run) writeIdentityObject(ctx context.Context, wanted, there client.Object, dry bool) error {
	what := kindAndName(wanted)
	if there.GetUID() == "" {
		create := func() error { return r.host.Create(ctx, wanted, command.CreateOptions(dry)...) }
		if dry {
			return explainGrant(what, create())
		}
		return explainGrant(what, r.Journal.DoAndRemember(undoStep{What: what, By: "kubectl delete " + what, Undo: func(ctx context.Context) (bool, error) {
			return r.UndoCreation(ctx, r.host, wanted)
		}}, create))
	}
	if there.GetLabels()[command.LabelName] != command.LabelNameValue {
		return fmt.Errorf("%s exists, but does not belong to Xylem: it lacks the label %s=%s. Delete or rename it", what, command.LabelName, command.LabelNameValue)
	}
	before, is := there.DeepCopyObject().(client.Object)
	if !is {
		return fmt.Errorf("%T is not an object", there)
	}
	copyIdentity(wanted, there)
	if equality.Semantic.DeepEqual(before, there) {
		return nil
	}
	if err := r.host.Patch(ctx, there, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), command.PatchOptions(dry)...); err != nil {
		return explainGrant(what, err)
	}
	if !dry {
		r.Journal.changedObjects(what)
	}
	return nil
}

// copyIdentity copies what an object of the identity grants.
func copyIdentity(from, to client.Object) {
	switch from := from.(type) {
	case *rbacv1.ClusterRole:
		if to, is := to.(*rbacv1.ClusterRole); is {
			to.Rules = from.Rules
		}
	case *rbacv1.ClusterRoleBinding:
		if to, is := to.(*rbacv1.ClusterRoleBinding); is {
			to.Subjects = from.Subjects
		}
	}
}

// explainGrant adds what to do if the user may not grant the permission.
func explainGrant(what string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return errors.Join(err, fmt.Errorf("you are not allowed to create %s, which lets the manager act as the virtual node. Ask an admin of the host to run this command, or to apply config/identity/node.yaml for the node", what))
}
