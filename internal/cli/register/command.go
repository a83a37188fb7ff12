package register

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/config"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/member/access"
)

const (
	// nameLimit is the CRD's limit on the length of a name.
	nameLimit = 56
	// Limits on the token lifetime: API servers do not issue tokens with a shorter lifetime, and
	// the member's admission policy does not let the manager request a longer lifetime.
	shortest = 10 * time.Minute
	longest  = 7 * 24 * time.Hour
)

// Values of the flag --print.
const (
	printHost   = "host"
	printMember = "member"
)

// run is one run of the command.
type run struct {
	memberPart
	output command.Output
	admin  command.Member
	spec   specFlags
	// identity lets the manager act as the virtual node.
	identity nodeIdentity

	name, server, serverName string
	dry                      command.DryRun
	// print selects the cluster whose objects a dry run prints.
	print string
	// with selects the optional permissions to grant in the member, by name. shared selects the CSI
	// drivers and Secrets for the permission config.PartShared.
	with   map[string]*bool
	shared sharing
	// overwrite allows overwriting a Secret that somebody else created.
	overwrite bool
	timeout   time.Duration

	host         *command.Cluster
	before       *v1alpha1.ClusterRegistration
	secret       *corev1.Secret
	secretBefore *corev1.Secret
	connected    bool
}

// partUsage contains the usage texts of the flags for optional permissions.
var partUsage = map[string]string{
	config.PartLogs:    "Let the host read logs of Pods in the member (kubectl logs). RBAC cannot select Pods, so the manager's account can read the logs of all Pods in the member.",
	config.PartExec:    "Let the host exec into its Pods in the member, attach to them, and forward their ports. An admission policy limits this to the host's namespaces.",
	config.PartDebug:   "Let the host add ephemeral containers to its Pods in the member (kubectl debug). Attaching to these containers also requires --with-exec.",
	config.PartMetrics: "Let the host read the CPU and memory usage of Pods from the member's metrics API (kubectl top). RBAC cannot select Pods, so the manager's account can read the usage of all Pods in the member.",
}

// NewCommand creates the register command.
func NewCommand(env *command.Env) *cobra.Command {
	r := &run{memberPart: memberPart{Env: env}, with: map[string]*bool{}}
	c := &cobra.Command{
		Use:   "register NAME --member-kubeconfig FILE",
		Short: "Register a cluster as a member, or repair a registration and rotate its token",
		Long: "In the member, create Xylem's namespace, a ServiceAccount for this host, its permissions, and admission policies.\n" +
			"In the host, create the ClusterRegistration NAME and a Secret with a kubeconfig. Then wait until the manager has\n" +
			"connected, and report the result. The token in the Secret is short-lived; the manager renews it.\n\n" +
			"To repair the objects and to rotate the token, run the command again. If a step fails, the command undoes its changes,\n" +
			"or lists those that remain. Rotating the token does not revoke older tokens: they stay valid until they expire, and\n" +
			"anybody who has one of them can keep renewing it. To revoke all tokens, delete the ServiceAccount in the member, and\n" +
			"register the member again.",
		Example: "  kubectl xylem register cluster38 --member-kubeconfig ~/cluster38.kubeconfig\n" +
			"  # Allow kubectl logs, exec, attach, cp and port-forward for Pods in the member (add --with-debug and --with-metrics\n" +
			"  # for kubectl debug and top):\n" +
			"  kubectl xylem register cluster38 --member-kubeconfig ~/cluster38.kubeconfig --with-logs --with-exec\n" +
			"  # Accept only the namespaces of one team:\n" +
			"  kubectl xylem register cluster38 --member-kubeconfig ~/cluster38.kubeconfig --namespaces example.com/team=payments\n" +
			"  # Register a kind cluster whose kubeconfig points to 127.0.0.1:\n" +
			"  kubectl xylem register cluster38 --member-kubeconfig kind.kubeconfig --member-server https://cluster38-control-plane:6443\n" +
			"  # Print the objects that the command would create in the member:\n" +
			"  kubectl xylem register cluster38 --member-kubeconfig ~/cluster38.kubeconfig --dry-run=client -o yaml --print member",
		Args: cobra.MatchAll(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			r.name = args[0]
			return r.registerMember(c.Context())
		},
		ValidArgsFunction: env.CompleteRegistrations,
	}
	flags := c.Flags()
	r.admin.AddFlags(flags, "Path to an admin kubeconfig for the member: the command creates objects in the member as this user.")
	flags.StringVar(&r.server, "member-server", "", "Address at which the manager reaches the member's API server, if it differs from the address in the member's kubeconfig.")
	flags.StringVar(&r.serverName, "member-tls-server-name", "", "Name that the manager expects in the certificate of the member's API server, if it differs from the host name in the address.")
	flags.BoolVar(&r.Prepared, "member-prepared", false, "The member already has the required objects, for example from the chart xylem-member: create nothing there, and only request a token.")
	flags.StringVar(&r.Account, "member-account", command.MemberAccount, "With --member-prepared: name of the manager's ServiceAccount in the member. Its namespace is the value of --xylem-namespace.")
	for part, usage := range partUsage {
		r.with[part] = flags.Bool("with-"+part, false, usage)
	}
	r.shared.addSharingFlags(flags)
	flags.DurationVar(&r.Lifetime, "token-lifetime", 72*time.Hour, fmt.Sprintf("Lifetime of each token, from %s to %s. The manager renews a token well before it expires.", shortest, longest))
	flags.BoolVar(&r.overwrite, "overwrite-secret", false, "Replace the credentials in a Secret that this command did not create.")
	flags.DurationVar(&r.timeout, "timeout", 2*time.Minute, "How long to wait for the manager to connect.")
	r.dry.AddFlag(c, "print the objects without contacting any cluster.", "also let both clusters validate them.")
	flags.StringVar(&r.print, "print", "", "With --dry-run and -o: the cluster whose objects to print, host or member. Never apply the objects of both to the same cluster.")
	r.spec.AddFlags(c)
	r.identity.AddFlags(flags)
	r.output.AddFlags(c)
	return c
}

