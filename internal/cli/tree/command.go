package tree

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/tree/gather"
	"github.com/xylem-io/xylem/internal/cli/tree/model"
	"github.com/xylem-io/xylem/internal/cli/tree/render"
)

// kinds that a tree may begin with, by what users type.
var kinds = map[string]string{
	"pvc": gather.KindClaim, "pvcs": gather.KindClaim, "persistentvolumeclaim": gather.KindClaim, "persistentvolumeclaims": gather.KindClaim,
	"pod": gather.KindPod, "pods": gather.KindPod, "po": gather.KindPod,
}

type options struct {
	env    *command.Env
	output command.Output
	way    gather.Way
}

// NewCommand is the command tree.
func NewCommand(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "tree (pvc | pod) NAME",
		Short: "Show where a claim's, or a Pod's, volume really is",
		Long: `Show a claim or a Pod of the host with all that belongs to it: host claim, host volume, member, claim and
volume there with the real driver and handle, and the Pods on both sides; with states, ages, and the conditions
and events that matter.

The rights to read the namespace's objects in the host are enough. Of the member, the host's own records are
shown then. The member itself is read with your kubeconfig of it (--member-kubeconfig, --member-context), or,
with --live, with that of its registration, if you may read that Secret. What cannot be read is named, and the
rest is shown.

-o json and yaml print one object of ` + model.APIVersion + `, kind ` + model.Kind + `. Its fields are: root, a node; missing, what could
not be read (what, cluster, why); recorded, the members that were not read. A node has kind, namespace, name,
cluster (a registration, absent for the host), state, health (Good, Waiting, Bad or Unknown), created, details,
driver, handle, conditions, events and children. Fields may be added, and keep their names and meaning.`,
		Example: `  kubectl xylem tree pvc data -n shop
  kubectl xylem tree pod web-0 -n shop --live
  kubectl xylem tree pvc data --member-kubeconfig ~/cluster38.kubeconfig
  kubectl xylem tree pvc data -o json | jq -r '.. | .handle? // empty'`,
		Args:              arguments,
		ValidArgsFunction: o.complete,
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), kinds[args[0]], args[1])
		},
	}
	o.output.AddFlags(c)
	c.Flags().BoolVar(&o.way.Live, "live", false, "Read members with their registrations' kubeconfigs, if you may read those Secrets in the host.")
	c.Flags().StringVar(&o.way.Kubeconfig, "member-kubeconfig", "", "Your own kubeconfig of the member.")
	c.Flags().StringVar(&o.way.Context, "member-context", "", "The context in it, or else in kubectl's own kubeconfig, that leads to the member.")
	return c
}

func arguments(c *cobra.Command, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("which claim or Pod? %s\nSee '%s --help'", c.UseLine(), c.CommandPath())
	}
	if kinds[args[0]] == "" {
		return fmt.Errorf("no tree begins with a %q: pvc or pod\nSee '%s --help'", args[0], c.CommandPath())
	}
	return nil
}

func (o *options) run(ctx context.Context, kind, name string) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	namespace, _, err := o.env.Host.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("find the namespace: %w", err)
	}
	host, err := o.env.HostCluster()
	if err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	g := gather.New(ctx, host, o.env.Clock.Now())
	read := g.OfClaim
	if kind == gather.KindPod {
		read = g.OfPod
	}
	if err := read(ctx, key); err != nil {
		return err
	}
	if err := g.ReadMembers(ctx, o.env, o.way); err != nil {
		return err
	}
	t := build(&g.Facts)
	if o.output.Format != "" {
		return o.output.Print(o.env.MachineOut(), t)
	}
	render.Page{Width: o.env.Width(o.env.Out), Paint: o.env.PaintOf(o.env.Out), Now: g.Now}.Print(o.env.Out, t)
	return nil
}

// complete proposes kinds, and names of the host's.
func (o *options) complete(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return []cobra.Completion{"pvc", "pod"}, cobra.ShellCompDirectiveNoFileComp
	case 1:
		return o.names(c.Context(), kinds[args[0]]), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func (o *options) names(ctx context.Context, kind string) []cobra.Completion {
	namespace, _, err := o.env.Host.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil
	}
	host, err := o.env.HostCluster()
	if err != nil {
		return nil
	}
	var names []cobra.Completion
	switch kind {
	case gather.KindClaim:
		var list corev1.PersistentVolumeClaimList
		if host.List(ctx, &list, client.InNamespace(namespace)) == nil {
			for i := range list.Items {
				names = append(names, list.Items[i].Name)
			}
		}
	case gather.KindPod:
		var list corev1.PodList
		if host.List(ctx, &list, client.InNamespace(namespace)) == nil {
			for i := range list.Items {
				names = append(names, list.Items[i].Name)
			}
		}
	}
	slices.Sort(names)
	return names
}
