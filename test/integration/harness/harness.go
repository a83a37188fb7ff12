package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

const (
	// HostUser is the manager's user name in the host's audit log.
	HostUser = "system:serviceaccount:xylem-system:xylem-controller-manager"
	// MemberUser is the manager's user name in members' audit logs.
	MemberUser = "system:serviceaccount:xylem-system:xylem"

	managerAccount = "xylem-controller-manager"
	memberAccount  = "xylem"
	deployment     = "xylem-controller-manager"

	// ShippedFence is the manager's default for --fence-duration, for tests of the defaults.
	ShippedFence = 30 * time.Second
	// ShippedProbe is the manager's default for --probe-interval.
	ShippedProbe = 10 * time.Second

	// fenceDuration and probeInterval are the manager's settings unless Options override them. They
	// are a fifth of the manager's defaults, so that stories about reconnecting are short.
	fenceDuration = 6 * time.Second
	probeInterval = 2 * time.Second

	// poll is the polling interval, and patience is the timeout.
	poll     = 100 * time.Millisecond
	patience = 90 * time.Second
)

// Options configures Start. The zero value means a host and two members, cluster38 and cluster39,
// which are registered under their own names.
type Options struct {
	// Host and Members are passed to controlplane.Start.
	Host    controlplane.ClusterOptions
	Members []controlplane.ClusterOptions
	// Snapshots enables VolumeSnapshots in the host and the Members. Attach makes the Members'
	// drivers attach volumes. See controlplane.ClusterOptions.
	Snapshots, Attach bool
	// Dir and KeepData are passed to controlplane.Start.
	Dir      string
	KeepData bool
	// Unregistered leaves the members unregistered. Unprepared also omits config/member.
	Unregistered, Unprepared bool
	// Alone lists members to which Start does not apply config/member.
	Alone []string
	// Bare only starts the clusters: the caller installs Xylem, and RunManager starts the
	// manager. Manager is required.
	Bare bool
	// Manager is the manager's binary, which is copied, because the caller may replace it. If it is
	// empty, Start uses that of kubebin.Manager.
	Manager string
	// FenceDuration and ProbeInterval are flags of the manager. 0 means 6 s and 2 s.
	FenceDuration, ProbeInterval time.Duration
	// ManagerArgs are additional arguments for the manager. Later ones take precedence.
	ManagerArgs []string
	// ManagerEnv contains additional environment variables for the manager, as NAME=value.
	ManagerEnv []string
	// HostRoute is the manager's route to the host.
	HostRoute controlplane.Route
	// Front, if set, redirects the manager: it is called with each of the manager's kubeconfigs,
	// for the host and for members, and returns the one to use instead.
	Front func(c *controlplane.Cluster, kubeconfig []byte) ([]byte, error)
	// Progress receives a line, without a line break, about each long step.
	Progress func(format string, args ...any)
}

// Cluster is one of the clusters, with a client.
type Cluster struct {
	*controlplane.Cluster
	// API is a cluster admin's client without a proxy or a cache.
	API client.WithWatch
}

// Xylem is a host, its members and the manager. Stop it after use.
type Xylem struct {
	// Fleet contains the clusters of test/controlplane.
	Fleet *controlplane.Fleet
	// Host is the host.
	Host *Cluster
	// Manager is the manager's process.
	Manager *Manager

	root     string
	options  Options
	progress func(format string, args ...any)
	front    func(c *controlplane.Cluster, kubeconfig []byte) ([]byte, error)

	mu       sync.Mutex
	members  map[string]*Cluster
	managers []*Manager
}

