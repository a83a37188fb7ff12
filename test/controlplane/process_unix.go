//go:build unix && !linux

package controlplane

import (
	"os/exec"
	"syscall"
)

const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

// processAttributes make a process its own group, so that Ctrl-C reaches only
// the caller, who then ends things in order. There is no Pdeathsig here: after a
// kill of the caller, its processes have to be ended by hand.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func spawn(cmd *exec.Cmd) error { return cmd.Start() }
