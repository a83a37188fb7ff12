package doctor

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// Exit codes other than 0. 0 means that doctor found no errors.
const (
	codeErrors    = 1
	codeUnchecked = 2
)

type options struct {
	env      *command.Env
	output   command.Output
	way      ConnectionWay
	problems bool
}

// NewCommand creates the doctor command.
func NewCommand(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation in the host and in members",
		Long: `Check whether Xylem is installed as shipped in this version, and whether everything it needs works: CRD, manager,
permissions, admission policies, CSIDrivers, feature gates, clocks, tokens, the path from the API server to the manager,
DaemonSets on virtual nodes, snapshots, and leftovers of former members. In each member, check the version, clock,
policies, permissions and fence. Each problem is reported with a remedy.

The command changes nothing, and is safe in production: it gets and lists objects in pages, and creates access reviews.
An unreachable member takes two seconds. The command connects to members with the kubeconfigs of their registrations, if
you can read the Secrets that contain them. For one member, you can specify your own kubeconfig (--member-kubeconfig,
--member-context). If it is an admin's kubeconfig, the command also checks the member's policies. If it points to an
unregistered cluster, the command shows what is left in that cluster. The output lists what could not be checked. As a
cluster admin of the host, you can check everything in the host.

The exit code is 0 if there are no errors (warnings are possible), 1 if there are errors, and 2 if the host does not
respond.

-o json and yaml print one object of ` + inspect.APIVersion + `, kind ` + Kind + `, with the fields findings (level, check, cluster, message,
toDo), missing and counts. Later versions may add fields, but never rename fields or change their meaning.`,
		Example: `  kubectl xylem doctor
  kubectl xylem doctor --problems
  kubectl xylem doctor --member-kubeconfig ~/cluster38.kubeconfig
  kubectl xylem doctor -o json | jq -r '.findings[] | select(.level == "Error") | .message'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			checkup, err := o.printCheckup(c.Context())
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

// AddWayFlags adds the flags that select how to connect to members.
func AddWayFlags(c *cobra.Command, way *ConnectionWay) {
	c.Flags().BoolVar(&way.HostOnly, "host-only", false, "Do not use the registrations' kubeconfigs to connect to members.")
	way.AddFlags(c.Flags(), "Your own kubeconfig for a member.")
}

// ExamineInstallation checks the installation.
func ExamineInstallation(ctx context.Context, env *command.Env, way ConnectionWay) (*Checkup, error) {
	f, err := collectFacts(ctx, env, way)
	if err != nil {
		return nil, err
	}
	f.Version = command.Version
	return judgeFacts(f)
}

func (o *options) printCheckup(ctx context.Context) (*Checkup, error) {
	if err := o.output.Validate(); err != nil {
		return nil, err
	}
	checkup, err := ExamineInstallation(ctx, o.env, o.way)
	if err != nil {
		return nil, err
	}
	if o.output.Format != "" {
		return checkup, o.output.Print(o.env.MachineOut(), checkup)
	}
	page{inspect.PageOfCommand(o.env), o.problems}.printCheckup(checkup)
	return checkup, nil
}

// CheckupText returns a checkup as text for a file.
func CheckupText(checkup *Checkup) string {
	var out strings.Builder
	page{Page: inspect.Page{Out: &out}}.printCheckup(checkup)
	return out.String()
}
