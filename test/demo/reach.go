package main

import (
	"context"
	"strings"
)

// reachParts are the optional rights by which the host's users reach Pods in members.
var reachParts = []string{"config/member/logs", "config/member/exec", "config/member/debug", "config/member/metrics"}

// reach shows kubectl logs and exec of a Pod in a member, through the host.
func (d *demo) reach(ctx context.Context) error {
	d.out.section("kubectl logs and exec, through the virtual node")
	d.out.line("   (there is no container: KWOK answers as the member's kubelet, with a log of its own and commands of this machine)")
	pods := d.host.labelled(space, "app", nginxApp)
	if len(pods) == 0 {
		d.checks.fail("logs and exec", "a Pod "+nginxApp, "none")
		return nil
	}
	name := pods[0].Name
	for _, command := range []struct {
		check, want string
		args        []string
	}{
		{"logs: those of the Pod in " + pinned, "third line", []string{"logs", name, "--tail=1"}},
		{"exec: runs in the Pod in " + pinned, "hello from the Pod", []string{"exec", name, "--", "echo", "hello from the Pod"}},
	} {
		args := append([]string{"-n", space}, command.args...)
		d.prompt(d.host, "kubectl "+strings.Join(args, " "))
		out, err := d.kubectl(ctx, d.host, args...)
		if err != nil {
			return err
		}
		said := strings.TrimSpace(out)
		d.out.line("   %s", said)
		d.checks.equal(command.check, command.want, said, said)
	}
	return nil
}
