package deregister

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/wording"
)

const (
	fieldOwner = command.FieldOwner
	poll       = 300 * time.Millisecond
	// restoring limits how long undoing changes may take after a failure or Ctrl-C.
	restoring = 15 * time.Second
)

// run is one run of the command.
type run struct {
	env   *command.Env
	admin command.Member

	name, policy string
	dry          command.DryRun
	yes          bool
	timeout      time.Duration

	host, member     *command.Cluster
	hostID, memberID string
	// leftover is the kubeconfig Secret of a deleted registration.
	leftover *corev1.Secret
	kept     []string
}

// NewCommand creates the deregister command.
func NewCommand(env *command.Env) *cobra.Command {
	r := &run{env: env}
	policies := []string{string(v1alpha1.DeregistrationRetain), string(v1alpha1.DeregistrationDrain)}
	c := &cobra.Command{
		Use:   "deregister NAME",
		Short: "Deregister a member cleanly",
		Long: "Show which objects the host has in the member and what happens to them, then delete the registration, wait until\n" +
			"the manager has left the member, and delete the Secret with the kubeconfig. With --member-kubeconfig, also\n" +
			"delete the objects that `kubectl xylem register` created in the member. The command never destroys a volume that\n" +
			"a claim uses.",
		Example: "  kubectl xylem deregister cluster38 --dry-run\n" +
			"  kubectl xylem deregister cluster38 --policy Drain --member-kubeconfig ~/cluster38.kubeconfig",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r.name = args[0]
			if err := r.dry.Validate(); err != nil {
				return err
			}
			if r.policy != "" && !slices.Contains(policies, r.policy) {
				return fmt.Errorf("--policy=%s is unknown: use %s", r.policy, strings.Join(policies, " or "))
			}
			return r.deregisterMember(c.Context())
		},
		ValidArgsFunction: env.CompleteRegistrations,
	}
	flags := c.Flags()
	r.admin.AddFlags(flags, "Path to an admin kubeconfig for the member: the command deletes the objects that kubectl xylem register created in the member.")
	flags.StringVar(&r.policy, "policy", "", "What to do with claims and volumes in the member: Retain keeps them, Drain waits until the last claim is deleted. Default: the registration's spec.deregistration.")
	r.dry.AddFlag(c, "show the changes without making them.", "also let the host validate the deletion.")
	flags.BoolVarP(&r.yes, "yes", "y", false, "Do not prompt for confirmation before Pods in the member are evicted.")
	flags.DurationVar(&r.timeout, "timeout", 10*time.Minute, "How long to wait for the deregistration.")
	if err := c.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(policies, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // impossible: the flag was just added
	}
	return c
}

func (r *run) deregisterMember(ctx context.Context) error {
	cr, err := r.openClusters(ctx)
	if err != nil {
		return err
	}
	if cr == nil {
		return r.finishInMember(ctx, nil)
	}
	policy := cr.Spec.Deregistration
	if r.policy != "" {
		policy = v1alpha1.DeregistrationPolicy(r.policy)
	}
	s, err := surveyVolumes(ctx, r.host, cr)
	if err != nil {
		return command.Explain("the host", r.host.Config, err)
	}
	if err := s.printSurvey(r.env.Out, cr, policy); err != nil {
		return err
	}
	switch r.dry {
	case command.DryRunClient:
		return r.unchanged()
	case command.DryRunServer:
		if err := r.host.Delete(ctx, cr, client.DryRunAll, client.Preconditions{UID: &cr.UID}); err != nil {
			return command.Explain("the host", r.host.Config, fmt.Errorf("validate the deletion of registration %q: %w", cr.Name, err))
		}
		return r.unchanged()
	case command.DryRunNone:
	}
	if err := r.confirmDeregistration(len(s.pods)); err != nil {
		return err
	}
	if err := r.awaitDeparture(ctx, cr, policy); err != nil {
		return err
	}
	return r.finishInMember(ctx, cr)
}

// openClusters reads the registration. It checks that the member's kubeconfig, if given, points to that
// member. It returns nil if the registration was deleted and only the objects that register created
// need to be removed.
func (r *run) openClusters(ctx context.Context) (*v1alpha1.ClusterRegistration, error) {
	var err error
	if r.host, err = r.env.HostCluster(); err != nil {
		return nil, err
	}
	if r.hostID, err = r.host.ReadClusterID(ctx); err != nil {
		return nil, command.Explain("the host", r.host.Config, err)
	}
	if err := r.openMember(ctx); err != nil {
		return nil, err
	}
	return r.findMember(ctx)
}

