package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"al.essio.dev/pkg/shellescape"
)

// kubectl runs kubectl as a cluster's admin, in the repository's root directory, and returns its
// output. Xylem's plugin is on the PATH.
func (d *demo) kubectl(ctx context.Context, v *view, args ...string) (string, error) {
	cmd := d.kubectlCommand(ctx, v, args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return out.String(), fmt.Errorf("%s: %w: %s", commandLine(v, args), err, strings.TrimSpace(complaints.String()))
	}
	return out.String(), nil
}

// kubectlCommand returns the command that kubectl runs.
func (d *demo) kubectlCommand(ctx context.Context, v *view, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.x.Fleet.Kubectl(), inContext(v, args)...) //nolint:gosec // The kubectl that was built, with our arguments.
	cmd.Dir = d.root
	cmd.Env = []string{"KUBECONFIG=" + d.kubeconfig(), "HOME=" + d.dir, "PATH=" + filepath.Join(d.root, "bin") + ":" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must reach only the demo, not kubectl.
	return cmd
}

// do prints a command and runs it.
func (d *demo) do(ctx context.Context, v *view, args ...string) error {
	d.prompt(v, args...)
	return d.busy("waiting for kubectl", func() error {
		_, err := d.kubectl(ctx, v, args...)
		return err
	})
}

// prompt prints a kubectl command that the user can paste into a shell.
func (d *demo) prompt(v *view, args ...string) {
	d.out.line("   %s %s", d.out.style(bold, "$"), commandLine(v, args))
}

// commandLine returns a kubectl command in a shell's syntax.
func commandLine(v *view, args []string) string {
	return shellescape.QuoteCommand(append([]string{"kubectl"}, inContext(v, args)...))
}

// inContext adds the flag that selects a cluster to kubectl's arguments. The host needs no flag,
// because its context is the current one.
func inContext(v *view, args []string) []string {
	if v.column == 0 {
		return args
	}
	return append([]string{"--context", v.Name()}, args...)
}

// kubeconfig returns the path of a kubeconfig with a context for each cluster, named after the
// cluster.
func (d *demo) kubeconfig() string { return d.file("kubeconfig") }

// refusedByPolicy reports whether an admission policy denied kubectl's request.
func refusedByPolicy(err error) bool {
	return err != nil && !errors.Is(err, context.Canceled) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
}
