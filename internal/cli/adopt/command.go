package adopt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

const (
	poll = 300 * time.Millisecond
	// restoring limits how long removing the consent label may take after a failure or Ctrl-C.
	restoring = 15 * time.Second
)

// run is one run of the command.
type run struct {
	env    *command.Env
	admin  command.Member
	output command.Output

	registration, leafName     string
	name, class, claim, policy string
	dry                        command.DryRun
	timeout                    time.Duration

	host, member *command.Cluster
	cr           *v1alpha1.ClusterRegistration
	there        mirror.Member
	leaf         *corev1.PersistentVolume
	// asks is the host PV that requests the volume. It has a UID if it already exists.
	asks *corev1.PersistentVolume
}

// NewCommand creates the adopt command.
func NewCommand(env *command.Env) *cobra.Command {
	r := &run{env: env}
	c := &cobra.Command{
		Use:   "adopt MEMBER VOLUME --member-kubeconfig FILE",
		Short: "Use an existing volume of a member as a PersistentVolume in the host",
		Long: "Show PersistentVolume VOLUME in member MEMBER and the PersistentVolume that would represent it in the host, and\n" +
			"check whether the host can adopt the volume. Then label the member's volume for this host, create the host's\n" +
			"PersistentVolume, and wait until Xylem has linked the two. No claim in the member may use the volume: if one does,\n" +
			"first set the volume's reclaim policy to Retain, and then delete that claim. After the adoption, claims in the host\n" +
			"can use the volume as they would in a single cluster: by volumeName, claimRef, selector or class.\n\n" +
			"Xylem never destroys the volume, unless you set --policy=Delete and the volume's policy in the member is also Delete.\n" +
			"To undo the command, delete the PersistentVolume in the host: the data stays in the member.",
		Example: "  # Show the changes, and check whether the host can adopt the volume:\n" +
			"  kubectl xylem adopt cluster38 disk-7 --member-kubeconfig ~/cluster38.kubeconfig --dry-run\n" +
			"  # Adopt the volume for one claim only, and under another name:\n" +
			"  kubectl xylem adopt cluster38 disk-7 --member-kubeconfig ~/cluster38.kubeconfig --name orders-db --claim shop/orders",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			r.registration, r.leafName = args[0], args[1]
			return r.adoptVolume(c.Context(), c.Flags().Changed("class"))
		},
		ValidArgsFunction: env.CompleteRegistrations,
	}
	flags := c.Flags()
	r.admin.AddFlags(flags, "Path to an admin kubeconfig for the member: the command labels the member's volume as this user.")
	flags.StringVar(&r.name, "name", "", "Name of the PersistentVolume in the host. Default: VOLUME.")
	flags.StringVar(&r.class, "class", "", "StorageClass of the PersistentVolume in the host. Default: the class that maps to VOLUME's class in the member.")
	flags.StringVar(&r.claim, "claim", "", "NAMESPACE/NAME of the only claim in the host that can use the volume. Default: any matching claim.")
	flags.StringVar(&r.policy, "policy", string(corev1.PersistentVolumeReclaimRetain), "Reclaim policy of the PersistentVolume in the host: Retain or Delete. With Delete, the volume is destroyed when its claim is deleted, if VOLUME has policy Delete too.")
	flags.DurationVar(&r.timeout, "timeout", time.Minute, "How long to wait for Xylem to link the PersistentVolumes.")
	r.dry.AddFlag(c, "show and check the changes without making them.", "also let both clusters validate the writes.")
	r.output.AddFlags(c)
	return c
}

func (r *run) validateFlags() error {
	namespace, name, ok := strings.Cut(r.claim, "/")
	switch {
	case !r.admin.Given():
		return errors.New("--member-kubeconfig is missing. Specify an admin kubeconfig for the member, or its context in kubectl's own kubeconfig with --member-context: the member's admin must consent to the adoption")
	case r.policy != string(corev1.PersistentVolumeReclaimRetain) && r.policy != string(corev1.PersistentVolumeReclaimDelete):
		return fmt.Errorf("--policy=%s is unknown: use Retain or Delete", r.policy)
	case r.claim != "" && (!ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0):
		return fmt.Errorf("--claim=%s is invalid: use NAMESPACE/NAME", r.claim)
	case r.name != "" && len(validation.IsDNS1123Subdomain(r.name)) > 0:
		return fmt.Errorf("--name=%s is not a valid name for a PersistentVolume: use lower-case letters, digits, '-' and '.'", r.name)
	case r.timeout <= 0:
		return fmt.Errorf("--timeout=%s is out of range: the timeout must be greater than 0", r.timeout)
	}
	return errors.Join(r.dry.Validate(), r.output.Validate())
}

