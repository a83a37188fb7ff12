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

var (
	spawner     sync.Once
	spawnerWork = make(chan func())
)

// Spawn starts a process in a group of its own, so that Ctrl-C reaches only the caller,
// who then ends things in order; the process dies with this program, however that ends.
// The kernel sends Pdeathsig when the *thread* that forked ends, and Go ends threads at
// will: one that lives as long as this program does all the forking.
func Spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
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
