package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"al.essio.dev/pkg/shellescape"

	"github.com/xylem-io/xylem/test/controlplane"
)

// lookAround keeps the clusters running until Ctrl-C, and prints how to explore them. The user can
// type commands that disconnect and reconnect members.
func (d *demo) lookAround(ctx context.Context) {
	env, err := d.environment()
	if err != nil {
		d.out.line("%v", err)
		return
	}
	d.out.title("The clusters run until Ctrl-C. Paste this into another terminal:")
	prepare, commands := pasted(d.root, env)
	for _, line := range append(prepare, commands...) {
		d.out.line("%s", line)
	}
	d.out.line("The contexts are those of config/samples/README.md: %s, %s, %s.", d.host.Name(), pinned, spare)
	d.out.line("")
	d.out.line("Logs and disks:")
	d.out.line("   tail -f %s", d.x.Manager.LogPath())
	for _, m := range d.members {
		d.out.line("   cat %s/ledger.jsonl", m.DriverDir())
	}
	d.out.line("In this terminal, type  cut %s  or  heal %s", pinned, pinned)
	d.out.line("to disconnect the member from the manager, or to reconnect it.")
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			d.out.line("")
			if cause := context.Cause(ctx); !interrupted(ctx) {
				d.out.line("%v", cause)
			}
			d.out.line("Stopping all processes.")
			return
		case line, ok := <-lines:
			if !ok {
				lines = nil
				continue
			}
			d.obey(line)
		}
	}
}

// environment writes a file for shells that adds kubectl and its plugin to the PATH, and selects the
// kubeconfig with a context for each cluster.
func (d *demo) environment() (path string, err error) {
	programs := strings.Join([]string{filepath.Join(d.root, "bin"), filepath.Dir(d.x.Fleet.Kubectl())}, ":")
	return d.write("env", fmt.Appendf(nil, "export PATH=%s:\"$PATH\"\nexport KUBECONFIG=%s\n", shellescape.Quote(programs), shellescape.Quote(d.kubeconfig())))
}

// pasted returns the commands for the user to paste into a shell: those that prepare the shell, and
// then those that show the state.
func pasted(root, env string) (prepare, commands []string) {
	prepare = []string{
		shellescape.QuoteCommand([]string{"cd", root}),
		shellescape.QuoteCommand([]string{".", env}),
	}
	commands = []string{
		"kubectl xylem status",
		"kubectl xylem doctor",
		"kubectl get clusterregistrations,nodes",
		"kubectl xylem tree pvc/" + setClaim(0) + " -n " + space,
		"kubectl xylem why pvc/" + setClaim(0) + " -n " + space,
		"kubectl get pod,pvc,pv -A",
	}
	for _, member := range []string{pinned, spare} {
		commands = append(commands, "kubectl --context "+member+" get pod,pvc,pv -A")
	}
	return prepare, commands
}

// runPasted checks that the pasted commands work.
func (d *demo) runPasted(ctx context.Context) error {
	const succeed = "end: the commands for another terminal succeed"
	env, err := d.environment()
	if err != nil {
		return err
	}
	prepare, commands := pasted(d.root, env)
	for _, line := range commands {
		cmd := exec.CommandContext(ctx, "sh", "-c", strings.Join(append(prepare, line), " && ")) //nolint:gosec // our own commands
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}                                    // Ctrl-C must reach only the demo
		if out, err := cmd.CombinedOutput(); err != nil {
			d.checks.fail(succeed, line, fmt.Sprintf("%v: %s", err, strings.TrimSpace(string(out))))
			return nil
		}
	}
	d.checks.pass(succeed, fmt.Sprintf("%d commands", len(commands)))
	d.checks.equal("end: no line shows the number for an unlimited size", "", strings.Join(d.out.unlimited(), "; "), "")
	return nil
}

// obey executes a typed command.
func (d *demo) obey(line string) {
	verb, name, _ := strings.Cut(strings.TrimSpace(line), " ")
	m := d.x.Fleet.Member(strings.TrimSpace(name))
	switch {
	case verb == "":
	case m != nil && verb == "cut":
		d.route(m, controlplane.Cut, "is disconnected; watch: kubectl get clusterregistrations -w")
	case m != nil && verb == "heal":
		d.route(m, controlplane.Pass, "is connected again")
	default:
		d.out.line("   Type  cut NAME  or  heal NAME  (%s, %s), or press Ctrl-C.", pinned, spare)
	}
}

// route changes the mode of the proxy in front of a member.
func (d *demo) route(m *controlplane.Cluster, mode controlplane.ProxyMode, what string) {
	if err := m.Proxy().SetMode(mode); err != nil {
		what = "is unchanged: " + err.Error()
	}
	d.out.line("   %s %s", m.Name(), what)
}
