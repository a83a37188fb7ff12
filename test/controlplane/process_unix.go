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

// stopped returns true, because these platforms do not report whether a process has stopped.
func stopped(int) bool { return true }

// followParents does nothing, because these platforms have no /proc.
func followParents() {}

// Spawn starts a process in its own group, so that Ctrl-C reaches only the caller, which then stops
// its processes. There is no Pdeathsig on these platforms. If the caller is killed, its processes
// must be stopped manually.
func Spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}
