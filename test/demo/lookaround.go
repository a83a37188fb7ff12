package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/xylem-io/xylem/test/controlplane"
)

// lookAround leaves everything up until Ctrl-C, and says how to look at it. What
// is typed can cut members off, and connect them again.
func (d *demo) lookAround(ctx context.Context) {
	env, err := d.environment()
	if err != nil {
		d.out.line("%v", err)
		return
	}
	d.out.section("Everything stays up until Ctrl-C. Paste this into another terminal:")
	for _, line := range pasted(env) {
		d.out.line("%s", line)
	}
	d.out.line("")
	d.out.line("Logs and disks:")
	d.out.line("   tail -f %s", d.x.Manager.LogPath())
	for _, m := range d.members {
		d.out.line("   cat %s/ledger.jsonl", m.DriverDir())
	}
	d.out.line("Here, type  cut %s  or  heal %s", pinned, pinned)
	d.out.line("to cut the member off from the manager, and to connect it again.")
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
			d.out.line("Ending everything.")
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

// environment writes a file for shells: kubectl and its plugin on the PATH, kubectl's
// cluster the host, and a variable for each member's kubeconfig.
func (d *demo) environment() (path string, err error) {
	var env strings.Builder
	fmt.Fprintf(&env, "export PATH='%s':'%s':\"$PATH\"\n", filepath.Join(d.root, "bin"), filepath.Dir(d.x.Fleet.Kubectl()))
	fmt.Fprintf(&env, "export KUBECONFIG='%s'\n", d.host.KubeconfigPath())
	for _, m := range d.members {
		fmt.Fprintf(&env, "export %s='%s'\n", strings.ToUpper(m.Name()), m.KubeconfigPath())
	}
	return d.write("env", []byte(env.String()))
}

// pasted are commands that can be pasted into a shell as they are.
func pasted(env string) []string {
	return []string{
		". " + env,
		"kubectl xylem status",
		"kubectl get clusterregistrations,nodes",
		"kubectl xylem tree pvc/nginx-pvc -n " + space,
		"kubectl xylem why pvc/nginx-pvc -n " + space,
		"kubectl get pod,pvc,pv -A",
		`kubectl --kubeconfig "$` + strings.ToUpper(pinned) + `" get pod,pvc,pv -A`,
	}
}

// obey does what was typed.
func (d *demo) obey(line string) {
	verb, name, _ := strings.Cut(strings.TrimSpace(line), " ")
	m := d.x.Fleet.Member(strings.TrimSpace(name))
	switch {
	case verb == "":
	case m != nil && verb == "cut":
		d.route(m, controlplane.Cut, "is cut off; watch: kubectl get clusterregistrations -w")
	case m != nil && verb == "heal":
		d.route(m, controlplane.Pass, "can be reached again")
	default:
		d.out.line("   cut|heal %s|%s, or Ctrl-C", pinned, spare)
	}
}

// route changes what the proxy in front of a member does.
func (d *demo) route(m *controlplane.Cluster, mode controlplane.ProxyMode, what string) {
	if err := m.Proxy().SetMode(mode); err != nil {
		what = "is as before: " + err.Error()
	}
	d.out.line("   %s %s", m.Name(), what)
}
