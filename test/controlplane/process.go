package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// stopGrace is what a process gets between SIGTERM and SIGKILL. An apiserver
	// whose watches are open does not end by itself any sooner than it must.
	stopGrace = 10 * time.Second
	// restartBackoff and its maximum pace the restarts of a supervised process
	// that ended by itself, as a kubelet would.
	restartBackoff    = 250 * time.Millisecond
	maxRestartBackoff = 4 * time.Second
	// readyPoll is how often a starting process is asked whether it is ready.
	readyPoll = 50 * time.Millisecond
	// stopPoll is how often a process that is being frozen is examined.
	stopPoll = time.Millisecond
	// readyTimeout bounds the wait for one process to become ready.
	readyTimeout = 90 * time.Second
	// logTailBytes is how much of a log an error quotes.
	logTailBytes = 3000
)

// ProcessName names a process within its cluster.
type ProcessName string

// The processes of a cluster. From CSIDriver on they exist only where there is storage,
// and the last three only with the options Snapshots and Attach.
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
	SnapshotController ProcessName = "snapshot-controller" // in a host without storage, too
)

// Process is a program of a cluster. It keeps its arguments, and so its address,
// over restarts. Its methods may be called at any time and from many goroutines;
// those that change its state exclude each other.
type Process struct {
	cluster  string
	name     ProcessName
	path     string
	args     []string
	logPath  string
	progress func(format string, args ...any)
	// ready returns nil when the process can be used; nil means as soon as it runs.
	ready func(context.Context) error
	// supervised processes are started again when they end by themselves, as
	// the kubelet would: the sidecars do so whenever they lose their driver.
	supervised bool

	change sync.Mutex // held while the state is being changed

	mu      sync.Mutex
	run     *run
	retired bool // the cluster is gone: no more starts
}

// run is one life of a process.
type run struct {
	cmd    *exec.Cmd
	frozen bool
	// done is closed when it has ended and been waited for.
	done chan struct{}
	err  error // why it ended; after done
	// asked is closed when we mean it to end.
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

// LogPath returns the file that holds the output of every life of the process.
func (p *Process) LogPath() string { return p.logPath }

// PID returns the process ID, or 0 if the process does not run. One that is
// frozen runs.
func (p *Process) PID() int {
	if r := p.current(); r != nil && !r.ended() {
		return r.cmd.Process.Pid
	}
	return 0
}

// Running reports whether the process runs, frozen or not.
func (p *Process) Running() bool { return p.PID() != 0 }

func (p *Process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// Start starts the process, unless it runs, and waits until it is ready. A frozen
// one is thawed.
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

// launch starts a new life.
func (p *Process) launch() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired {
		return nil, fmt.Errorf("%s of %s: the cluster was torn down", p.name, p.cluster)
	}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s of %s: %w", p.name, p.cluster, err)
	}
	cmd := exec.Command(p.path, p.args...) //nolint:gosec,noctx // Ours, and it outlives the context that started it.
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = cleanEnv()
	err = errors.Join(Spawn(cmd), log.Close())
	if err != nil {
		return nil, fmt.Errorf("starting %s of %s: %w", p.name, p.cluster, err)
	}
	r := &run{cmd: cmd, done: make(chan struct{}), asked: make(chan struct{})}
	p.run = r
	go func() {
		r.err = cmd.Wait()
		close(r.done)
		if p.supervised {
			p.supervise(r)
		}
	}()
	return r, nil
}

// supervise starts the process again after the life r ended, unless it was asked to.
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
		if p.current() != r { // Somebody else was quicker.
			p.change.Unlock()
			return
		}
		select {
		case <-r.asked:
			p.change.Unlock()
			return
		default:
		}
		p.progress("%s: %s ended by itself (%v), starting it again", p.cluster, p.name, r.err)
		_, err := p.launch()
		p.change.Unlock()
		if err == nil {
			return
		}
	}
}

// awaitReady waits until the process is ready, or has ended permanently.
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
		ended = nil // It may have come too early; its next life may fare better.
	}
	for {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("%s of %s ended while starting: %w\n%s", p.name, p.cluster, errors.Join(r.err, err), p.LogTail())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s of %s: %w (last: %w)\n%s",
				p.name, p.cluster, context.Cause(ctx), err, p.LogTail())
		case <-ticker.C:
		}
	}
}

// Stop ends the process with SIGTERM, and with SIGKILL if it is still there
// after a grace or when ctx ends. A frozen one is thawed for it.
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

// Kill ends the process with SIGKILL: it can finish nothing. It stays ended,
// also if it is one that is otherwise started again.
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
	<-r.done // SIGKILL cannot be refused.
	return nil
}

// Restart stops the process and starts it again, at the same address.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Freeze stops the process without ending it: it keeps its connections and
// answers nothing. When it returns, all threads have stopped (on Linux). It is an error if
// the process does not run.
func (p *Process) Freeze() error {
	p.change.Lock()
	defer p.change.Unlock()
	r := p.current()
	if r == nil || r.ended() {
		return fmt.Errorf("freezing %s of %s: it does not run", p.name, p.cluster)
	}
	if err := p.signal(r, sigStop); err != nil {
		return err
	}
	r.frozen = true
	ticker := time.NewTicker(stopPoll)
	defer ticker.Stop()
	for deadline := time.Now().Add(stopGrace); !r.ended() && !stopped(r.cmd.Process.Pid); <-ticker.C {
		if time.Now().After(deadline) {
			return fmt.Errorf("freezing %s of %s: it has not stopped within %s", p.name, p.cluster, stopGrace)
		}
	}
	return nil
}

// Thaw lets a frozen process go on. Others are left alone.
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

// signal signals the life r; one that has ended is no error.
func (p *Process) signal(r *run, s syscall.Signal) error {
	err := r.cmd.Process.Signal(s)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signalling %s of %s: %w", p.name, p.cluster, err)
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
	// Without p.change, so that a caller that waits for readiness does not delay the end.
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
	if offset > 0 { // The first line is likely cut.
		_, content, _ = bytes.Cut(content, []byte("\n"))
	}
	return strings.TrimSpace(string(content)), nil
}

// cleanEnv keeps the caller's environment from steering what it starts: a
// KUBECONFIG or a proxy variable there would lead a sidecar astray.
func cleanEnv() []string {
	var env []string
	for _, key := range []string{"PATH", "HOME", "TMPDIR", "TZ", "LANG"} {
		if v, ok := os.LookupEnv(key); ok {
			env = append(env, key+"="+v)
		}
	}
	return env
}
