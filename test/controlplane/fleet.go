package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

const (
	// dirPrefix is the prefix of temporary data directories.
	dirPrefix = "xylem-clusters-"
	// lockFile is locked while a data directory is in use.
	lockFile = ".lock"
	// sweepAge is the minimum age at which an unlocked data directory counts as abandoned, because a
	// new one may not be locked yet.
	sweepAge = time.Minute
)

// Fleet is a host and its members. Its methods are safe for concurrent use.
type Fleet struct {
	// Host is the cluster of Xylem's users.
	Host *Cluster

	options  Options
	programs programs
	ports    ports
	lock     *os.File

	mu      sync.Mutex
	members []*Cluster
	clones  []*Cluster
	ordinal int // number of clusters created so far, for unique addresses
	stopped bool
}

// programs are the paths of the clusters' programs.
type programs struct {
	root, dir, csiDriver string
	// controlPlane maps the names of the control plane's programs to their paths, if the cluster's
	// version is not the default.
	controlPlane map[string]string
}

func (p programs) path(name string) string {
	return cmp.Or(p.controlPlane[name], filepath.Join(p.dir, name))
}

// of returns the programs for a cluster of the given version; "" is the default.
func (p programs) of(version string) (_ programs, err error) {
	p.controlPlane = nil
	if version != "" {
		p.controlPlane, err = kubebin.ControlPlane(p.root, version)
	}
	return p, err
}

// Start starts a host and its members, in parallel, and returns when all are usable: nodes are
// Ready and Pods can be created. After an error, nothing is left running. The error wraps
// kubebin.ErrMissing if the programs have not been built. Stop the fleet after use; the end of
// ctx does not stop it.
func Start(ctx context.Context, o Options) (_ *Fleet, err error) {
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	if o.Timeout == 0 {
		o.Timeout = startTimeout
	}
	o.KeepData = o.KeepData || o.Dir != ""
	f := &Fleet{options: o}
	if f.programs, err = findPrograms(ctx, o); err != nil {
		return nil, err
	}
	if err := f.makeDir(); err != nil {
		return nil, err
	}
	followParents()
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Stop(context.WithoutCancel(ctx)))
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("the clusters did not start within %s", o.Timeout))
	defer cancel()

	begin := time.Now()
	if err := requireResources(f.Dir(), 1+len(o.Members)); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	host := o.Host.withDefaults(true)
	if f.Host, err = f.newCluster(host, nil); err != nil {
		return nil, err
	}
	group.Go(func() error { return f.Host.boot(ctx) })
	for _, m := range o.Members {
		c, err := f.newMember(m)
		if err != nil {
			cancel()
			return nil, errors.Join(err, group.Wait())
		}
		group.Go(func() error { return c.boot(ctx) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	o.Progress("clusters: %d up after %s, data in %s", 1+len(o.Members), time.Since(begin).Round(100*time.Millisecond), f.Dir())
	return f, nil
}

// findPrograms finds the cluster programs, and builds the tests' CSI driver if necessary.
func findPrograms(ctx context.Context, o Options) (programs, error) {
	root, err := kubebin.Root()
	if err != nil {
		return programs{}, err
	}
	p := programs{root: root, dir: o.BinDir}
	if p.dir == "" {
		if p.dir, err = kubebin.Dir(root); err != nil {
			return programs{}, err
		}
	}
	if err := kubebin.Check(p.dir, kubebin.Core()); err != nil {
		return programs{}, err
	}
	p.csiDriver, err = kubebin.CSIDriver(ctx, root, o.Progress)
	return p, err
}

// makeDir creates the data directory. If it is temporary, makeDir also removes the directories of
// programs that no longer run.
func (f *Fleet) makeDir() error {
	if f.options.Dir != "" {
		dir, err := filepath.Abs(f.options.Dir)
		if err != nil {
			return fmt.Errorf("create the data directory: %w", err)
		}
		f.options.Dir = dir
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create the data directory: %w", err)
		}
		return nil
	}
	sweep()
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return fmt.Errorf("create the data directory: %w", err)
	}
	f.options.Dir = dir
	if !f.options.KeepData {
		f.lock = tryLock(filepath.Join(dir, lockFile))
	}
	return nil
}

