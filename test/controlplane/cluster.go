package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// maxSocketPath is the maximum length of a unix socket's path on all platforms.
const maxSocketPath = 103

// usableTimeout is the maximum time until nodes and service accounts exist once the control plane
// runs.
const usableTimeout = 60 * time.Second

// Cluster is one Kubernetes cluster. Its address, certificates and disks exist as long as its
// Fleet. Its methods are safe for concurrent use, except those that start and stop processes.
type Cluster struct {
	options ClusterOptions
	dir     string
	ordinal int
	// nodesOf is the name of the cluster after which the Nodes are named. A clone runs the Nodes
	// of its original.
	nodesOf  string
	progress func(format string, args ...any)
	programs programs

	ca         *authority
	client     kubernetes.Interface
	audit      *Audit
	proxy      *Proxy
	apiAddress string
	// kwokAddress is the address on which KWOK serves as the kubelet of all nodes.
	kwokAddress string
	// etcdAddress is the address on which etcd serves, without TLS.
	etcdAddress string

	processes []*Process   // in start order
	snapshots atomic.Int32 // used to create the cluster's objects
}

// newCluster prepares a cluster's addresses, certificates and arguments. Afterwards, only the
// proxy runs. A clone has the keys of its original.
func newCluster(f *Fleet, o ClusterOptions, ordinal int, original *Cluster) (*Cluster, error) {
	c := &Cluster{
		options: o, ordinal: ordinal, progress: f.options.Progress,
		dir: filepath.Join(f.options.Dir, o.Name), nodesOf: o.Name,
	}
	if original != nil {
		c.nodesOf = original.nodesOf
	}
	var err error
	if c.programs, err = f.programs.of(o.Version); err != nil {
		return nil, err
	}
	if n := len(c.socket()); o.Storage != nil && n > maxSocketPath {
		return nil, fmt.Errorf("%s: the path of a unix socket is longer than %d characters. Choose a shorter Options.Dir or TMPDIR",
			c.socket(), maxSocketPath)
	}
	if err := os.MkdirAll(c.path("logs"), 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of %s: %w", o.Name, err)
	}
	addresses, err := takeAddresses(&f.ports)
	if err != nil {
		return nil, err
	}
	c.apiAddress, c.kwokAddress, c.etcdAddress = addresses.apiServer, addresses.kwok, addresses.etcd
	if err := c.takeKeys(original); err != nil {
		return nil, err
	}
	if err := c.writeConfigs(); err != nil {
		return nil, err
	}
	config, err := c.RESTConfig(Direct)
	if err != nil {
		return nil, err
	}
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("create a client for %s: %w", o.Name, err)
	}
	if err := c.newAudit(); err != nil {
		return nil, err
	}
	c.processes = c.newProcesses(c.programs, addresses)
	if c.proxy, err = NewProxy(addresses.proxy, c.apiAddress); err != nil {
		return nil, err
	}
	return c, nil
}

// takeKeys sets the cluster's certificate authority and keys. A clone copies those of its original.
func (c *Cluster) takeKeys(original *Cluster) (err error) {
	if original != nil {
		c.ca = original.ca
		if err := copyDir(c.path("pki"), original.path("pki")); err != nil {
			return fmt.Errorf("copy the keys of %s: %w", original.Name(), err)
		}
		return nil
	}
	if c.ca, err = newAuthority(c.Name()); err != nil {
		return err
	}
	return c.ca.writePKI(c.path("pki"))
}

func (c *Cluster) newAudit() error {
	kubeconfig, err := c.UserKubeconfig(Direct, barrierUser)
	if err != nil {
		return err
	}
	config, err := restConfig(kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create a client for %s: %w", c.Name(), err)
	}
	c.audit = &Audit{path: c.path("audit.log"), client: client}
	return nil
}

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.options.Name }

// Dir returns the directory of the cluster's data; logs are in "logs" below it.
func (c *Cluster) Dir() string { return c.dir }

// path returns a path in the cluster's directory.
func (c *Cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.dir}, elements...)...)
}

// Client returns a cluster admin's client, without the proxy.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Proxy returns the proxy in front of the apiserver. Only clients with a ViaProxy kubeconfig use
// it.
func (c *Cluster) Proxy() *Proxy { return c.proxy }

// Audit returns the reader of the apiserver's audit log.
func (c *Cluster) Audit() *Audit { return c.audit }

// ID returns the cluster's identity, the UID of its kube-system namespace. It
// changes with Wipe.
func (c *Cluster) ID(ctx context.Context) (string, error) {
	ns, err := c.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the identity of %s: %w", c.Name(), err)
	}
	return string(ns.UID), nil
}

// NodeNames returns the names of the KWOK nodes.
func (c *Cluster) NodeNames() []string {
	names := make([]string, 0, c.options.Nodes)
	for i := range c.options.Nodes {
		names = append(names, fmt.Sprintf("%s-node-%d", c.nodesOf, i+1))
	}
	return names
}

// Process returns the cluster's process with that name, or nil.
func (c *Cluster) Process(name ProcessName) *Process {
	for _, p := range c.processes {
		if p.name == name {
			return p
		}
	}
	return nil
}

// Processes returns all processes of the cluster, in start order.
func (c *Cluster) Processes() []*Process { return slices.Clone(c.processes) }

// DriverDir returns the CSI driver's directory.
func (c *Cluster) DriverDir() string { return c.path("csi") }

