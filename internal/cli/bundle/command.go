package bundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/doctor"
	"github.com/xylem-io/xylem/internal/wording"
)

type options struct {
	env  *command.Env
	way  doctor.ConnectionWay
	file string
	// logSince and logLimit limit the logs of each container.
	logSince time.Duration
	logLimit int64
}

// logLimit is the default of --log-limit.
const logLimit = 10 << 20

// NewCommand creates the support-bundle command.
func NewCommand(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:     "support-bundle",
		Aliases: []string{"bundle"},
		Short:   "Collect what a bug report needs, without secrets",
		Long: `Write an archive that helps somebody else diagnose a problem. It contains the findings of kubectl xylem doctor,
versions, registrations, virtual nodes, classes and policies; Xylem's claims, volumes, Pods and snapshots in the host
and in members, with their events; and the manager's logs and metrics.

The archive contains no data from Secrets or ConfigMaps. The command reads no Secrets except the members' kubeconfigs.
It keeps only fields that are known to be harmless: no commands, and no values of environment variables, third-party
annotations or class parameters. It removes all credentials that it recognizes in logs and messages. It keeps object
names, labels, images and addresses, so read the archive before you publish it.

The command changes nothing in the clusters, and connects to members in the same way as kubectl xylem doctor.
missing.yaml lists what could not be read.`,
		Example: `  kubectl xylem support-bundle
  kubectl xylem support-bundle --file /tmp/report.tar.gz --log-since 2h
  kubectl xylem support-bundle --member-kubeconfig ~/cluster38.kubeconfig`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.writeBundle(c.Context()) },
	}
	c.Flags().StringVarP(&o.file, "file", "f", "", "Path of the archive. The file must not exist yet. Default: xylem-support-TIME.tar.gz in the current directory.")
	c.Flags().DurationVar(&o.logSince, "log-since", 24*time.Hour, "Age of the oldest line to include from the manager's logs.")
	c.Flags().Int64Var(&o.logLimit, "log-limit", logLimit, "Maximum size of each container's log, in bytes.")
	doctor.AddWayFlags(c, &o.way)
	return c
}

func (o *options) validateFlags() error {
	switch {
	case o.logSince <= 0:
		return fmt.Errorf("--log-since=%s is out of range: use a duration greater than 0", o.logSince)
	case o.logLimit <= 0:
		return fmt.Errorf("--log-limit=%d is out of range: use a number greater than 0", o.logLimit)
	}
	return nil
}

func (o *options) writeBundle(ctx context.Context) (err error) {
	if err := o.validateFlags(); err != nil {
		return err
	}
	sources, err := doctor.OpenSources(ctx, o.env, o.way)
	if err != nil {
		return err
	}
	name := "xylem-support-" + o.env.Clock.Now().UTC().Format("20060102-150405")
	if o.file == "" {
		o.file = name + ".tar.gz"
	}
	file, err := os.OpenFile(o.file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("file %q already exists. Specify another one with --file", o.file)
	}
	if err != nil {
		return fmt.Errorf("create the archive: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(o.file) // otherwise, an incomplete archive would look complete
		}
	}()
	b := newBundle(file, name, o.env.Clock.Now(), sources.Secrets)
	err = errors.Join(o.collectFiles(ctx, b, sources), b.closeArchive(), file.Close())
	if err != nil {
		return fmt.Errorf("write %q: %w", o.file, err)
	}
	fmt.Fprintf(o.env.Out, "%s: %s\n", o.file, strings.Join(b.summaryLines(), ", "))
	if len(b.missing) > 0 {
		fmt.Fprintf(o.env.Out, "Could not read %s. For the causes, see %s in the archive.\n", wording.CountNoun(len(b.missing), "item"), filepath.Join(name, missingFile))
	}
	fmt.Fprintln(o.env.Out, "Read the archive before you publish it. It contains names, labels, images, addresses and log lines from your clusters.")
	return nil
}