// openMember creates a client for the member if its kubeconfig is given.
func (r *run) openMember(ctx context.Context) error {
	if !r.admin.Given() {
		return nil
	}
	admin, err := r.admin.Config(r.env)
	if err != nil {
		return err
	}
	if r.member, err = r.env.NewCluster(admin); err != nil {
		return err
	}
	if r.memberID, err = r.member.ReadClusterID(ctx); err != nil {
		return command.Explain("the member", r.member.Config, err)
	}
	if r.memberID == r.hostID {
		return fmt.Errorf(access.IsHostFormat+". Specify the member's kubeconfig, and choose the host with --context", r.admin.ContextFlag())
	}
	return nil
}

// findMember returns the registration, or nil if it was deleted but some of its objects are left.
func (r *run) findMember(ctx context.Context) (*v1alpha1.ClusterRegistration, error) {
	all, err := r.host.Registrations(ctx)
	if err != nil {
		return nil, err
	}
	var cr *v1alpha1.ClusterRegistration
	for i := range all {
		item := &all[i]
		switch {
		case item.Name == r.name:
			cr = item
		case r.memberID != "" && item.Status.ClusterID == r.memberID:
			return nil, fmt.Errorf("%s points to the cluster that is registered as %q. Deregister that registration, or specify another kubeconfig", r.admin.ContextFlag(), item.Name)
		}
	}
	if cr == nil {
		if r.leftover, err = r.findLeftover(ctx, all); err != nil {
			return nil, command.Explain("the host", r.host.Config, err)
		}
	}
	switch {
	case cr == nil && r.member == nil && r.leftover == nil:
		names := make([]string, 0, len(all))
		for i := range all {
			names = append(names, all[i].Name)
		}
		return nil, fmt.Errorf("there is no registration %q in the host.%s `kubectl get clusterregistrations` lists all registrations. To clean up a member without a registration, set --member-kubeconfig", r.name, command.DidYouMean(r.name, names))
	case cr != nil && r.memberID != "" && cr.Status.ClusterID != "" && cr.Status.ClusterID != r.memberID:
		return nil, fmt.Errorf(access.OtherClusterFormat+". Specify a kubeconfig for cluster %[4]s", r.admin.ContextFlag(), r.memberID, fmt.Sprintf("registration %q", r.name), cr.Status.ClusterID)
	}
	return cr, nil
}

// unchanged reports that a dry run changed nothing.
func (r *run) unchanged() error {
	fmt.Fprintf(r.env.Out, "Nothing was changed (%s)\n", r.dry.DryRunSuffix())
	return nil
}

// confirmDeregistration prompts the user, unless --yes is set.
func (r *run) confirmDeregistration(pods int) error {
	if r.yes {
		return nil
	}
	return r.env.Confirm("registration", r.name, fmt.Sprintf("continue (%s will be evicted)", wording.CountNoun(pods, "Pod")))
}

// awaitDeparture deletes the registration, and waits until the manager has deregistered the member.
func (r *run) awaitDeparture(ctx context.Context, cr *v1alpha1.ClusterRegistration, policy v1alpha1.DeregistrationPolicy) error {
	if err := r.releaseMember(ctx, cr, policy); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	shown := ""
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		var now v1alpha1.ClusterRegistration
		err := r.host.Get(ctx, client.ObjectKey{Name: r.name}, &now)
		if apierrors.IsNotFound(err) || err == nil && now.UID != cr.UID {
			return true, nil
		}
		if err != nil {
			if !command.Refused(err) { // the error may be temporary, or ctx has ended
				return false, nil
			}
			return false, fmt.Errorf("read registration %q: %w", r.name, err)
		}
		if c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Status != metav1.ConditionTrue && c.Reason != v1alpha1.ReasonConfirmationNeeded && c.Message != shown {
			shown = c.Message
			fmt.Fprintln(r.env.ErrOut, shown)
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("registration %q is still being deleted (%s): %w. To continue waiting, run this command again. `kubectl describe clusterregistration %s` shows what the deletion is waiting for",
			r.name, cmp.Or(shown, "no status reported yet"), err, r.name)
	}
	return nil
}

// releaseMember deletes the registration, and only then confirms that its Pods may be evicted. In the
// other order, a failed deletion would leave a confirmation for a later, accidental deletion.
func (r *run) releaseMember(ctx context.Context, cr *v1alpha1.ClusterRegistration, policy v1alpha1.DeregistrationPolicy) error {
	host := func(err error) error { return command.Explain("the host", r.host.Config, err) }
	set := func(ctx context.Context, policy v1alpha1.DeregistrationPolicy) error {
		return r.patchRegistration(ctx, cr, map[string]any{"spec": map[string]any{"deregistration": policy}})
	}
	if policy != cr.Spec.Deregistration {
		if err := set(ctx, policy); err != nil {
			return host(fmt.Errorf("set the policy of registration %q: %w", r.name, err))
		}
	}
	if err := client.IgnoreNotFound(r.host.Delete(ctx, cr.DeepCopy(), client.Preconditions{UID: &cr.UID})); err != nil {
		err = fmt.Errorf("delete registration %q: %w", r.name, err)
		if policy != cr.Spec.Deregistration {
			back, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoring)
			defer cancel()
			if failed := set(back, cr.Spec.Deregistration); failed != nil {
				err = fmt.Errorf("%w (spec.deregistration is now %s, because restoring the earlier value %s failed: %w)", err, policy, cr.Spec.Deregistration, failed)
			}
		}
		return host(err)
	}
	confirmed := map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationConfirmDeregister: r.name}}}
	if err := client.IgnoreNotFound(r.patchRegistration(ctx, cr, confirmed)); err != nil {
		return host(fmt.Errorf("confirm the deletion of registration %q, which has already begun: %w. Run this command again", r.name, err))
	}
	return nil
}

