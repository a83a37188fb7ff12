package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/xylem-io/xylem/test/machine"
)

// zombie is the state of a process that has ended, but that its parent has not waited for.
const zombie = "Z"

func init() {
	// The kernel sends Pdeathsig when the thread that forked ends, so the main thread forks.
	runtime.LockOSThread()
}

// endWithParent makes this program end, and with it its children, if make is killed.
func endWithParent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0); err != nil {
		return fmt.Errorf("end with make: %w", err)
	}
	return nil
}

// start starts a command in its own process group. It dies with this program. Processes that outlive
// their parents become children of this program.
func start(command *exec.Cmd) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphaned processes: %w", err)
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	return command.Start()
}

// killRest kills the processes that an ended step has left behind, and returns an error that names them.
func killRest() error {
	var names []string
	for {
		left := children()
		if len(left) == 0 {
			break
		}
		for pid, p := range left {
			if p.State != zombie {
				names = append(names, p.Name)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("left these processes behind, which were killed: %s", strings.Join(names, ", "))
	}
	return nil
}

// children returns this program's children by their IDs. Their own children follow when they have ended.
func children() map[int]machine.Process {
	found := map[int]machine.Process{}
	for pid, p := range machine.Processes() {
		if p.Parent == os.Getpid() {
			found[pid] = p
		}
	}
	return found
}
