package main

import (
	"bufio"
	"context"
	"os"
	"strings"

	"github.com/xylem-io/xylem/test/controlplane"
)

// lookAround leaves everything up until Ctrl-C, and says how to look at it. What
// is typed can cut members off, and connect them again.
func (d *demo) lookAround(ctx context.Context) {
	d.out.section("Everything stays up until Ctrl-C. To look around, in another terminal:")
	d.out.line("   alias k=%s", d.fleet.Kubectl())
	for _, v := range d.views() {
		d.out.line("   export KUBECONFIG=%s   # %s", v.KubeconfigPath(), v.Name())
	}
	d.out.line("   k get clusterregistrations,nodes          # in the host: the members, and the nodes that stand for them")
	d.out.line("   k get pod,pvc,pv -A -o wide               # the same in the host and in a member")
	d.out.line("   k -n %s scale statefulset %s --replicas=3", space, setApp)
	for _, m := range d.members {
		d.out.line("   cat %s/ledger.jsonl   # every call to the disks of %s", m.DriverDir(), m.Name())
	}
	d.out.line("   tail -f %s", d.manager.log)
	d.out.line("Here: type  cut %s  or  heal %s  to cut a member off from the manager, and to connect it again.", pinned, pinned)
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

// obey does what was typed.
func (d *demo) obey(line string) {
	verb, name, _ := strings.Cut(strings.TrimSpace(line), " ")
	m := d.fleet.Member(strings.TrimSpace(name))
	switch {
	case verb == "":
	case m != nil && verb == "cut":
		d.route(m, controlplane.Cut, "is cut off; watch: k get clusterregistrations -w")
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
