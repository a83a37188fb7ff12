package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// stopGrace is the time between SIGTERM and SIGKILL. An apiserver with open watches waits as long
	// as it can for them to end.
	stopGrace = 10 * time.Second
	// restartBackoff and its maximum are the backoff for restarts of a supervised process that
	// exited, as with a kubelet.
	restartBackoff    = 250 * time.Millisecond
	maxRestartBackoff = 4 * time.Second
	// readyPoll is the interval of readiness probes of a starting process.
	readyPoll = 50 * time.Millisecond
	// stopPoll is the interval for checking whether a process is frozen.
	stopPoll = time.Millisecond
	// readyTimeout is the maximum time until a process is ready. At a load of 30 per processor, a
	// kube-apiserver needs more than 90 seconds. Start notices immediately if a process ends.
	readyTimeout = 3 * time.Minute
	// logTailBytes is how many bytes at the end of the log an error quotes.
	logTailBytes = 3000
)

// ProcessName is the name of a process in its cluster.
type ProcessName string

// The processes of a cluster. CSIDriver and the following exist only in clusters with storage, and
// the last three only with the options Snapshots and Attach.
const (
	Etcd              ProcessName = "etcd"
	APIServer         ProcessName = "kube-apiserver"
	ControllerManager ProcessName = "kube-controller-manager"
	Scheduler         ProcessName = "kube-scheduler"
	KWOK              ProcessName = "kwok"
	CSIDriver         ProcessName = "csi-driver"
	Provisioner       ProcessName = "csi-provisioner"
	Resizer           ProcessName = "csi-resizer"

	Snapshotter        ProcessName = "csi-snapshotter"
	Attacher           ProcessName = "csi-attacher"
	SnapshotController ProcessName = "snapshot-controller" // also in a host without storage
)

// Process is a program of a cluster. It keeps its arguments, and therefore its address, across
// restarts. Its methods are safe for concurrent use. Those that change its state exclude each
// other.
type Process struct {
	cluster  string
	name     ProcessName
	path     string
	args     []string
	logPath  string
	progress func(format string, args ...any)
	// ready returns nil when the process can be used. If ready is nil, the process can be used as
	// soon as it runs.
	ready func(context.Context) error
	// supervised processes are restarted when they exit, as by a kubelet. The sidecars exit
	// whenever they lose their driver.
	supervised bool

	change sync.Mutex // held while the state changes

	mu      sync.Mutex
	run     *run
	retired bool // the cluster was removed: no more starts
}

// run is one run of a process.
type run struct {
	cmd    *exec.Cmd
	frozen bool
	// done is closed after the process has ended.
	done chan struct{}
	err  error // why it ended; valid after done
	// asked is closed before the process is ended deliberately, by Stop, Kill or retire.
	asked     chan struct{}
	askedOnce sync.Once
}

func (r *run) ask() { r.askedOnce.Do(func() { close(r.asked) }) }

func (r *run) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Name returns the name of the process.
func (p *Process) Name() ProcessName { return p.name }

// LogPath returns the file with the output of all runs of the process.
func (p *Process) LogPath() string { return p.logPath }

// PID returns the process ID, or 0 if the process is not running. A frozen process is running.
func (p *Process) PID() int {
	if r := p.current(); r != nil && !r.ended() {
		return r.cmd.Process.Pid
	}
	return 0
}

// Running reports whether the process is running or frozen.
func (p *Process) Running() bool { return p.PID() != 0 }

func (p *Process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// Start starts the process unless it is running, and waits until it is ready. It thaws a frozen
// process.
func (p *Process) Start(ctx context.Context) error {
	p.change.Lock()
	defer p.change.Unlock()
	r := p.current()
	if r == nil || r.ended() {
		var err error
		if r, err = p.launch(); err != nil {
			return err
		}
	} else if err := p.thaw(r); err != nil {
		return err
	}
	return p.awaitReady(ctx, r)
}

// launch starts a new run.
func (p *Process) launch() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired {
		return nil, fmt.Errorf("%s of %s: the cluster was removed", p.name, p.cluster)
	}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s of %s: %w", p.name, p.cluster, err)
	}
	cmd := exec.Command(p.path, p.args...) //nolint:gosec,noctx // Ours, and it outlives the context that started it.
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = cleanEnv()
	err = errors.Join(Spawn(cmd), log.Close())
	if err != nil {
		return nil, fmt.Errorf("start %s of %s: %w", p.name, p.cluster, err)
	}
	r := &run{cmd: cmd, done: make(chan struct{}), asked: make(chan struct{})}
	p.run = r
	go func() {
		r.err = cmd.Wait()
		// KWOK runs the commands that Pods execute as its children, and a command may wait for input.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		close(r.done)
		if p.supervised {
			p.supervise(r)
		}
	}()
	return r, nil
}

// supervise restarts the process after the run r has ended, unless the run was ended deliberately.
func (p *Process) supervise(r *run) {
	for backoff := restartBackoff; ; backoff = min(2*backoff, maxRestartBackoff) {
		timer := time.NewTimer(backoff)
		select {
		case <-r.asked:
			timer.Stop()
			return
		case <-timer.C:
		}
		p.change.Lock()
		if p.current() != r { // The process was already restarted.
			p.change.Unlock()
			return
		}
		select {
		case <-r.asked:
			p.change.Unlock()
			return
		default:
		}
		p.progress("%s: %s exited (%v), restarting it", p.cluster, p.name, r.err)
		_, err := p.launch()
		p.change.Unlock()
		if err == nil {
			return
		}
	}
}

