package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// etcdDir is the directory with a cluster's state.
const etcdDir = "etcd"

// Snapshot is an earlier state of a cluster: the content of etcd, without external state such as
// disks. It exists as long as its fleet.
type Snapshot struct{ dir string }

// Snapshot saves the state of the cluster. It stops etcd and restarts it immediately. The other
// processes continue, as during a failure of etcd.
func (c *Cluster) Snapshot(ctx context.Context) (*Snapshot, error) {
	s := &Snapshot{dir: c.path("snapshots", strconv.Itoa(int(c.snapshots.Add(1))))}
	// At any time, etcd's log contains all acknowledged writes.
	if err := c.Process(Etcd).Kill(); err != nil {
		return nil, err
	}
	err := copyDir(s.dir, c.path(etcdDir))
	if err := errors.Join(err, c.startAll(ctx, Etcd, APIServer)); err != nil {
		return nil, fmt.Errorf("take a snapshot of %s: %w", c.Name(), err)
	}
	return s, nil
}

// Restore returns the cluster to a snapshot, at the same address, and restarts all processes that
// have caches. etcd reuses the later revisions, as after any restore that does not bump them.
// Disks do not change, because they are external.
func (c *Cluster) Restore(ctx context.Context, s *Snapshot) error {
	c.progress("%s: restoring", c.Name())
	if err := c.Stop(ctx); err != nil {
		return err
	}
	err := os.RemoveAll(c.path(etcdDir))
	if err := errors.Join(err, copyDir(c.path(etcdDir), s.dir)); err != nil {
		return fmt.Errorf("restore %s: %w", c.Name(), err)
	}
	return c.boot(ctx)
}

// CloneHost starts a second host from a copy of the first host's state and keys. The clone has the
// same identity, objects, tokens and certificates, but its own address. It exists as long as the
// fleet.
func (f *Fleet) CloneHost(ctx context.Context, name string) (*Cluster, error) {
	if err := requireResources(f.Dir(), 1); err != nil {
		return nil, err
	}
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
		return nil, fmt.Errorf("clone the host: %w", err)
	}
	return clone, clone.boot(ctx)
}

// copyDir copies a directory to a path that does not exist yet.
func copyDir(to, from string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}
