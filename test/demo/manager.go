package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/xylem-io/xylem/test/panics"
)

const (
	// managerGrace is what the manager gets to end in order.
	managerGrace = 15 * time.Second
	// tailLines is how much of its log a failure quotes.
	tailLines = 25
)

// manager is Xylem's manager as a process of its own.
type manager struct {
	path, log string
	process   *os.Process
	done      chan struct{} // closed when it has ended
	err       error         // how; after done
}

// startManager starts the manager with a kubeconfig of the host. It answers for virtual
// nodes on the address nodeAPI. Its output goes to log.
func startManager(path, kubeconfig, log, nodeAPI string) (*manager, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // In the demo's own directory.
	if err != nil {
		return nil, fmt.Errorf("starting the manager: %w", err)
	}
	m := &manager{path: path, log: log, done: make(chan struct{})}
	cmd := exec.Command(path, //nolint:gosec,noctx // Ours; ended by stop.
		"--kubeconfig="+kubeconfig, "--leader-elect", "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--node-api-bind-address="+nodeAPI, "--node-api-advertise-address=127.0.0.1")
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	cmd.SysProcAttr = processAttributes()
	started := make(chan error, 1)
	go func() {
		// A process that is to die with its parent dies with the thread that
		// began it: this one waits for it.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			m.err = cmd.Wait()
			close(m.done)
		}
	}()
	if err := errors.Join(<-started, output.Close()); err != nil {
		return nil, fmt.Errorf("starting the manager: %w", err)
	}
	m.process = cmd.Process
	return m, nil
}

// stop ends the manager in order, or else at once.
func (m *manager) stop() error {
	if err := m.process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending the manager: %w", err)
	}
	timer := time.NewTimer(managerGrace)
	defer timer.Stop()
	select {
	case <-m.done:
		return m.panicked()
	case <-timer.C:
		err := m.process.Kill()
		<-m.done
		return errors.Join(fmt.Errorf("the manager did not end within %s", managerGrace), err, m.panicked())
	}
}

// panicked fails if the manager has panicked at any time, recovered or not.
func (m *manager) panicked() error {
	content, err := os.ReadFile(m.log)
	if err != nil {
		return fmt.Errorf("looking for panics: %w", err)
	}
	if found := panics.In(string(content)); len(found) > 0 {
		return errors.New(strings.Join(found, "\n"))
	}
	return nil
}

// died is the cause of the end of everything that waits, when the manager ends
// before it is told to.
type died struct{ err error }

func (e *died) Error() string { return fmt.Sprintf("the manager ended by itself: %v", e.err) }

// guard ends the context when the manager ends.
func (m *manager) guard(ctx context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
	case <-m.done:
		cancel(&died{m.err})
	}
}

// tail returns the end of the manager's log.
func (m *manager) tail() string {
	content, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(bytes.TrimRight(content, "\n")), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	for i, line := range lines {
		lines[i] = clip(line, 400)
	}
	return strings.Join(lines, "\n")
}
