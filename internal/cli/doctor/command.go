package doctor

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/doctor/collect"
	"github.com/xylem-io/xylem/internal/cli/doctor/judge"
	"github.com/xylem-io/xylem/internal/cli/tree/model"
)

// Exit codes other than 0, which means that there is no error.
const (
	codeErrors    = 1
	codeUnchecked = 2
)

type options struct {
	env      *command.Env
	output   command.Output
	way      collect.Way
	problems bool
}

// NewCommand creates the command doctor.
func NewCommand(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation in the host and in members",
		Long: `Check whether Xylem is installed as this version ships it, and whether what it needs works: definition, manager,
permissions, admission policies, CSIDrivers, feature gates, clocks, tokens, the path from the API server to the manager,
DaemonSets on virtual nodes, snapshots, and what earlier members left over; and in each member its version, clock,
policies, permissions and fence. Each finding has a remedy.

It changes nothing, and is safe in production: it gets and lists objects, page by page, and asks the API servers who
may do what. A member that is away costs two seconds. Members are read with their registrations' kubeconfigs, if you
may read those Secrets, and one of them with your own (--member-kubeconfig, --member-context): as its admin, you see
its policies too. That one may be a cluster that is not registered, to see what is left there. What cannot be checked
is named. As a cluster admin of the host, you can check everything there.

The exit code is 0 if there is no error (there may be warnings), 1 if there is one, and 2 if the host does not respond.

-o json and yaml print one object of ` + model.APIVersion + `, kind ` + judge.Kind + `, with the fields findings (level, check, cluster, message,
toDo), missing and counts. Fields may be added, and keep their names and meaning.`,
		Example: `  kubectl xylem doctor
  kubectl xylem doctor --problems
  kubectl xylem doctor --member-kubeconfig ~/cluster38.kubeconfig
  kubectl xylem doctor -o json | jq -r '.findings[] | select(.level == "Error") | .message'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			checkup, err := o.run(c.Context())
			switch {
			case err != nil:
				return command.Coded{Code: codeUnchecked, Err: err}
			case checkup.Counts.Errors > 0:
				return command.Coded{Code: codeErrors, Err: command.Silent{}}
			}
			return nil
		},
	}
	o.output.AddFlags(c)
	c.Flags().BoolVar(&o.problems, "problems", false, "Show only problems.")
	AddWayFlags(c, &o.way)
	return c
}

// AddWayFlags adds the flags that select how members are read.
func AddWayFlags(c *cobra.Command, way *collect.Way) {
	c.Flags().BoolVar(&way.HostOnly, "host-only", false, "Do not read members with their registrations' kubeconfigs.")
	c.Flags().StringVar(&way.Kubeconfig, "member-kubeconfig", "", "Your own kubeconfig of a member.")
	c.Flags().StringVar(&way.Context, "member-context", "", "The context in it, or else in kubectl's own kubeconfig, that leads to the member.")
}

// Examine checks the installation.
func Examine(ctx context.Context, env *command.Env, way collect.Way) (*judge.Checkup, error) {
	f, err := collect.Facts(ctx, env, way)
	if err != nil {
		return nil, err
	}
	f.Version = command.Version
	return judge.Of(f)
}

func (o *options) run(ctx context.Context) (*judge.Checkup, error) {
	if err := o.output.Validate(); err != nil {
		return nil, err
	}
	checkup, err := Examine(ctx, o.env, o.way)
	if err != nil {
		return nil, err
	}
	if o.output.Format != "" {
		return checkup, o.output.Print(o.env.MachineOut(), checkup)
	}
	fmt.Fprint(o.env.Out, page{paint: o.env.PaintOf(o.env.Out), width: o.env.Width(o.env.Out), problems: o.problems}.print(checkup))
	return checkup, nil
}

// Text prints a checkup as a file for people.
func Text(checkup *judge.Checkup) string { return page{}.print(checkup) }