func (r *run) validateFlags() error {
	switch {
	case len(r.name) > nameLimit || len(validation.IsDNS1123Subdomain(r.name)) > 0:
		return fmt.Errorf("%q is not a valid registration name: use at most %d lower-case letters, digits, '-' and '.', and begin and end with a letter or digit", r.name, nameLimit)
	case !r.admin.Given():
		return errors.New("--member-kubeconfig is missing. Specify an admin kubeconfig for the member, or its context in kubectl's own kubeconfig with --member-context")
	case r.Lifetime < shortest || r.Lifetime > longest:
		return fmt.Errorf("--token-lifetime=%s is out of range: use a duration from %s to %s", r.Lifetime, shortest, longest)
	case r.timeout <= 0:
		return fmt.Errorf("--timeout=%s is out of range: the timeout must be greater than 0", r.timeout)
	case !r.Prepared && (r.Account != command.MemberAccount || r.Env.Namespace != v1alpha1.DefaultNamespace):
		return fmt.Errorf("the command can create only ServiceAccount \"%s/%s\" in a member. To use another name or namespace, install the chart xylem-member in the member, and specify --member-prepared",
			v1alpha1.DefaultNamespace, command.MemberAccount)
	}
	if r.Prepared && r.shared.sharingRequested() {
		return fmt.Errorf("--%s cannot be combined with --member-prepared, which creates nothing in the member. Instead, set shared.drivers in the values of the chart xylem-member", flagDriver)
	}
	if parts := r.describeParts(); r.Prepared && len(parts) > 0 {
		return fmt.Errorf("--with-%s cannot be combined with --member-prepared, which creates nothing in the member. Instead, set %s.enabled in the values of the chart xylem-member",
			strings.Join(parts, ", --with-"), strings.Join(parts, ".enabled, "))
	}
	return errors.Join(r.shared.validateSharing(), r.dry.Validate(), r.validatePrint(), r.spec.Validate(), r.output.Validate())
}

func (r *run) validatePrint() error {
	switch {
	case !slices.Contains([]string{"", printHost, printMember}, r.print):
		return fmt.Errorf("--print=%s is unknown: use host or member", r.print)
	case r.print == "" && r.dry != command.DryRunNone && r.output.Format != "":
		return errors.New("--dry-run with -o needs --print=host or --print=member: applying the member's objects to a host would break the host")
	case r.print != "" && (r.dry == command.DryRunNone || r.output.Format == ""):
		return errors.New("--print has no effect without --dry-run and -o: specify both")
	case r.print == printMember && r.Prepared:
		return errors.New("--print=member prints nothing with --member-prepared, which creates nothing in the member")
	}
	return nil
}