// sweep removes the directories of killed programs. It ignores failures.
func sweep() {
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*", lockFile))
	for _, path := range locks {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < sweepAge {
			continue
		}
		if lock := tryLock(path); lock != nil {
			_ = os.RemoveAll(filepath.Dir(path))
			_ = lock.Close()
		}
	}
}

// clusterName matches names that can be part of file and node names.
var clusterName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

func (f *Fleet) newCluster(o ClusterOptions, original *Cluster) (*Cluster, error) {
	if !clusterName.MatchString(o.Name) {
		return nil, fmt.Errorf("cluster name %q: want lower case letters, digits and dashes", o.Name)
	}
	if err := kubebin.Check(f.programs.dir, o.extras()); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return nil, errors.New("the fleet was stopped")
	}
	f.ordinal++
	return newCluster(f, o, f.ordinal, original)
}

func (f *Fleet) newMember(o ClusterOptions) (*Cluster, error) {
	if f.Member(o.Name) != nil || o.Name == f.Host.Name() {
		return nil, fmt.Errorf("two clusters have the name %q", o.Name)
	}
	c, err := f.newCluster(o.withDefaults(false), nil)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = append(f.members, c)
	return c, nil
}

// AddMember starts one more member. If that fails, it removes the member again.
func (f *Fleet) AddMember(ctx context.Context, o ClusterOptions) (*Cluster, error) {
	if err := requireResources(f.Dir(), 1); err != nil {
		return nil, err
	}
	c, err := f.newMember(o)
	if err != nil {
		return nil, err
	}
	if err := c.boot(ctx); err != nil {
		f.mu.Lock()
		f.members = slices.DeleteFunc(f.members, func(m *Cluster) bool { return m == c })
		f.mu.Unlock()
		return nil, errors.Join(err, c.retire())
	}
	return c, nil
}

// Members returns the members in the order in which they were added.
func (f *Fleet) Members() []*Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.members)
}

// Member returns the member with that name, or nil.
func (f *Fleet) Member(name string) *Cluster {
	for _, m := range f.Members() {
		if m.Name() == name {
			return m
		}
	}
	return nil
}

// Clusters returns the host and the members.
func (f *Fleet) Clusters() []*Cluster {
	var all []*Cluster
	if f.Host != nil {
		all = append(all, f.Host)
	}
	return append(all, f.Members()...)
}

// Dir returns the directory of all data and logs, with a subdirectory for each cluster.
func (f *Fleet) Dir() string { return f.options.Dir }

// Kubectl returns the path of a kubectl that matches the clusters' version.
func (f *Fleet) Kubectl() string { return f.programs.path(kubebin.Kubectl) }

// KubectlCache is a variable for kubectl's environment. With it, kubectl stores what it learns about
// the clusters among their data, and not in the user's home directory, where it would stay.
func (f *Fleet) KubectlCache() string { return "KUBECACHEDIR=" + filepath.Join(f.Dir(), "kubectl") }

// Stop kills every process, and removes the data unless it must be kept. It does not stop the
// processes gracefully, because the data need not be consistent. A second call does nothing.
func (f *Fleet) Stop(context.Context) error {
	f.mu.Lock()
	if f.stopped {
		f.mu.Unlock()
		return nil
	}
	f.stopped = true
	clones := f.clones
	f.mu.Unlock()

	var group errgroup.Group
	for _, c := range append(f.Clusters(), clones...) {
		group.Go(c.retire)
	}
	err := group.Wait()
	f.ports.release()
	if f.options.KeepData {
		return err
	}
	err = errors.Join(err, os.RemoveAll(f.options.Dir))
	if f.lock != nil {
		_ = f.lock.Close()
	}
	return err
}
