package register

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/config"
	"github.com/xylem-io/xylem/internal/cli/command"
)

const (
	flagNodeIdentity   = "node-identity"
	flagManagerAccount = "manager-account"
)

// nodeIdentity contains the flags for the ClusterRole with which the manager acts as the virtual node.
type nodeIdentity struct {
	requested      bool
	managerAccount string
}

func (n *nodeIdentity) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&n.requested, flagNodeIdentity, false, "Let the manager act in the host as the virtual node, to get the tokens and the Secrets of its Pods as a kubelet does. Creates a ClusterRole that is limited to this node, and needs Kubernetes 1.36 or later in the host.")
	flags.StringVar(&n.managerAccount, flagManagerAccount, command.DefaultManagerAccount, "With --"+flagNodeIdentity+": name of the manager's ServiceAccount in the host. Its namespace is the value of --xylem-namespace.")
}

// needsIdentity reports whether the command creates the ClusterRole.
func (r *run) needsIdentity() bool { return r.identity.requested || r.spec.apiServer != "" }

// plannedIdentity returns the ClusterRole and its binding. Once the registration exists, it owns both, so they are deleted
// with it.
func (r *run) plannedIdentity(cr *v1alpha1.ClusterRegistration) (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, error) {
	role, binding, err := config.NodeIdentity(cr.NodeName(), r.Env.Namespace, r.identity.managerAccount)
	if err != nil || cr.UID == "" {
		return role, binding, err
	}
	for _, obj := range []client.Object{role, binding} {
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ClusterRegistration", Name: cr.Name, UID: cr.UID}})
	}
	return role, binding, nil
}

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
	role, binding, err := r.plannedIdentity(cr)
	if err != nil {
		return err
	}
	if err := r.writeIdentityObject(ctx, role, &rbacv1.ClusterRole{}, dry); err != nil {
		return err
	}
	if dry {
		return nil // a binding can be validated only once its role exists
	}
	return r.writeIdentityObject(ctx, binding, &rbacv1.ClusterRoleBinding{}, dry)
}

func (r *run) writeIdentityObject(ctx context.Context, wanted, there client.Object, dry bool) error {
	what := kindAndName(wanted)
	err := r.host.Get(ctx, client.ObjectKeyFromObject(wanted), there)
	switch {
	case apierrors.IsNotFound(err):
		create := func() error { return r.host.Create(ctx, wanted, command.CreateOptions(dry)...) }
		if dry {
			return explainGrant(what, create())
		}
		return explainGrant(what, r.Journal.DoAndRemember(undoStep{What: what, By: "kubectl delete " + what, Undo: func(ctx context.Context) (bool, error) {
			return r.UndoCreation(ctx, r.host, wanted)
		}}, create))
	case err != nil:
		return fmt.Errorf("read %s: %w", what, err)
	case there.GetLabels()[command.LabelName] != command.LabelNameValue:
		return fmt.Errorf("%s exists, but does not belong to Xylem: it lacks the label %s=%s. Delete or rename it", what, command.LabelName, command.LabelNameValue)
	}
	if identityCurrent(wanted, there) {
		return nil
	}
	wanted.SetResourceVersion(there.GetResourceVersion())
	wanted.SetUID(there.GetUID())
	if dry {
		return explainGrant(what, r.host.Update(ctx, wanted, command.FieldOwner, client.DryRunAll))
	}
	if err := r.host.Update(ctx, wanted, command.FieldOwner); err != nil {
		return explainGrant(what, err)
	}
	r.Journal.changedObjects(what)
	return nil
}

// identityCurrent reports whether an existing ClusterRole or binding grants what is wanted. It is pure.
func identityCurrent(wanted, there client.Object) bool {
	if !equality.Semantic.DeepEqual(wanted.GetOwnerReferences(), there.GetOwnerReferences()) {
		return false
	}
	switch wanted := wanted.(type) {
	case *rbacv1.ClusterRole:
		there, is := there.(*rbacv1.ClusterRole)
		return is && equality.Semantic.DeepEqual(wanted.Rules, there.Rules)
	case *rbacv1.ClusterRoleBinding:
		there, is := there.(*rbacv1.ClusterRoleBinding)
		return is && equality.Semantic.DeepEqual(wanted.Subjects, there.Subjects) && wanted.RoleRef == there.RoleRef
	}
	return false
}

// explainGrant adds what to do if the user may not grant the permission.
func explainGrant(what string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return errors.Join(err, fmt.Errorf("you are not allowed to create %s, which lets the manager act as the virtual node. Ask an admin of the host to run this command, or to apply config/identity/node.yaml for the node", what))
}