func (r *run) registerMember(ctx context.Context) error {
	if err := r.validateFlags(); err != nil {
		return err
	}
	admin, err := r.admin.Config(r.Env)
	if err != nil {
		return err
	}
	if r.Way, err = memberWayFrom(admin, r.server, r.serverName); err != nil {
		return err
	}
	if r.dry == command.DryRunClient {
		if err := r.planRegistration("HOST-CLUSTER-ID"); err != nil {
			return err
		}
		if !r.Prepared {
			fmt.Fprintln(r.Env.ErrOut, "note: HOST-CLUSTER-ID is a placeholder for the UID of the host's kube-system namespace, which --dry-run=client does not read. To see the UID, use --dry-run=server")
		}
		r.secret = &corev1.Secret{}
		r.secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		r.secret.Namespace, r.secret.Name = r.Env.Namespace, r.name+"-kubeconfig"
		return r.printPlan()
	}
	if r.host, err = r.Env.HostCluster(); err != nil {
		return err
	}
	if r.Member, err = r.Env.NewCluster(admin); err != nil {
		return err
	}
	if err := r.checkClusters(ctx); err != nil {
		return err
	}
	if r.dry == command.DryRunServer {
		return r.printPlan()
	}
	if r.Way.UsesLoopback() {
		fmt.Fprintf(r.Env.ErrOut, "note: %s is a loopback address, at which a manager in a Pod cannot reach the member. Specify another address with --member-server\n", r.Way.Server)
	}
	cr, err := r.createAllObjects(ctx)
	if err != nil {
		if r.connected {
			return fmt.Errorf("%w\nNothing was undone, because the member is connected. Run this command again, or remove the member with `kubectl xylem deregister %s`", err, r.name)
		}
		return r.Journal.RollBackChanges(ctx, err)
	}
	return r.reportConnected(ctx, cr)
}

// planRegistration determines the objects to create in the member. The account is only for this host, unless
// the member is prepared.
func (r *run) planRegistration(hostID string) (err error) {
	if r.Prepared {
		return nil
	}
	r.Account = command.HostAccount(hostID)
	r.Objects, err = config.MemberFor(r.Account, r.describeParts()...)
	if err != nil || !r.shared.sharingRequested() {
		return err
	}
	return config.Share(r.Objects, r.shared.drivers, r.shared.secrets)
}

// describeParts returns the optional permissions that the user requested.
func (r *run) describeParts() []string {
	return slices.DeleteFunc(slices.Clone(config.Parts), func(part string) bool {
		if part == config.PartShared {
			return !r.shared.sharingRequested()
		}
		return !*r.with[part]
	})
}

// checkClusters reads the IDs of both clusters, and checks the user's permissions in them.
func (r *run) checkClusters(ctx context.Context) error {
	hostID, err := r.host.ReadClusterID(ctx)
	if err != nil {
		return command.Explain("the host", r.host.Config, err)
	}
	if err := r.planRegistration(hostID); err != nil {
		return err
	}
	if r.MemberID, err = r.Member.ReadClusterID(ctx); err != nil {
		return command.Explain("the member", r.Member.Config, err)
	}
	if hostID == r.MemberID {
		return fmt.Errorf(access.IsHostFormat+". Specify the member's kubeconfig, and choose the host with --context", r.admin.ContextFlag())
	}
	if err := r.RefuseHosts(ctx); err != nil {
		return err
	}
	if err := r.readRegistration(ctx); err != nil {
		return err
	}
	r.adviseOnNamespaces(ctx)
	r.adviseOnDenied()
	if err := r.Preflight(ctx); err != nil {
		return fmt.Errorf("nothing was changed, because these steps would fail:\n%w", err)
	}
	empty, err := r.Way.Kubeconfig("")
	if err != nil {
		return err
	}
	return r.writeHostObjects(ctx, empty, true)
}

// createAllObjects creates all objects, and records them in the journal.
func (r *run) createAllObjects(ctx context.Context) (*v1alpha1.ClusterRegistration, error) {
	if err := r.PrepareObjects(ctx); err != nil {
		return nil, err
	}
	token, err := r.RequestToken(ctx)
	if err != nil {
		return nil, err
	}
	if r.server == "" { // only the manager needs to reach an address from --member-server
		if err := r.VerifyCredentials(ctx, token); err != nil {
			return nil, err
		}
	}
	kubeconfig, err := r.Way.Kubeconfig(token)
	if err != nil {
		return nil, err
	}
	if err := r.writeHostObjects(ctx, kubeconfig, false); err != nil {
		return nil, err
	}
	w := connectionWait{Env: r.Env, Host: r.host, Name: r.name, First: r.before == nil, Timeout: r.timeout}
	cr, connected, err := w.AwaitReady(ctx, token)
	r.connected = connected
	if err != nil || len(cr.Spec.Nodes) == 0 {
		return cr, err
	}
	return cr, r.writeIdentity(ctx, false) // the virtual nodes did not exist yet
}