// Start starts the clusters, applies config/ to them, starts the manager and registers the members.
// It returns when all of them are Ready. After an error, it stops everything that it started.
func Start(ctx context.Context, o Options) (_ *Xylem, err error) {
	log.SetLogger(logr.Discard()) // clients must not log
	if o.Members == nil {
		o.Members = controlplane.Members("cluster38", "cluster39")
	}
	o.Host, o.Members = o.withExtras()
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	if o.Front == nil {
		o.Front = func(_ *controlplane.Cluster, kubeconfig []byte) ([]byte, error) { return kubeconfig, nil }
	}
	x := &Xylem{options: o, progress: o.Progress, front: o.Front, members: map[string]*Cluster{}}
	if x.root, err = kubebin.Root(); err != nil {
		return nil, err
	}
	binary := o.Manager
	// The manager is built while the clusters start.
	group, startCtx := errgroup.WithContext(ctx)
	if binary == "" {
		group.Go(func() error {
			built, err := kubebin.Manager(startCtx, x.root, x.progress)
			binary = built
			return err
		})
	}
	group.Go(func() error {
		fleet, err := controlplane.Start(startCtx, controlplane.Options{
			Host: o.Host, Members: o.Members, Dir: o.Dir, KeepData: o.KeepData, Progress: o.Progress,
		})
		x.Fleet = fleet
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, x.Stop(context.WithoutCancel(ctx)))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if x.Host, err = newCluster(x.Fleet.Host); err != nil || o.Bare {
		return x, err
	}
	if err := x.install(ctx); err != nil {
		return nil, err
	}
	if err := x.runManager(ctx, binary); err != nil {
		return nil, err
	}
	return x, x.adopt(ctx, !o.Unregistered && !o.Unprepared)
}

// withExtras returns the clusters' options with Snapshots and Attach, and without the check of policies'
// types, which costs a seventh of a cluster's start. Suite manifests checks the types.
func (o Options) withExtras() (host controlplane.ClusterOptions, members []controlplane.ClusterOptions) {
	host, members = withoutTypeCheck(o.Host), slices.Clone(o.Members)
	host.Snapshots = host.Snapshots || o.Snapshots
	for i := range members {
		members[i] = withoutTypeCheck(members[i])
		members[i].Snapshots = members[i].Snapshots || o.Snapshots
		members[i].Attach = members[i].Attach || o.Attach
	}
	return host, members
}

// withoutTypeCheck disables the controller that checks the types in ValidatingAdmissionPolicies.
func withoutTypeCheck(c controlplane.ClusterOptions) controlplane.ClusterOptions {
	return c.WithArgs(controlplane.ControllerManager, "--controllers=*,-validatingadmissionpolicy-status-controller")
}

// RunManager starts the manager of a Bare fleet, once its account exists.
func (x *Xylem) RunManager(ctx context.Context) error { return x.runManager(ctx, x.options.Manager) }

func (x *Xylem) runManager(ctx context.Context, binary string) (err error) {
	if x.Manager == nil {
		if x.Manager, err = x.newManager(ctx, "manager", x.Fleet.Host, binary, x.options); err != nil {
			return err
		}
	}
	return x.Manager.Start(ctx)
}

// adopt prepares and registers the initial members of the fleet.
func (x *Xylem) adopt(ctx context.Context, register bool) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range x.Fleet.Members() {
		group.Go(func() error {
			if err := x.prepare(ctx, m); err != nil {
				return err
			}
			if !register {
				return nil
			}
			return x.Register(ctx, m.Name(), m.Name())
		})
	}
	return group.Wait()
}

// Stop stops all processes, and removes the data unless KeepData is set. It fails if a manager has
// panicked since the last call of Panics.
func (x *Xylem) Stop(ctx context.Context) error {
	var err error
	if x.Manager != nil {
		err = x.Manager.Kill()
	}
	err = errors.Join(err, x.Panics())
	if x.Fleet != nil {
		err = errors.Join(err, x.Fleet.Stop(ctx))
	}
	return err
}

// Root returns the root of the repository.
func (x *Xylem) Root(elements ...string) string {
	return filepath.Join(append([]string{x.root}, elements...)...)
}

// Member returns the member with that name, or nil.
func (x *Xylem) Member(name string) *Cluster {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.members[name]
}

// Members returns the prepared members by name.
func (x *Xylem) Members() []*Cluster {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := make([]*Cluster, 0, len(x.members))
	for _, m := range x.members {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *Cluster) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}

// Clusters returns the host and the members.
func (x *Xylem) Clusters() []*Cluster { return append([]*Cluster{x.Host}, x.Members()...) }

