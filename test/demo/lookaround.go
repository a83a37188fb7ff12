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
	d.out.section("The clusters run until Ctrl-C. Paste this into another terminal:")
	for _, line := range pasted(env) {
		d.out.line("%s", line)
	}
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

// environment writes a file for shells that adds kubectl and its plugin to the PATH, selects the
// host as kubectl's cluster, and sets a variable to the path of each member's kubeconfig.
func (d *demo) environment() (path string, err error) {
	var env strings.Builder
	fmt.Fprintf(&env, "export PATH='%s':'%s':\"$PATH\"\n", filepath.Join(d.root, "bin"), filepath.Dir(d.x.Fleet.Kubectl()))
	fmt.Fprintf(&env, "export KUBECONFIG='%s'\n", d.host.KubeconfigPath())
	for _, m := range d.members {
		fmt.Fprintf(&env, "export %s='%s'\n", strings.ToUpper(m.Name()), m.KubeconfigPath())
	}
	return d.write("env", []byte(env.String()))
}

// pasted returns the commands for the user to paste into a shell.
func pasted(env string) []string {
	return []string{
		". '" + env + "'",
		"kubectl xylem status",
		"kubectl get clusterregistrations,nodes",
		"kubectl xylem tree pvc/" + setClaim(0) + " -n " + space,
		"kubectl xylem why pvc/" + setClaim(0) + " -n " + space,
		"kubectl get pod,pvc,pv -A",
		`kubectl --kubeconfig "$` + strings.ToUpper(pinned) + `" get pod,pvc,pv -A`,
	}
}

// runPasted checks that the pasted commands work.
func (d *demo) runPasted(ctx context.Context) error {
	const succeed = "end: the commands for another terminal succeed"
	env, err := d.environment()
	if err != nil {
		return err
	}
	lines := pasted(env)
	for _, line := range lines[1:] {
		cmd := exec.CommandContext(ctx, "sh", "-c", lines[0]+" && "+line) //nolint:gosec // our own commands
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}             // Ctrl-C must reach only the demo
		if out, err := cmd.CombinedOutput(); err != nil {
			d.checks.fail(succeed, line, fmt.Sprintf("%v: %s", err, strings.TrimSpace(string(out))))
			return nil
		}
	}
	d.checks.pass(succeed, fmt.Sprintf("%d commands", len(lines)-1))
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
