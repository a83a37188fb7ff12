package controlplane

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

// processAttributes make a process its own group, so that Ctrl-C reaches only
// the caller, who then ends things in order; and make it die with its parent,
// however the parent dies.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

var (
	spawner     sync.Once
	spawnerWork = make(chan func())
)

// spawn starts cmd from one OS thread that lives as long as this program. The
// kernel sends Pdeathsig when the *thread* that forked ends, and Go ends threads
// at will.
func spawn(cmd *exec.Cmd) error {
	spawner.Do(func() {
		go func() {
			runtime.LockOSThread() // Never unlocked.
			for work := range spawnerWork {
				work()
			}
		}()
	})
	err := make(chan error, 1)
	spawnerWork <- func() { err <- cmd.Start() }
	return <-err
}
