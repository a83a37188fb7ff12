package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xylem-io/xylem/internal/cli/adopt"
	"github.com/xylem-io/xylem/internal/cli/bundle"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/deregister"
	"github.com/xylem-io/xylem/internal/cli/doctor"
	"github.com/xylem-io/xylem/internal/cli/move"
	"github.com/xylem-io/xylem/internal/cli/register"
	"github.com/xylem-io/xylem/internal/cli/status"
	"github.com/xylem-io/xylem/internal/cli/tree"
	"github.com/xylem-io/xylem/internal/cli/why"
)

// name is the plugin's name as users type it.
const name = "kubectl xylem"

// Run runs the plugin with the arguments, and returns the exit code: 0 on success. After an error,
// which Run reports, the exit code is the error's own code, or 1 if it has none.
func Run(ctx context.Context, env *command.Env, args []string) int {
	ctrl.SetLogger(logr.Discard()) // the plugin reports errors itself, but without a logger, controller-runtime prints a stack trace after 30 s
	root := NewCommand(env)
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		var silent command.Silent
		if !errors.As(err, &silent) {
			fmt.Fprintf(env.ErrOut, "%s %v\n", env.PaintOf(env.ErrOut).PaintBad("error:"), err)
		}
		var coded command.Coded
		if errors.As(err, &coded) {
			return coded.Code
		}
		return 1
	}
	return 0
}

// NewCommand creates the plugin's root command.
func NewCommand(env *command.Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-xylem",
		Short: "Storage that follows workloads across clusters",
		Long: "Xylem makes one PersistentVolumeClaim work across clusters: users create Pods and claims in the host, but the\n" +
			"Pods run and the disks are provisioned in members. These commands are for admins and users of the host. kubectl's\n" +
			"current context must point to the host.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		SilenceErrors: true, // Run prints errors
		SilenceUsage:  true,
		// Without Args, cobra checks for subcommands itself and suggests similar ones.
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(usage)
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.ErrOut)
	env.AddFlags(root.PersistentFlags())
	for _, add := range []func(*command.Env) *cobra.Command{
		register.NewCommand, deregister.NewCommand, adopt.NewCommand, move.NewCommand, tree.NewCommand, why.NewCommand, status.NewCommand, doctor.NewCommand,
		bundle.NewCommand, newVersion,
	} {
		root.AddCommand(add(env))
	}
	root.AddCommand(newOptions())
	// cobra adds the commands help and completion
	return root
}
