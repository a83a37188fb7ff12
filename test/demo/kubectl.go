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
		return out.String(), fmt.Errorf("%s: kubectl %s: %w: %s",
			v.Name(), strings.Join(args, " "), err, strings.TrimSpace(complaints.String()))
	}
	return out.String(), nil
}

// kubectlCommand returns the command that kubectl runs.
func (d *demo) kubectlCommand(ctx context.Context, v *view, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.x.Fleet.Kubectl(), args...) //nolint:gosec // The kubectl that was built, with our arguments.
	cmd.Dir = d.root
	cmd.Env = []string{"KUBECONFIG=" + v.KubeconfigPath(), "HOME=" + d.dir, "PATH=" + filepath.Join(d.root, "bin") + ":" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must reach only the demo, not kubectl.
	return cmd
}

// do prints a command and runs it.
func (d *demo) do(ctx context.Context, v *view, args ...string) error {
	d.prompt(v, "kubectl "+strings.Join(args, " "))
	return d.busy("kubectl "+args[0], func() error {
		_, err := d.kubectl(ctx, v, args...)
		return err
	})
}

// prompt prints a command as the user would type it.
func (d *demo) prompt(v *view, command string) {
	d.out.line("   %s %s", d.out.style(bold, "["+v.Name()+"]$"), command)
}

// refusedByPolicy reports whether an admission policy denied kubectl's request.
func refusedByPolicy(err error) bool {
	return err != nil && !errors.Is(err, context.Canceled) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
}
