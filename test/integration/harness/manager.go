package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
)

const (
	// stopGrace is the time between SIGTERM and SIGKILL for the manager.
	stopGrace = 20 * time.Second
	// logTail is the length of the manager's log in a dump.
	logTail = 24 << 10
)

// Manager is the manager's process. Its arguments survive restarts.
type Manager struct {
	path, log string
	args, env []string
	health    string
	metrics   string
	profiles  string

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	err  error // why the process ended; valid after done is closed
	// judged is how many bytes of the log Panics has read.
	judged int64
}

// detectMutation is the environment variable that, if true, enables client-go's cache mutation
// detector. The detector ends a process that changes a cached object.
const detectMutation = "KUBE_CACHE_MUTATION_DETECTOR"

// AnotherManager returns a second manager that runs the same program, for the host or for a clone
// of the host. It does not start the manager. The caller must stop it.
func (x *Xylem) AnotherManager(ctx context.Context, name string, host *controlplane.Cluster, args ...string) (*Manager, error) {
	o := x.options
	o.ManagerArgs = append(slices.Clone(o.ManagerArgs), args...)
	return x.newManager(ctx, name, host, x.Manager.path, o)
}

func (x *Xylem) newManager(ctx context.Context, name string, host *controlplane.Cluster, binary string, o Options) (*Manager, error) {
	dir := filepath.Join(x.Fleet.Dir(), name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the manager's directory: %w", err)
	}
	m := &Manager{path: binary, log: filepath.Join(dir, "manager.log"), env: o.ManagerEnv}
	if binary == o.Manager {
		m.path = filepath.Join(dir, "manager")
		if err := copyProgram(binary, m.path); err != nil {
			return nil, err
		}
	}
	kubeconfig, err := host.ServiceAccountKubeconfig(ctx, o.HostRoute, v1alpha1.DefaultNamespace, managerAccount)
	if err != nil {
		return nil, err
	}
	if kubeconfig, err = x.front(x.Fleet.Host, kubeconfig); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("write the manager's kubeconfig: %w", err)
	}
	for _, address := range []*string{&m.health, &m.metrics, &m.profiles} {
		if *address, err = FreeAddress(ctx); err != nil {
			return nil, err
		}
	}
	fence, probe := o.FenceDuration, o.ProbeInterval
	if fence == 0 {
		fence, probe = fenceDuration, probeInterval
	}
	m.args = append([]string{
		"--kubeconfig=" + file, "--namespace=" + v1alpha1.DefaultNamespace,
		"--fence-duration=" + fence.String(), "--probe-interval=" + probe.String(),
		"--health-probe-bind-address=" + m.health, "--metrics-bind-address=" + m.metrics, "--metrics-secure=false",
		"--pprof-bind-address=" + m.profiles, "--node-api-bind-address=0",
		"--zap-encoder=console", "--zap-time-encoding=rfc3339nano",
	}, o.ManagerArgs...)
	x.mu.Lock()
	x.managers = append(x.managers, m)
	x.mu.Unlock()
	return m, nil
}

// Start starts the manager unless it is running, and waits until it is ready.
func (m *Manager) Start(ctx context.Context) error {
	if err := m.launch(); err != nil {
		return err
	}
	return Await(ctx, "the manager", func(ctx context.Context) error {
		if !m.Running() {
			return fmt.Errorf("the process ended: %w\n%s", m.Err(), m.Log())
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.health+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	})
}

func (m *Manager) launch() error {
	if m.Running() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start the manager: %w", err)
	}
	cmd := exec.Command(m.path, m.args...) //nolint:gosec,noctx // a program of this module, which may run longer than the context that started it
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), detectMutation + "=" + os.Getenv(detectMutation)}, m.env...)
	if err := errors.Join(controlplane.Spawn(cmd), log.Close()); err != nil {
		return fmt.Errorf("start the manager: %w", err)
	}
	done := make(chan struct{})
	m.cmd, m.done = cmd, done
	go func() {
		err := cmd.Wait()
		m.mu.Lock()
		m.err = err
		m.mu.Unlock()
		close(done)
	}()
	return nil
}

// Running reports whether the manager is running or frozen.
func (m *Manager) Running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done == nil {
		return false
	}
	select {
	case <-m.done:
		return false
	default:
		return true
	}
}

// Done returns a channel that is closed when the current process, or the last one, has ended.
func (m *Manager) Done() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done == nil {
		unborn := make(chan struct{})
		close(unborn)
		return unborn
	}
	return m.done
}

// Err returns why the last process ended.
func (m *Manager) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// PID returns the ID of the current process, or 0.
func (m *Manager) PID() int {
	if !m.Running() {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cmd.Process.Pid
}

// Kill ends the manager with SIGKILL, so that it does not release its fences.
func (m *Manager) Kill() error { return m.end(syscall.SIGKILL) }

// Stop stops the manager gracefully.
func (m *Manager) Stop() error { return m.end(syscall.SIGTERM) }

// Restart stops the manager gracefully and starts it again.
func (m *Manager) Restart(ctx context.Context) error {
	if err := m.Stop(); err != nil {
		return err
	}
	return m.Start(ctx)
}

// Signal signals the manager.
func (m *Manager) Signal(s syscall.Signal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd == nil {
		return nil
	}
	if err := m.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal the manager: %w", err)
	}
	return nil
}

func (m *Manager) end(s syscall.Signal) error {
	if !m.Running() {
		return nil
	}
	if err := m.Signal(s); err != nil {
		return err
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-m.done:
		return nil
	case <-timer.C:
	}
	if err := m.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-m.done
	return fmt.Errorf("the manager did not exit within %s after %s", stopGrace, s)
}

// LogPath returns the path of the file to which all of the manager's processes write their output.
func (m *Manager) LogPath() string { return m.log }

// MetricsURL returns the URL of the manager's metrics, which it serves without TLS.
func (m *Manager) MetricsURL() string { return "http://" + m.metrics + "/metrics" }

// ProfilesURL returns the URL of the manager's Go profiles.
func (m *Manager) ProfilesURL() string { return "http://" + m.profiles + "/debug/pprof/" }

// Log returns the end of the manager's log.
func (m *Manager) Log() string {
	f, err := os.Open(m.log)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	content, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-logTail), logTail))
	if err != nil {
		return err.Error()
	}
	return string(content)
}

func copyProgram(from, to string) error {
	content, err := os.ReadFile(from) //nolint:gosec // named by the caller
	if err != nil {
		return fmt.Errorf("copy the manager: %w", err)
	}
	if err := os.WriteFile(to, content, 0o700); err != nil { //nolint:gosec // a program
		return fmt.Errorf("copy the manager: %w", err)
	}
	return nil
}

// FreeAddress returns an unused address on loopback.
func FreeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}