// KWOKAddress returns the address on which KWOK serves as the kubelet of all nodes, without TLS.
func (c *Cluster) KWOKAddress() string { return c.kwokAddress }

// VolumesDir returns the directory with a subdirectory for each volume.
func (c *Cluster) VolumesDir() string { return csidriver.VolumesDir(c.DriverDir()) }

// Ledger reads the CSI driver's ledger.
func (c *Cluster) Ledger() (*ledger.Ledger, error) {
	return ledger.Read(csidriver.LedgerPath(c.DriverDir()))
}

// SetFaults replaces the faults that the CSI driver injects. Without arguments, it removes all
// faults.
func (c *Cluster) SetFaults(faults ...csidriver.Fault) error {
	return csidriver.SetFaults(c.DriverDir(), faults...)
}

// ReadData returns the content of a volume's disk: ledger.Entry.Data at first, and later what
// WriteData wrote.
func (c *Cluster) ReadData(volumeID string) (string, error) {
	return csidriver.ReadData(c.DriverDir(), volumeID)
}

// WriteData overwrites the content of a volume's disk, as a Pod would.
func (c *Cluster) WriteData(volumeID, data string) error {
	return csidriver.WriteData(c.DriverDir(), volumeID, data)
}

// socket returns the path of the CSI driver's socket.
func (c *Cluster) socket() string { return c.path("csi.sock") }

// boot calls Start and reports progress.
func (c *Cluster) boot(ctx context.Context) error {
	begin := time.Now()
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("start %s: %w", c.Name(), err)
	}
	c.progress("%s: up after %s", c.Name(), time.Since(begin).Round(100*time.Millisecond))
	return nil
}

// Start starts the processes that are not running and creates missing initial objects. It returns
// when nodes are Ready and Pods can be created.
func (c *Cluster) Start(ctx context.Context) error {
	// The apiserver itself waits for etcd, and takes the longest to start.
	if err := c.startAll(ctx, Etcd, APIServer); err != nil {
		return err
	}
	c.progress("%s: the API server is ready", c.Name())
	early, late := []ProcessName{ControllerManager, Scheduler, KWOK, CSIDriver, Resizer, Attacher}, []ProcessName(nil)
	if c.options.Snapshots {
		// csi-provisioner checks only at startup whether the API server serves VolumeSnapshots.
		late = []ProcessName{Provisioner, Snapshotter, SnapshotController}
	} else {
		early = append(early, Provisioner)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.ensureBase(groupCtx) })
	group.Go(func() error { return c.startAll(groupCtx, early...) })
	if err := group.Wait(); err != nil {
		return err
	}
	if err := c.startAll(ctx, late...); err != nil {
		return err
	}
	return c.awaitUsable(ctx)
}

// startAll starts processes in parallel. It ignores names that the cluster lacks.
func (c *Cluster) startAll(ctx context.Context, names ...ProcessName) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		if p := c.Process(name); p != nil {
			group.Go(func() error { return p.Start(ctx) })
		}
	}
	return group.Wait()
}

// Stop ends all processes in order. Start resumes with the same state.
func (c *Cluster) Stop(ctx context.Context) error {
	var errs []error
	for _, names := range [][]ProcessName{
		{ControllerManager, Scheduler, KWOK, Provisioner, Resizer, Snapshotter, Attacher, SnapshotController}, {CSIDriver, APIServer}, {Etcd},
	} {
		var group errgroup.Group
		for _, name := range names {
			if p := c.Process(name); p != nil {
				group.Go(func() error { return p.Stop(ctx) })
			}
		}
		errs = append(errs, group.Wait())
	}
	return errors.Join(errs...)
}

// Wipe replaces the cluster with a new one that has another identity and the same address.
// Certificates, and kubeconfigs with certificates, stay valid. The disks and the ledger stay.
func (c *Cluster) Wipe(ctx context.Context) error {
	c.progress("%s: wiping", c.Name())
	if err := c.Stop(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(c.path(etcdDir)); err != nil {
		return fmt.Errorf("wipe %s: %w", c.Name(), err)
	}
	return c.boot(ctx)
}

// retire ends all processes permanently.
func (c *Cluster) retire() error {
	var group errgroup.Group
	for _, p := range c.processes {
		group.Go(p.retire)
	}
	err := group.Wait()
	if c.proxy != nil {
		err = errors.Join(err, c.proxy.Close())
	}
	return err
}

// awaitUsable waits until nodes are Ready and Pods can be created.
func (c *Cluster) awaitUsable(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, usableTimeout, fmt.Errorf("not usable within %s", usableTimeout))
	defer cancel()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		lacking := c.unusable(ctx)
		if lacking == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w", c.Name(), context.Cause(ctx), lacking)
		case <-ticker.C:
		}
	}
}

// unusable returns an error that describes what is still missing.
func (c *Cluster) unusable(ctx context.Context) error {
	if c.options.APIOnly {
		return nil
	}
	_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the controller manager has not created service accounts: %w", err)
	}
	for _, name := range c.NodeNames() {
		node, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !nodeUsable(node) {
			return fmt.Errorf("node %s is not ready or still tainted", name)
		}
	}
	if len(c.NodeNames()) == 0 {
		return nil
	}
	return c.deletionsLimited(ctx, c.NodeNames()[0])
}

func nodeUsable(node *corev1.Node) bool {
	for _, t := range node.Spec.Taints {
		if t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable {
			return false
		}
	}
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}
