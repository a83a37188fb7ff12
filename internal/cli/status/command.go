package status

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// podsShown is the maximum number of Pods in the text output. -o json prints all of them.
const podsShown = 10

type options struct {
	env    *command.Env
	output command.Output
	watch  bool
}

// NewCommand creates the status command.
func NewCommand(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "status",
		Short: "Show an overview of all members: versions, volumes, orphans, tokens and waiting Pods",
		Long: `Show every member with its state, Kubernetes version and virtual node, the number of its volumes (bound,
pending, being deleted, orphaned), and the expiry of the manager's token for it. Then show the conditions that an admin
must check, the waiting Pods, and the number of recently provisioned volumes that
still exist.

The command reads only the host. It needs permission to list ClusterRegistrations, and lists anything else that it could
not read.

-o json and yaml print one object of ` + inspect.APIVersion + `, kind ` + Kind + `, with the fields leaderless, members, pods, provisioned
and missing. Later versions may add fields, but never rename fields or change their meaning. With --watch, they print an
object whenever it changes.`,
		Example: `  kubectl xylem status
  kubectl xylem status --watch
  kubectl xylem status -o json | jq -r '.members[] | select(.ready | not) | .name'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.printStatus(c.Context()) },
	}
	o.output.AddFlags(c)
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "Print the status again whenever it changes, until you press Ctrl-C.")
	return c
}

func (o *options) printStatus(ctx context.Context) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	host, err := o.env.HostCluster()
	if err != nil {
		return err
	}
	current := func() (*Fleet, error) { return readFleet(ctx, host, o.env.Namespace, o.env.Clock.Now()) }
	return command.Watch(ctx, o.env, o.watch, current, o.printFleet)
}

func (o *options) printFleet(f *Fleet) error {
	if o.output.Format != "" {
		return o.output.Print(o.env.MachineOut(), f)
	}
	p := page{inspect.PageOfCommand(o.env)}
	if o.watch {
		p.PrintWatchTime()
	}
	p.printFleet(f)
	return nil
}

// page prints the fleet as text.
type page struct{ inspect.Page }

func (p page) printFleet(f *Fleet) {
	if len(f.Members) == 0 {
		fmt.Fprintln(p.Out, "No cluster is registered. Register one with `kubectl xylem register NAME`.")
		return
	}
	p.printMembers(f.Members)
	if f.Leaderless != "" {
		p.Paragraph("! ", p.Paint.PaintBad, nil, f.Leaderless+". The states of the members may be outdated. Run `kubectl xylem doctor`")
	}
	for _, m := range f.Members {
		for _, c := range m.Problems {
			p.Paragraph("! ", p.Paint.PaintBad, nil, fmt.Sprintf("%s: %s=%s %s (%s): %s", m.Name, c.Type, c.Status, c.Reason, p.TimeAgo(c.Since.Time), c.Message))
		}
	}
	if len(f.Pods) > 0 {
		fmt.Fprintf(p.Out, "\nWaiting Pods: %d\n", len(f.Pods))
		w := printers.GetNewTabWriter(p.Out)
		for _, pod := range f.Pods[:min(podsShown, len(f.Pods))] {
			fmt.Fprintln(w, strings.Join([]string{"  " + pod.Namespace + "/" + pod.Name, pod.Reason, p.TimeAgo(pod.Since.Time)}, "\t"))
		}
		_ = w.Flush()
		if more := len(f.Pods) - podsShown; more > 0 {
			fmt.Fprintf(p.Out, "  and %d more\n", more)
		}
		fmt.Fprintf(p.Out, "  kubectl xylem why pod %s -n %s\n", f.Pods[0].Name, f.Pods[0].Namespace)
	}
	if !f.couldNotRead("PersistentVolumes") {
		fmt.Fprintf(p.Out, "\nVolumes provisioned that still exist: %d in the last 10 minutes, %d in the last hour, %d in the last day\n", f.Provisioned.TenMinutes, f.Provisioned.Hour, f.Provisioned.Day)
	}
	for i, m := range f.Missing {
		if i == 0 {
			fmt.Fprintln(p.Out)
		}
		p.Paragraph("! ", p.Paint.PaintBad, nil, fmt.Sprintf("could not read %s: %s", m.What, m.Why))
	}
}

func (f *Fleet) couldNotRead(what string) bool {
	for _, m := range f.Missing {
		if m.What == what {
			return true
		}
	}
	return false
}

func (p page) printMembers(members []Member) {
	w := printers.GetNewTabWriter(p.Out)
	fmt.Fprintln(w, "MEMBER\tSTATE\tVERSION\tNODE\tBOUND\tPENDING\tDELETING\tORPHANED\tTOKEN\tAGE")
	ready := 0
	for _, m := range members {
		if m.Ready {
			ready++
		}
		v := m.Volumes
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", m.Name, m.Reason, textOrNone(m.Version), m.shownNode(), v.Bound, v.Pending, v.Deleting, v.Orphaned,
			p.tokenTimeLeft(m.TokenExpires), duration.HumanDuration(p.Now.Sub(m.Created.Time)))
	}
	_ = w.Flush()
	fmt.Fprintf(p.Out, "%d of %d ready\n", ready, len(members))
}

// shownNode returns the name of the member's node or, with spec.nodes, how many of its nodes are ready.
func (m Member) shownNode() string {
	if m.hasGroups {
		return fmt.Sprintf("%d/%d *.%s", m.NodesReady, m.Nodes, m.Node)
	}
	return m.Node
}

func textOrNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func (p page) tokenTimeLeft(expires *metav1.Time) string {
	switch {
	case expires == nil:
		return "-"
	case !expires.After(p.Now):
		return "expired"
	}
	return duration.HumanDuration(expires.Sub(p.Now)) + " left"
}
