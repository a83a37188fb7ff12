package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/move/objects"
	"github.com/xylem-io/xylem/internal/cli/move/transfer"
)

// DefaultImage is the default of --image. It contains all programs that the scripts of package
// transfer run.
const DefaultImage = "docker.io/library/debian:13.2-slim"

// options contains the flags, and the client of the run.
type options struct {
	Options
	env *command.Env

	undo, deleteOld bool
	timeout         time.Duration
	ordinal         int
	host            *objects.Client
}

// NewCommand creates the move command.
func NewCommand(env *command.Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "move",
		Short: "Move the data of a claim to another member",
		Long: "Move the data of a claim, or of the claims of a StatefulSet, to another member while no Pod uses them.\n\n" +
			"The claim keeps its name, labels and annotations. The command copies the data through two Pods, one in each\n" +
			"member, compares both disks by checksum, and only then switches the claim to the copy. The command keeps the old\n" +
			"disk, with policy Retain, until you run it with --delete-source.\n\n" +
			"If the command is interrupted or fails, run it again to continue, or with --undo to revert the move.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newMoveOfClaim(env), newStatefulSet(env))
	return c
}

func newMoveOfClaim(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "pvc NAME --to MEMBER",
		Short: "Move the data of one claim",
		Long: "Move the data of the claim NAME to the member MEMBER while no Pod uses the claim. The command first prints its\n" +
			"plan, and checks everything that it can check without making changes.\n\n" +
			"Files keep their owners, modes, times, links, holes, access control lists, user attributes and capabilities.\n" +
			"A block device is copied byte by byte. An interrupted copy starts from the beginning.\n\n" +
			"You need permission to change PersistentVolumes, and to exec into Pods of the namespace: both members must grant\n" +
			"Xylem exec (kubectl xylem register NAME --member-kubeconfig FILE --with-exec). The Pods run as root, so the namespace\n" +
			"must not enforce the Pod Security level restricted.",
		Example: "  kubectl xylem move pvc orders-db --to cluster39 --dry-run -n shop\n" +
			"  kubectl xylem move pvc orders-db --to cluster39 -n shop\n" +
			"  # Revert to the old disk:\n" +
			"  kubectl xylem move pvc orders-db --undo -n shop\n" +
			"  # Destroy the old disk, after checking that the application works with the copy:\n" +
			"  kubectl xylem move pvc orders-db --delete-source -n shop",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.openHost(); err != nil {
				return err
			}
			return o.moveClaims(c.Context(), args)
		},
	}
	o.addMoveFlags(c)
	return c
}

func (o *options) addMoveFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&o.To, "to", "", "Name of the ClusterRegistration of the member to move the data to.")
	flags.BoolVar(&o.undo, "undo", false, "Switch the claim back to its old disk. This destroys the copy, unless Pods may have written to it, the old disk was deleted, or the host or a member was restored from a backup after the move began.")
	flags.BoolVar(&o.deleteOld, "delete-source", false, "Destroy the old disks that earlier moves of the claim kept.")
	flags.StringVar(&o.Image, "image", DefaultImage, "Image of the two Pods. The image must contain a POSIX shell, GNU tar with extended attributes, GNU coreutils and findutils.")
	flags.BoolVarP(&o.Yes, "yes", "y", false, "Do not prompt for confirmation.")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait for the clusters in each step. Copying and comparing have no time limit.")
	err := c.RegisterFlagCompletionFunc("to", func(c *cobra.Command, _ []string, part string) ([]string, cobra.ShellCompDirective) {
		return o.env.CompleteRegistrations(c, nil, part)
	})
	if err != nil {
		panic(err) // impossible: the flag was just added
	}
	o.DryRun.AddFlag(c, "print the plan and check the prerequisites, without making changes.", "also let the host validate the first writes.")
}

// openHost validates the flags, and creates the client.
func (o *options) openHost() error {
	switch {
	case o.undo && o.deleteOld:
		return errors.New("--undo and --delete-source cannot be used together: one needs the disk that the other destroys")
	case (o.undo || o.deleteOld) && o.To != "":
		return errors.New("--to cannot be used with --undo or --delete-source. Omit --to")
	case !o.undo && !o.deleteOld && o.To == "":
		return errors.New("--to is missing. Specify the member to move the data to; `kubectl get clusterregistrations` lists the members")
	case o.timeout <= 0:
		return fmt.Errorf("--timeout=%s is out of range: use a duration greater than 0", o.timeout)
	case o.Image == "":
		return errors.New("--image is empty. Omit the flag to use the default")
	}
	if err := o.DryRun.Validate(); err != nil {
		return err
	}
	cluster, err := o.env.HostCluster()
	if err != nil {
		return err
	}
	namespace, _, err := o.env.Host.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("find the namespace (--namespace): %w", err)
	}
	o.host = &objects.Client{Cluster: cluster, Env: o.env, Namespace: namespace, Timeout: o.timeout}
	o.ID, o.Shell = objects.NewMoveID(), transfer.Shell{Config: cluster.Config, Namespace: namespace}
	return nil
}

// moveClaims runs the command for each claim, one after another.
func (o *options) moveClaims(ctx context.Context, claims []string) error {
	act := Move
	switch {
	case o.undo:
		act = UndoMove
	case o.deleteOld:
		act = DestroyOldDisks
	}
	idle := 0
	for i, name := range claims {
		err := act(ctx, o.host, o.Options, name)
		switch {
		case err == nil:
		case len(claims) == 1:
			return err
		case errors.As(err, &NothingToDo{}):
			o.host.ReportLine("Nothing to do for claim %q: %v", name, err)
			if idle++; idle == len(claims) {
				return err
			}
		default:
			return fmt.Errorf("claim %q (%d of %d): %w", name, i+1, len(claims), err)
		}
	}
	return nil
}
