package tree

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

type options struct {
	env    *command.Env
	output command.Output
	way    inspect.ConnectionWay
	// problems hides healthy objects. watch prints the tree again whenever it changes.
	problems, watch bool
}

// NewCommand creates the tree command.
func NewCommand(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "tree KIND NAME | KIND/NAME",
		Short: "Show where the volumes of a claim or workload really are",
		Long: `Show a claim, Pod, workload, volume, snapshot or namespace in the host with all objects that belong to it: host claim,
host volume, member, leaf claim, leaf volume with the real driver and handle, and the Pods in both clusters. The tree
includes states, ages, and relevant conditions and events.

Permission to read the namespace's objects in the host is sufficient to show the host's records of the member's objects.
To read the member itself, specify your own kubeconfig for it (--member-kubeconfig, --member-context). You can also use
--live to read the member with its registration's kubeconfig, if you can read the Secret that contains the kubeconfig.
The command lists what it could not read, and shows the rest.

-o json and yaml print one object of ` + inspect.APIVersion + `, kind ` + inspect.TreeKind + `. Its fields are: root, a node; missing, what could
not be read (what, cluster, why); recorded, the members that were not read. A node has kind, namespace, name,
cluster (a registration, absent for the host), state, health (Good, Waiting, Bad or Unknown), created, details,
driver, handle, conditions, events and children. Later versions may add fields, but never rename fields or change their
meaning. With --watch, they print an object whenever it changes.`,
		Example: `  kubectl xylem tree pvc/data -n shop
  kubectl xylem tree statefulset/db -n shop --watch
  kubectl xylem tree namespace shop --problems
  kubectl xylem tree pv/pvc-7f0c2a7e
  kubectl xylem tree pod web-0 -n shop --live
  kubectl xylem tree pvc data --member-kubeconfig ~/cluster38.kubeconfig
  kubectl xylem tree pvc data -o json | jq -r '.. | .handle? // empty'`,
		Args:              arguments,
		ValidArgsFunction: o.completeSubjects,
		RunE: func(c *cobra.Command, args []string) error {
			asked, err := parseTarget(args)
			if err != nil {
				return err
			}
			return o.showTree(c.Context(), asked)
		},
	}
	o.output.AddFlags(c)
	c.Flags().BoolVar(&o.problems, "problems", false, "Show only unhealthy objects, and the path to them.")
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "Print the tree again whenever it changes, until you press Ctrl-C.")
	AddWayFlags(c, &o.way)
	return c
}

// AddWayFlags adds the flags that select how to connect to members.
func AddWayFlags(c *cobra.Command, way *inspect.ConnectionWay) {
	c.Flags().BoolVar(&way.Live, "live", false, "Read members with their registrations' kubeconfigs. This requires permission to read the Secrets that contain them.")
	way.AddFlags(c.Flags(), "Your own kubeconfig for the member.")
}

// Asked is what is known about the requested object.
type Asked struct {
	// Owner is the requested workload, or nil.
	Owner *inspect.Node
	// Facts are those of the requested object, or of each Pod of a workload that is not ready.
	Facts []*inspect.Facts
}

// ReadSubject reads the objects around the requested object. The arguments are those of the tree command.
func ReadSubject(ctx context.Context, env *command.Env, way inspect.ConnectionWay, args []string) (*Asked, error) {
	asked, err := parseTarget(args)
	if err != nil {
		return nil, err
	}
	namespace, _, err := env.Host.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("determine the namespace: %w", err)
	}
	host, err := env.HostCluster()
	if err != nil {
		return nil, err
	}
	if asked.kind == kindNamespace {
		return nil, fmt.Errorf("%s %q has no diagnosis of its own. Run the command for one of its workloads or Pods. To list the unhealthy ones, run `kubectl xylem tree %s --problems`", asked.kind, asked.name, strings.Join(args, " "))
	}
	r, result := reading{env: env, host: host, namespace: namespace, way: way}, &Asked{}
	parts := []target{asked}
	if !asked.isSingleObject() {
		if result.Owner, parts, err = r.readParts(ctx, asked); err != nil || result.Owner.Health == inspect.Good {
			return result, err
		}
	}
	for _, part := range parts {
		facts, err := r.readFacts(ctx, part)
		if apierrors.IsNotFound(err) && result.Owner != nil {
			continue // deleted after it was listed
		}
		if err != nil {
			return nil, err
		}
		if asked.kind == inspect.KindVolume && facts.Claims[0].Key.Name == "" {
			return nil, fmt.Errorf("no claim is bound to PersistentVolume %q. `kubectl xylem tree pv %[1]s` shows the volume", asked.name)
		}
		result.Facts = append(result.Facts, facts)
	}
	return result, nil
}

// CompleteSubjects completes kinds, and then names of the host's objects.
func CompleteSubjects(env *command.Env) cobra.CompletionFunc {
	return (&options{env: env}).completeSubjects
}

func arguments(c *cobra.Command, args []string) error {
	if _, err := parseTarget(args); err != nil {
		return fmt.Errorf("%w\nSee '%s --help'", err, c.CommandPath())
	}
	return nil
}

func (o *options) showTree(ctx context.Context, asked target) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	namespace, _, err := o.env.Host.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("determine the namespace: %w", err)
	}
	if asked.kind == kindNamespace {
		namespace = asked.name
	}
	host, err := o.env.HostCluster()
	if err != nil {
		return err
	}
	r := reading{env: o.env, host: host, namespace: namespace, way: o.way}
	well := false
	read := func() (*inspect.Tree, error) {
		t, err := r.treeOfTarget(ctx, asked)
		well = err == nil && o.problems && !keepOnlyProblems(&t.Root)
		return t, err
	}
	return command.Watch(ctx, o.env, o.watch, read, func(t *inspect.Tree) error { return o.printOutput(t, asked, well) })
}

// printOutput prints the tree. well means that the user requested only problems, and there are none.
func (o *options) printOutput(t *inspect.Tree, asked target, well bool) error {
	if o.output.Format != "" {
		return o.output.Print(o.env.MachineOut(), t)
	}
	if well {
		fmt.Fprintf(o.env.Out, "%s %q: no problems\n", asked.kind, asked.name)
		return nil
	}
	p := page{inspect.PageOfCommand(o.env)}
	if o.watch {
		p.PrintWatchTime()
	}
	p.printTree(t)
	return nil
}

// completeSubjects completes kinds, and names of the host's objects.
func (o *options) completeSubjects(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) == 0 {
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
	namespace, _, err := o.env.Host.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	host, err := o.env.HostCluster()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return namesOfKind(c.Context(), host, namespace, kinds[args[0]]), cobra.ShellCompDirectiveNoFileComp
}
