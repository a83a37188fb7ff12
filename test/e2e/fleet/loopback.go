package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// Loopback runs the same clusters as control planes on this machine, with the manager as a process.
// Pods do not really run, and Xylem is not installed.
type Loopback struct {
	progress func(format string, args ...any)
	x        *harness.Xylem
	host     *Cluster
	members  []*Cluster
}

// NewLoopback returns a fleet that is not started.
func NewLoopback(progress func(format string, args ...any)) *Loopback {
	return &Loopback{progress: progress}
}

// Host implements Fleet.
func (l *Loopback) Host() *Cluster { return l.host }

// Members implements Fleet.
func (l *Loopback) Members() []*Cluster { return l.members }

// Member implements Fleet.
func (l *Loopback) Member(name string) *Cluster { return find(l.members, name) }

// Kubelets implements Fleet.
func (*Loopback) Kubelets() bool { return false }

// Up implements Fleet.
func (l *Loopback) Up(ctx context.Context) (err error) {
	l.x, err = harness.Start(ctx, harness.Options{Members: controlplane.Members(First, Second), Progress: l.progress})
	if err != nil {
		return err
	}
	if l.host, err = newCluster(HostName, l.x.Fleet.Host.KubeconfigPath()); err != nil {
		return err
	}
	for _, name := range []string{First, Second} {
		member, err := newCluster(name, l.x.Member(name).KubeconfigPath())
		if err != nil {
			return err
		}
		l.members = append(l.members, member)
	}
	return nil
}

// Down implements Fleet.
func (l *Loopback) Down(ctx context.Context) error {
	if l.x == nil {
		return nil
	}
	return l.x.Stop(ctx)
}

// Register registers a running member.
func (l *Loopback) Register(ctx context.Context, name string) error {
	return l.x.Register(ctx, name, name)
}

// KillManager implements Fleet.
func (l *Loopback) KillManager(ctx context.Context) error {
	if err := l.x.Manager.Kill(); err != nil {
		return err
	}
	return l.x.Manager.Start(ctx)
}

// Cut implements Fleet.
func (l *Loopback) Cut(_ context.Context, member string) error {
	return l.x.Member(member).Proxy().SetMode(controlplane.Blackhole)
}

// Mend implements Fleet.
func (l *Loopback) Mend(_ context.Context, member string) error {
	return l.x.Member(member).Proxy().SetMode(controlplane.Pass)
}

// Kill implements Fleet.
func (l *Loopback) Kill(ctx context.Context, member string) error {
	return l.x.Member(member).Stop(ctx)
}

// Start implements Fleet.
func (l *Loopback) Start(ctx context.Context, member string) error {
	return l.x.Member(member).Start(ctx)
}

// Collect implements Fleet.
func (l *Loopback) Collect(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("create a directory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manager.log"), []byte(l.x.Manager.Log()), 0o600); err != nil {
		return fmt.Errorf("write the manager's log: %w", err)
	}
	for _, c := range append([]*Cluster{l.host}, l.members...) {
		if err := collectObjects(ctx, c, filepath.Join(dir, c.Name)); err != nil {
			return err
		}
	}
	return nil
}
