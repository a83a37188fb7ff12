package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// etcdDir is where a cluster keeps its state.
const etcdDir = "etcd"

// Snapshot is the state of a cluster as it was: what etcd had, and nothing of
// the world, such as disks. It lasts as long as its fleet.
type Snapshot struct{ dir string }

// Snapshot keeps the state of the cluster. etcd ends for it, and is started again
// at once; the rest continues, as over a failure of etcd.
func (c *Cluster) Snapshot(ctx context.Context) (*Snapshot, error) {
	s := &Snapshot{dir: c.path("snapshots", strconv.Itoa(int(c.snapshots.Add(1))))}
	// What a client was told is in the log, whatever the moment.
	if err := c.Process(Etcd).Kill(); err != nil {
		return nil, err
	}
	err := copyDir(s.dir, c.path(etcdDir))
	if err := errors.Join(err, c.startAll(ctx, Etcd, APIServer)); err != nil {
		return nil, fmt.Errorf("taking a snapshot of %s: %w", c.Name(), err)
	}
	return s, nil
}

// Restore puts the cluster back to a snapshot, at the same address, and starts
// everything that caches again. Revisions go back too and are used again, as with
// any restore from a backup that is not told to raise them. Disks stay as they
// are: they are the world.
func (c *Cluster) Restore(ctx context.Context, s *Snapshot) error {
	c.progress("%s: restoring", c.Name())
	if err := c.Stop(ctx); err != nil {
		return err
	}
	err := os.RemoveAll(c.path(etcdDir))
	if err := errors.Join(err, copyDir(c.path(etcdDir), s.dir)); err != nil {
		return fmt.Errorf("restoring %s: %w", c.Name(), err)
	}
	return c.boot(ctx)
}

// CloneHost starts a second host from a copy of the first one's state, with the
// same keys: the same identity, the same objects, tokens and certificates, at an
// address of its own. It lasts as long as the fleet.
func (f *Fleet) CloneHost(ctx context.Context, name string) (*Cluster, error) {
	state, err := f.Host.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	o := f.Host.options
	o.Name = name
	clone, err := f.newCluster(o, f.Host)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.clones = append(f.clones, clone)
	f.mu.Unlock()
	if err := copyDir(clone.path(etcdDir), state.dir); err != nil {
		return nil, fmt.Errorf("cloning the host: %w", err)
	}
	return clone, clone.boot(ctx)
}

// copyDir copies a directory to where nothing is yet.
func copyDir(to, from string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}