func (r *run) adoptVolume(ctx context.Context, classGiven bool) error {
	if err := r.validateFlags(); err != nil {
		return err
	}
	if err := r.openClusters(ctx); err != nil {
		return err
	}
	if err := r.planAdoption(ctx, classGiven); err != nil {
		return err
	}
	if err := r.printPlan(); err != nil {
		return err
	}
	if err := r.checkVolume(ctx); err != nil {
		return err
	}
	if r.dry == command.DryRunClient {
		return r.unchanged()
	}
	if err := r.writeClaimAndConsent(ctx, true); err != nil {
		return fmt.Errorf("nothing was changed, because a step would fail: %w", err)
	}
	if r.dry == command.DryRunServer {
		return r.unchanged()
	}
	if err := r.writeClaimAndConsent(ctx, false); err != nil {
		return err
	}
	return r.awaitBinding(ctx)
}

func (r *run) unchanged() error {
	if r.output.Format == "" {
		fmt.Fprintf(r.env.Out, "The host can adopt the volume. Nothing was changed (%s)\n", r.dry.DryRunSuffix())
	}
	return nil
}

// volumeWithConsent returns the member's volume with the label that gives the host consent to use it.
func (r *run) volumeWithConsent() *corev1.PersistentVolume {
	after := r.leaf.DeepCopy()
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	after.Labels[v1alpha1.LabelHost] = r.there.HostID
	return after
}

// writeClaimAndConsent labels the member's volume, and then creates the PersistentVolume. If the creation fails,
// write removes the label. The member's volume must not have changed since the check.
func (r *run) writeClaimAndConsent(ctx context.Context, dry bool) error {
	consented := hostpv.ConsentsToAdoption(r.leaf, r.there.HostID)
	if !consented {
		patch := client.MergeFromWithOptions(r.leaf, client.MergeFromWithOptimisticLock{})
		if err := r.member.Patch(ctx, r.volumeWithConsent(), patch, command.PatchOptions(dry)...); err != nil {
			return command.Explain("the member", r.member.Config, fmt.Errorf("label PersistentVolume %q: %w", r.leafName, err))
		}
	}
	if r.asks.UID != "" {
		return nil
	}
	asks := r.asks.DeepCopy()
	err := r.host.Create(ctx, asks, command.CreateOptions(dry)...)
	if err == nil {
		if !dry {
			r.asks = asks
		}
		return nil
	}
	err = command.Explain("the host", r.host.Config, fmt.Errorf("create PersistentVolume %q: %w", asks.Name, err))
	if consented || dry {
		return err
	}
	return errors.Join(err, r.withdrawClaim(ctx))
}

// withdrawClaim removes the label that this run set, even after Ctrl-C.
func (r *run) withdrawClaim(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoring)
	defer cancel()
	volume := &corev1.PersistentVolume{}
	volume.Name = r.leafName
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:null}}}`, r.leaf.UID, v1alpha1.LabelHost))
	if err := r.member.Patch(ctx, volume, patch, command.FieldOwner); err != nil {
		return fmt.Errorf("could not remove the label %s from PersistentVolume %q in the member: %w", v1alpha1.LabelHost, r.leafName, err)
	}
	return nil
}

// awaitBinding waits until Xylem has recorded the volume and stamped it.
func (r *run) awaitBinding(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, poll, r.timeout, true, func(ctx context.Context) (bool, error) {
		var host, leaf corev1.PersistentVolume
		if err := r.host.Get(ctx, client.ObjectKeyFromObject(r.asks), &host); err != nil {
			return false, fmt.Errorf("read PersistentVolume %q: %w", r.asks.Name, err)
		}
		if _, _, uid, ours := hostpv.LeafOfHostVolume(&host); !ours || uid != r.leaf.UID {
			return false, nil
		}
		if err := r.member.Get(ctx, client.ObjectKeyFromObject(r.leaf), &leaf); err != nil {
			return false, fmt.Errorf("read PersistentVolume %q in the member: %w", r.leafName, err)
		}
		_, stamped := mirror.LeafOriginFromHost(r.there.HostID, &leaf)
		return stamped, nil
	})
	if err != nil {
		return fmt.Errorf("PersistentVolume %q exists in the host, but Xylem has not linked it to the member's volume yet: %w. To see why, run `kubectl describe pv %s`", r.asks.Name, err, r.asks.Name)
	}
	if r.output.Format == "" {
		paint := r.env.PaintOf(r.env.Out)
		fmt.Fprintf(r.env.Out, "%s: PersistentVolume %q represents volume %q in member %q. Claims in the host can now use the volume\n", paint.PaintGood("Adopted"), r.asks.Name, r.leafName, r.registration)
	}
	return nil
}
