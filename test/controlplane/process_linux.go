package controlplane

import (
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"github.com/xylem-io/xylem/test/machine"
)

const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

var (
	spawner     sync.Once
	spawnerWork = make(chan func())
)

// stopped reports whether all threads of a process have stopped: SIGSTOP stops them one after the
// other, and on a busy machine the last one may still respond to a request.
func stopped(pid int) bool {
	threads := machine.Threads(pid)
	return len(threads) > 0 && !slices.ContainsFunc(threads, func(thread machine.Process) bool { return thread.State != "T" })
}

// Spawn starts a process in its own group, so that Ctrl-C reaches only the caller, which then stops
// its processes. The process dies with this program, even if the program crashes. The kernel sends
// Pdeathsig when the *thread* that forked ends, and Go may end any thread. So one thread that lives
// as long as this program does all the forking.
func Spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	spawner.Do(func() {
		go func() {
			runtime.LockOSThread() // Never unlocked, so that the thread never ends.
			for work := range spawnerWork {
				work()
			}
		}()
	})
	err := make(chan error, 1)
	spawnerWork <- func() { err <- cmd.Start() }
	return <-err
}
