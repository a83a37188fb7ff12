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

// stopped is not known here.
func stopped(int) bool { return true }

// Spawn starts a process in a group of its own, so that Ctrl-C reaches only the caller,
// who then ends things in order. There is no Pdeathsig here: after a kill of the caller,
// its processes have to be ended by hand.
func Spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}
