package controlplane

import (
	"fmt"
	"os/exec"
	"path/filepath"
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

// stopped reports whether all threads of a process have stopped: SIGSTOP stops them one after the
// other, and on a busy machine the last one may still respond to a request.
func stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, thread := range threads {
		if _, fields := statOf(thread); len(fields) == 0 || fields[0] != "T" {
			return false
		}
	}
	return true
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