// awaitReady waits until the process is ready, and fails if it ends permanently.
func (p *Process) awaitReady(ctx context.Context, r *run) error {
	if p.ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %s", readyTimeout))
	defer cancel()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	ended := r.done
	if p.supervised {
		ended = nil // The process may have started too early; the next run may succeed.
	}
	for {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.Join(shortage(filepath.Dir(p.logPath), r.err),
				fmt.Errorf("%s of %s exited before it was ready: %w\n%s", p.name, p.cluster, errors.Join(r.err, err), p.LogTail()))
		case <-ctx.Done():
			return errors.Join(shortage(filepath.Dir(p.logPath), nil),
				fmt.Errorf("wait for %s of %s: %w (last: %w)\n%s", p.name, p.cluster, context.Cause(ctx), err, p.LogTail()))
		case <-ticker.C:
		}
	}
}

// Stop ends the process with SIGTERM, and with SIGKILL after a grace period or when ctx ends. It
// thaws a frozen process first.
func (p *Process) Stop(ctx context.Context) error {
	p.change.Lock()
	defer p.change.Unlock()
	r := p.current()
	if r == nil {
		return nil
	}
	r.ask()
	if err := p.signal(r, syscall.SIGTERM); err != nil {
		return err
	}
	if err := p.thaw(r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return p.kill(r)
	}
}

// Kill ends the process with SIGKILL, so that it cannot clean up. Even a supervised process is not
// restarted.
func (p *Process) Kill() error {
	p.change.Lock()
	defer p.change.Unlock()
	r := p.current()
	if r == nil {
		return nil
	}
	r.ask()
	return p.kill(r)
}

func (p *Process) kill(r *run) error {
	if err := p.signal(r, syscall.SIGKILL); err != nil {
		return err
	}
	<-r.done // A process cannot ignore SIGKILL.
	return nil
}

// Restart stops the process and starts it again, at the same address.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Freeze suspends the process: it keeps its connections but does not respond. When Freeze returns,
// all threads have stopped (on Linux). It returns an error if the process is not running.
func (p *Process) Freeze() error {
	p.change.Lock()
	defer p.change.Unlock()
	r := p.current()
	if r == nil || r.ended() {
		return fmt.Errorf("freeze %s of %s: it is not running", p.name, p.cluster)
	}
	if err := p.signal(r, sigStop); err != nil {
		return err
	}
	r.frozen = true
	ticker := time.NewTicker(stopPoll)
	defer ticker.Stop()
	for deadline := time.Now().Add(stopGrace); !r.ended() && !stopped(r.cmd.Process.Pid); <-ticker.C {
		if time.Now().After(deadline) {
			return fmt.Errorf("freeze %s of %s: it did not stop within %s", p.name, p.cluster, stopGrace)
		}
	}
	return nil
}

// Thaw resumes a frozen process. It has no effect on a process that is not frozen.
func (p *Process) Thaw() error {
	p.change.Lock()
	defer p.change.Unlock()
	r := p.current()
	if r == nil {
		return nil
	}
	return p.thaw(r)
}

func (p *Process) thaw(r *run) error {
	if !r.frozen {
		return nil
	}
	if err := p.signal(r, sigCont); err != nil {
		return err
	}
	r.frozen = false
	return nil
}

// signal signals the run r. It succeeds if the run has ended.
func (p *Process) signal(r *run, s syscall.Signal) error {
	err := r.cmd.Process.Signal(s)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s of %s: %w", p.name, p.cluster, err)
	}
	return nil
}

// retire kills the process permanently.
func (p *Process) retire() error {
	p.mu.Lock()
	p.retired = true
	r := p.run
	p.mu.Unlock()
	if r == nil {
		return nil
	}
	// Do not take p.change: a caller that waits for readiness would delay the end.
	r.ask()
	return p.kill(r)
}

// LogTail returns the last lines of the log.
func (p *Process) LogTail() string {
	tail, err := readTail(p.logPath, logTailBytes)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return fmt.Sprintf("last lines of %s:\n%s", p.logPath, tail)
}

func readTail(path string, n int64) (string, error) {
	f, err := os.Open(path) //nolint:gosec // A log of ours.
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	offset := max(0, info.Size()-n)
	content, err := io.ReadAll(io.NewSectionReader(f, offset, n))
	if err != nil {
		return "", err
	}
	if offset > 0 { // The first line is probably incomplete.
		_, content, _ = bytes.Cut(content, []byte("\n"))
	}
	return strings.TrimSpace(string(content)), nil
}

// cleanEnv removes variables from the caller's environment that would affect the processes. For
// example, KUBECONFIG or a proxy variable would misdirect a sidecar.
func cleanEnv() []string {
	var env []string
	for _, key := range []string{"PATH", "HOME", "TMPDIR", "TZ", "LANG"} {
		if v, ok := os.LookupEnv(key); ok {
			env = append(env, key+"="+v)
		}
	}
	return env
}