// AddMember starts another member and applies config/member to it. It does not register the
// member.
func (x *Xylem) AddMember(ctx context.Context, o controlplane.ClusterOptions) (*Cluster, error) {
	c, err := x.Fleet.AddMember(ctx, withoutTypeCheck(o))
	if err != nil {
		return nil, err
	}
	if err := x.prepare(ctx, c); err != nil {
		return nil, err
	}
	return x.Member(o.Name), nil
}

// CloneHost starts a clone of the host, with all of the host's objects.
func (x *Xylem) CloneHost(ctx context.Context, name string) (*Cluster, error) {
	c, err := x.Fleet.CloneHost(ctx, name)
	if err != nil {
		return nil, err
	}
	return newCluster(c)
}

// RemoveMember stops a member permanently. The caller must delete its registration.
func (x *Xylem) RemoveMember(ctx context.Context, name string) error {
	x.mu.Lock()
	delete(x.members, name)
	x.mu.Unlock()
	return x.Fleet.Member(name).Stop(ctx)
}

// prepare prepares a member as its admin would.
func (x *Xylem) prepare(ctx context.Context, c *controlplane.Cluster) error {
	member, err := newCluster(c)
	if err != nil {
		return err
	}
	if !x.options.Unprepared && !slices.Contains(x.options.Alone, c.Name()) {
		if _, err := x.Kubectl(ctx, c, "apply", "--server-side", "-k", x.Root("config", "member")); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.members[c.Name()] = member
	return nil
}

// PrepareAnew applies config/member again to a member that was wiped.
func (x *Xylem) PrepareAnew(ctx context.Context, name string) error {
	return x.prepare(ctx, x.Fleet.Member(name))
}

// install installs Xylem as the host's admin would: it applies config/default, but with the
// Deployment scaled to 0, because the manager runs as a local process, and config/keys if the host serves
// its policy.
func (x *Xylem) install(ctx context.Context) error {
	x.progress("host: applying config/default")
	overlay := filepath.Join(x.Fleet.Dir(), "overlay")
	relative, err := filepath.Rel(overlay, x.Root("config", "default"))
	if err != nil {
		return fmt.Errorf("find config/default: %w", err)
	}
	if err := os.MkdirAll(overlay, 0o700); err != nil {
		return fmt.Errorf("create the overlay: %w", err)
	}
	content := fmt.Sprintf("resources: [%s]\nreplicas: [{name: %s, count: 0}]\n", relative, deployment)
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		return fmt.Errorf("write the overlay: %w", err)
	}
	if _, err := x.Kubectl(ctx, x.Fleet.Host, "apply", "--server-side", "-k", overlay); err != nil {
		return err
	}
	version, err := x.Fleet.Host.Client().Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("read the host's version: %w", err)
	}
	if kubebin.CompareVersions(version.Major+"."+version.Minor, "1.36") >= 0 {
		if _, err := x.Kubectl(ctx, x.Fleet.Host, "apply", "--server-side", "-k", x.Root("config", "keys")); err != nil {
			return err
		}
	}
	_, err = x.Kubectl(ctx, x.Fleet.Host, "wait", "--for=condition=Established", "--timeout=60s", "crd/clusterregistrations.cluster.xylem.io")
	return err
}

// Kubectl runs kubectl as an admin of the cluster and returns its output.
func (x *Xylem) Kubectl(ctx context.Context, c *controlplane.Cluster, args ...string) (string, error) {
	command := exec.CommandContext(ctx, x.Fleet.Kubectl(), append([]string{"--kubeconfig", c.KubeconfigPath()}, args...)...) //nolint:gosec // our own kubectl
	command.Env = append(os.Environ(), x.Fleet.KubectlCache())
	var complaints strings.Builder
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s in %s: %w: %s", strings.Join(args, " "), c.Name(), err, complaints.String())
	}
	return string(out), nil
}

func newCluster(c *controlplane.Cluster) (*Cluster, error) {
	config, err := c.RESTConfig(controlplane.Direct)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, snapshotv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create a client for %s: %w", c.Name(), err)
	}
	return &Cluster{Cluster: c, API: api}, nil
}

// Await polls until done returns nil. On a timeout, it returns the last error.
func Await(ctx context.Context, what string, done func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		err := done(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w", what, ctx.Err(), err)
		case <-ticker.C:
		}
	}
}
