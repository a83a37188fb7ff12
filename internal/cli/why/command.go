package why

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/cli/tree"
)

// Exit codes other than 0. 0 means that there is no problem.
const (
	codeNotWell = 1
	codeError   = 2
)

type options struct {
	env    *command.Env
	output command.Output
	way    inspect.ConnectionWay
}

// NewCommand creates the why command.
func NewCommand(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "why KIND NAME | KIND/NAME",
		Short: "Show why a Pod is not running, or a claim is not bound, and what to do",
		Long: `Show why a Pod is not running, a claim is not bound, a snapshot is not ready or a workload lacks Pods, and what to do, in
one sentence each. For a workload, that is the first of its Pods that has a problem. The evidence follows: objects, conditions and events from both clusters. If there are several causes, fix the first one first, because it often
leads to the others. For a Service, the command shows why clients in the host or in members don't reach it, and for a
PodDisruptionBudget (pdb), why it blocks evictions, or does not prevent them in a member. For a claim, the output ends with the duration of each step, where known. With --live, the output
includes the steps in the member.

The exit code is 0 if the Pod runs, the claim is bound or the object is ready, 1 if it waits or has a problem, and 2 if the command could not
determine this. The command needs the same permissions as kubectl xylem tree, and has the same flags for reading the
member itself.

-o json and yaml print one object of ` + inspect.APIVersion + `, kind ` + Kind + `, with the fields subject, verdict (Well, Waiting
or Problem), summary, toDo, causes, evidence, times, missing and recorded. Later versions may add fields, but never rename
fields or change their meaning.`,
		Example: `  kubectl xylem why pod web-0 -n shop
  kubectl xylem why pvc/data -n shop --live
  kubectl xylem why deployment/web -n shop
  kubectl xylem why volumesnapshot/nightly -n shop
  kubectl xylem why service/db -n shop
  kubectl xylem why pdb/db -n shop
  until kubectl xylem why pod/web-0; do sleep 5; done`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return command.Coded{Code: codeError, Err: fmt.Errorf("which object? Specify KIND NAME or KIND/NAME, such as pod/web-0\nSee '%s --help'", c.CommandPath())}
			}
			return nil
		},
		ValidArgsFunction: tree.CompleteSubjects(env),
		RunE: func(c *cobra.Command, args []string) error {
			well, err := o.printDiagnosis(c, args)
			switch {
			case err != nil:
				return command.Coded{Code: codeError, Err: err}
			case !well:
				return command.Coded{Code: codeNotWell, Err: command.Silent{}}
			}
			return nil
		},
	}
	o.output.AddFlags(c)
	tree.AddWayFlags(c, &o.way)
	return c
}

func (o *options) printDiagnosis(c *cobra.Command, args []string) (well bool, err error) {
	if err := o.output.Validate(); err != nil {
		return false, err
	}
	d, err := o.diagnose(c.Context(), args)
	if err != nil {
		return false, err
	}
	well = d.Verdict == Well
	if o.output.Format != "" {
		return well, errors.Join(o.output.Print(o.env.MachineOut(), d))
	}
	page{inspect.PageOfCommand(o.env)}.printDiagnosis(d)
	return well, nil
}

func (o *options) diagnose(ctx context.Context, args []string) (*Diagnosis, error) {
	if kind, name := parseSelecting(args); kind != "" {
		return o.diagnoseSelection(ctx, kind, name)
	}
	asked, err := tree.ReadSubject(ctx, o.env, o.way, args)
	if err != nil {
		return nil, err
	}
	if asked.Owner != nil {
		return DiagnoseWorkload(asked.Owner, asked.Facts), nil
	}
	return DiagnoseSubject(asked.Facts[0]), nil
}

// page prints a diagnosis as text.
type page struct{ inspect.Page }

func (p page) printDiagnosis(d *Diagnosis) {
	p.Paragraph("", nil, p.paintOfVerdict(d.Verdict), inspect.EndSentence(d.Summary))
	if d.ToDo != "" {
		p.Paragraph("", nil, p.Paint.Strong, "To do: "+d.ToDo)
	}
	others := d.Causes
	if d.Verdict == Problem {
		others = others[1:] // the summary describes the first
	}
	printed := sets.New(d.ToDo)
	for i, c := range others {
		if i == 0 {
			fmt.Fprintln(p.Out, "\nAlso:")
		}
		toDo := c.ToDo
		if printed.Has(toDo) {
			toDo = "" // two objects report the same problem
		}
		printed.Insert(toDo)
		p.Paragraph("  - ", nil, nil, strings.TrimSpace(fmt.Sprintf("%s: %s %s", c.describeObject(), inspect.EndSentence(c.What), toDo)))
	}
	if d.Verdict != Well {
		p.printEvidence(d)
	}
	p.printTimes(d)
	for i, m := range d.Missing {
		if i == 0 {
			fmt.Fprintln(p.Out, "\nNot read:")
		}
		p.Paragraph("  ", nil, nil, fmt.Sprintf("%s%s: %s", m.What, inCluster(m.Cluster), m.Why))
	}
	if len(d.Recorded) > 0 && d.Verdict != Well {
		fmt.Fprintln(p.Out)
		p.Paragraph("", nil, p.Paint.Faint, fmt.Sprintf("For %s, only the host's records were read. Use --live to read members with their registrations' kubeconfigs, or --member-kubeconfig to read one with your own.", strings.Join(d.Recorded, ", ")))
	}
}

func (p page) printEvidence(d *Diagnosis) {
	fmt.Fprintln(p.Out, "\nEvidence:")
	for _, e := range d.Evidence {
		line := e.describeObject() + ": " + e.State
		if e.Created != nil {
			line += ", created " + p.TimeAgo(e.Created.Time)
		}
		p.Paragraph("  ", nil, nil, line)
		for _, c := range e.Conditions {
			p.Paragraph("    ", nil, nil, fmt.Sprintf("condition %s=%s %s (%s): %s", c.Type, c.Status, c.Reason, p.TimeAgo(c.Since.Time), c.Message))
		}
		for _, ev := range e.Events {
			if ev.Type == corev1.EventTypeWarning {
				p.Paragraph("    ", nil, nil, fmt.Sprintf("event %s (%s): %s", ev.Reason, p.TimeAgo(ev.Last.Time), ev.Message))
			}
		}
	}
}

// printTimes prints how long each step of a claim took. The resolution is one second, because the
// timestamps of objects have no fractions of seconds.
func (p page) printTimes(d *Diagnosis) {
	for i, s := range d.Times {
		if i == 0 {
			fmt.Fprintln(p.Out, "\nTimes (resolution 1s):")
		}
		fmt.Fprintf(p.Out, "  %-12s  %-6s  %6s  from %s\n", s.Name, s.Side, s.Duration(), s.Start.UTC().Format(time.RFC3339))
	}
}

func (p page) paintOfVerdict(v Verdict) func(string) string {
	switch v {
	case Well:
		return p.Paint.PaintGood
	case Waiting:
		return p.Paint.Doubtful
	case Problem:
	}
	return p.Paint.PaintBad
}

// describeObject returns the object's kind, name and cluster.
func (r ObjectRef) describeObject() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s%s", r.Kind, name, inCluster(r.Cluster))
}

func inCluster(cluster string) string {
	if cluster == "" {
		return ""
	}
	return " in " + cluster
}
