package main

import (
	"context"
	"strings"
)

// reachParts are the optional permissions that allow the host's users to access Pods in members.
var reachParts = []string{"config/member/logs", "config/member/exec", "config/member/debug", "config/member/metrics"}

// reach runs kubectl logs, exec and debug on a Pod in a member, through the host.
func (d *demo) reach(ctx context.Context) error {
	d.out.section("kubectl logs, exec and debug, through the virtual node")
	d.out.line("   (containers are simulated: KWOK responds as the member's kubelet, with its")
	d.out.line("   own log and with commands on this machine)")
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
		{"logs: from the Pod in " + pinned, "third line", []string{"logs", name, "--tail=1"}},
		{"exec: in the Pod in " + pinned, "hello from the Pod", []string{"exec", name, "--", "echo", "hello from the Pod"}},
	} {
		args := append([]string{"-n", space}, command.args...)
		d.prompt(d.host, args...)
		out, err := d.kubectl(ctx, d.host, args...)
		if err != nil {
			return err
		}
		said := strings.TrimSpace(out)
		d.out.line("   %s", said)
		d.checks.equal(command.check, command.want, said, said)
	}
	return d.debug(ctx, name)
}

// debug checks that an ephemeral container is added to the Pod in the member.
func (d *demo) debug(ctx context.Context, pod string) error {
	const name = "debugger"
	args := []string{"-n", space, "debug", pod, "--image=busybox", "--container=" + name, "--profile=baseline", "--attach=false"}
	d.prompt(d.host, args...)
	if _, err := d.kubectl(ctx, d.host, args...); err != nil {
		return err
	}
	const where = "jsonpath={.spec.ephemeralContainers[*].name}"
	member := d.members[0]
	args = []string{"-n", space, "wait", "pod/" + pod, "--for=" + where + "=" + name, "--timeout=30s"}
	if _, err := d.kubectl(ctx, member, args...); err != nil {
		return err
	}
	args = []string{"-n", space, "get", "pod", pod, "-o", where}
	d.prompt(member, args...)
	out, err := d.kubectl(ctx, member, args...)
	if err != nil {
		return err
	}
	d.out.line("   %s", out)
	d.checks.equal("debug: the container was added to the Pod in "+pinned, name, strings.TrimSpace(out), out)
	return nil
}
