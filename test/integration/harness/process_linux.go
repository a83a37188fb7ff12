package harness

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

var (
	spawner     sync.Once
	spawnerWork = make(chan func())
)

// spawn starts cmd so that it dies with this program, however that ends. The
// kernel sends Pdeathsig when the *thread* that forked ends, so one thread that
// lives as long as the program does all the forking.
func spawn(cmd *exec.Cmd) error {
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