// patchRegistration patches the registration that was read. If the name now belongs to another registration, it
// returns a conflict.
func (r *run) patchRegistration(ctx context.Context, cr *v1alpha1.ClusterRegistration, change map[string]any) error {
	metadata, ok := change["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		change["metadata"] = metadata
	}
	metadata["uid"] = cr.UID
	content, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	return r.host.Patch(ctx, &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}, client.RawPatch(types.MergePatchType, content), fieldOwner)
}

// findLeftover returns the Secret that register created for a deleted registration. It contains a
// token, and remains if an earlier run was interrupted.
func (r *run) findLeftover(ctx context.Context, all []v1alpha1.ClusterRegistration) (*corev1.Secret, error) {
	name := r.name + "-kubeconfig"
	secret, err := index.FindObject[corev1.Secret](ctx, r.host, client.ObjectKey{Namespace: r.env.Namespace, Name: name})
	used := slices.ContainsFunc(all, func(cr v1alpha1.ClusterRegistration) bool { return cr.Spec.KubeconfigSecretRef.Name == name })
	if secret == nil || used || secret.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue {
		return nil, err
	}
	return secret, nil
}

// finishInMember removes the objects that register created, and reports what remains.
func (r *run) finishInMember(ctx context.Context, cr *v1alpha1.ClusterRegistration) error {
	if cr == nil {
		if r.dry != command.DryRunNone {
			fmt.Fprintf(r.env.Out, "Registration %q no longer exists. This command would delete the objects that `kubectl xylem register` created for it\n", r.name)
			return r.unchanged()
		}
		if err := r.confirmDeregistration(0); err != nil {
			return err
		}
	}
	secret := ""
	switch {
	case cr != nil:
		fmt.Fprintf(r.env.Out, "%q is no longer a member\n", r.name)
		secret = cr.Spec.KubeconfigSecretRef.Name
	case r.leftover != nil:
		secret = r.leftover.Name
	}
	if secret != "" {
		if err := r.removeSecret(ctx, secret); err != nil {
			return fmt.Errorf("%w\nRun this command again to delete the Secret", command.Explain("the host", r.host.Config, err))
		}
	}
	if r.member != nil {
		if err := r.cleanMember(ctx); err != nil {
			return err
		}
	} else {
		r.reportMemberStays("in the member: Xylem's account, permissions and policies. Anybody who has a token for the account can renew it until the account is deleted. To delete all these objects, run `kubectl xylem deregister %s --member-kubeconfig FILE`", r.name)
	}
	for _, line := range r.kept {
		fmt.Fprintf(r.env.Out, "Left %s\n", line)
	}
	return nil
}

func (r *run) reportMemberStays(format string, args ...any) {
	r.kept = append(r.kept, fmt.Sprintf(format, args...))
}

// removeSecret removes the Secret with the kubeconfig if register created it and no
// registration uses it.
func (r *run) removeSecret(ctx context.Context, name string) error {
	var list v1alpha1.ClusterRegistrationList
	if err := r.host.List(ctx, &list); err != nil {
		return fmt.Errorf("list registrations: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.KubeconfigSecretRef.Name == name {
			r.reportMemberStays("in the host: Secret \"%s/%s\", which registration %q also uses", r.env.Namespace, name, list.Items[i].Name)
			return nil
		}
	}
	secret, err := index.FindObject[corev1.Secret](ctx, r.host, client.ObjectKey{Namespace: r.env.Namespace, Name: name})
	if err != nil || secret == nil {
		return err
	}
	if secret.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue {
		r.reportMemberStays("in the host: Secret \"%s/%s\", which this plugin did not create. To delete it, run `kubectl -n %[1]s delete secret %[2]s`", r.env.Namespace, name)
		return nil
	}
	if err := client.IgnoreNotFound(r.host.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})); err != nil {
		return fmt.Errorf("delete Secret \"%s/%s\": %w", r.env.Namespace, name, err)
	}
	return nil
}
