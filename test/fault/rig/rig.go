package rig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/fault/proxy"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// The names of the clusters, and of the members' nodes in the host.
const (
	Host    = "host"
	One     = "cluster38"
	Two     = "cluster39"
	NodeOne = v1alpha1.DefaultNodeNamePrefix + One
	NodeTwo = v1alpha1.DefaultNodeNamePrefix + Two
)

const (
	fenceDuration = 3 * time.Second
	probeInterval = time.Second
	nodeGrace     = 20 * time.Second
)

// The host's StorageClasses. All have the provisioner csi.xylem.io and WaitForFirstConsumer.
const (
	// ClassDelete has policy Delete on both sides.
	ClassDelete = controlplane.ClassHostpath
	// ClassImmediate maps to the members' Immediate class.
	ClassImmediate = "fast"
	// ClassRetain has policy Retain in the host and Delete in the members.
	ClassRetain = "retain-host"
	// ClassRetained has policy Delete in the host and Retain in the members.
	ClassRetained = controlplane.ClassRetained
	// ClassPromise is in promise mode. The members' class waits for a consumer and has policy
	// Delete.
	ClassPromise = "promise"
	// ClassScratch is like ClassPromise, but releases a disk one second after its last Pod has ended.
	ClassScratch = "scratch"
	// ClassImpatient is like ClassDelete, but Xylem reassigns a claim one second after a member
	// fails to provision it.
	ClassImpatient = "impatient"
)

// The host's VolumeSnapshotClasses. All have the driver csi.xylem.io.
const (
	// SnapshotDelete has policy Delete on both sides.
	SnapshotDelete = controlplane.ClassSnapshots
	// SnapshotRetain has policy Retain in the host and Delete in the members.
	SnapshotRetain = "retain-host-snapshots"
	// SnapshotRetained has policy Delete in the host and Retain in the members.
	SnapshotRetained = controlplane.ClassRetainedSnapshots
)

// The host's VolumeAttributesClasses. In the members, their names have the prefix
// memberAttributes.
const (
	AttributesGold   = "gold"
	AttributesSilver = "silver"

	memberAttributes = "member-"
)

// MemberAttributes returns the members' name for a VolumeAttributesClass of the host.
func MemberAttributes(host string) string { return memberAttributes + host }

// Options configures a rig.
type Options struct {
	// Manager is the manager's binary. If it is empty, Start builds it.
	Manager string
	// Downtime is the time between the manager's death and its restart.
	Downtime time.Duration
	// Progress receives progress messages.
	Progress func(format string, args ...any)
}

// Rig consists of the clusters, the proxies and the manager. Stop it after use.
type Rig struct {
	*harness.Xylem
	// IDs are the cluster IDs by name.
	IDs map[string]string
	// Writes are the writes that passed the proxies, in order.
	Writes *proxy.Log
	// Witness records the states of all objects in all clusters.
	Witness *Witness

	downtime time.Duration
	end      context.CancelFunc
	keeper   sync.WaitGroup

	// starting is held while the manager starts, and by Hold to prevent a start.
	starting sync.Mutex

	mu      sync.Mutex
	proxies map[string]*proxy.Proxy
	started time.Time // when the current manager process began
	lives   int
}

// Start starts a rig. If it fails, it stops everything that it has started.
func Start(ctx context.Context, o Options) (_ *Rig, err error) {
	r := &Rig{downtime: o.Downtime, IDs: map[string]string{}, Writes: proxy.NewLog(), proxies: map[string]*proxy.Proxy{}, end: func() {}}
	r.Xylem, err = harness.Start(ctx, harness.Options{
		Manager: o.Manager, Members: []controlplane.ClusterOptions{member(One), member(Two)}, Unregistered: true, Snapshots: true,
		Front: r.front, Progress: o.Progress, FenceDuration: fenceDuration, ProbeInterval: probeInterval,
		ManagerArgs: []string{"--node-grace=" + nodeGrace.String()},
	})
	if err != nil {
		r.closeProxies()
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Stop(context.WithoutCancel(ctx)))
		}
	}()
	for _, c := range r.Clusters() {
		if r.IDs[c.Name()], err = c.ID(ctx); err != nil {
			return nil, err
		}
	}
	for _, class := range classes() {
		if err := r.Host.API.Create(ctx, class); err != nil {
			return nil, fmt.Errorf("create StorageClass %s: %w", class.Name, err)
		}
	}
	for _, class := range snapshotClasses() {
		if err := r.Host.API.Create(ctx, class); err != nil {
			return nil, fmt.Errorf("create VolumeSnapshotClass %s: %w", class.Name, err)
		}
	}
	if err := r.createAttributes(ctx); err != nil {
		return nil, err
	}
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	r.end, r.started = end, time.Now()
	if r.Witness, err = watchAll(background, r.Clusters()); err != nil {
		return nil, err
	}
	r.keeper.Go(func() { r.keep(background) })
	for _, name := range []string{One, Two} {
		if err := r.Member(name).AllowCopies(ctx, controlplane.DefaultDriverName); err != nil {
			return nil, err
		}
		if err := r.Register(ctx, name, name, Shares); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Each member has one node, so that a Pod's node is not random.
func member(name string) controlplane.ClusterOptions {
	return controlplane.ClusterOptions{Name: name, Nodes: 1}
}

func classes() []*storagev1.StorageClass {
	all := make([]*storagev1.StorageClass, 0, 7)
	parameters := map[string]map[string]string{
		ClassRetain:    {v1alpha1.ParameterMemberClass: controlplane.ClassHostpath},
		ClassImpatient: {v1alpha1.ParameterMemberClass: controlplane.ClassHostpath, v1alpha1.ParameterPlacementTimeout: "1s"},
		ClassPromise:   {v1alpha1.ParameterMemberClass: controlplane.ClassHostpath, v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise},
		ClassScratch: {
			v1alpha1.ParameterMemberClass: controlplane.ClassHostpath, v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise,
			v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused, v1alpha1.ParameterReleaseGrace: "1s",
		},
	}
	for name, reclaim := range map[string]corev1.PersistentVolumeReclaimPolicy{
		ClassDelete: corev1.PersistentVolumeReclaimDelete, ClassImmediate: corev1.PersistentVolumeReclaimDelete,
		ClassRetained: corev1.PersistentVolumeReclaimDelete, ClassRetain: corev1.PersistentVolumeReclaimRetain,
		ClassPromise: corev1.PersistentVolumeReclaimDelete, ClassScratch: corev1.PersistentVolumeReclaimDelete,
		ClassImpatient: corev1.PersistentVolumeReclaimDelete,
	} {
		class := controlplane.Class(name, storagev1.VolumeBindingWaitForFirstConsumer, reclaim)
		class.Provisioner = v1alpha1.ProvisionerName
		class.Parameters = parameters[name]
		all = append(all, &class)
	}
	return all
}

func snapshotClasses() []*snapshotv1.VolumeSnapshotClass {
	return []*snapshotv1.VolumeSnapshotClass{
		harness.SnapshotClass(SnapshotDelete, snapshotv1.VolumeSnapshotContentDelete, nil),
		harness.SnapshotClass(SnapshotRetain, snapshotv1.VolumeSnapshotContentRetain,
			map[string]string{v1alpha1.ParameterMemberSnapshotClass: controlplane.ClassSnapshots}),
		harness.SnapshotClass(SnapshotRetained, snapshotv1.VolumeSnapshotContentDelete, nil),
	}
}

// createAttributes creates the VolumeAttributesClasses of all clusters.
func (r *Rig) createAttributes(ctx context.Context) error {
	for _, c := range r.Clusters() {
		for _, name := range []string{AttributesGold, AttributesSilver} {
			class := &storagev1.VolumeAttributesClass{DriverName: v1alpha1.ProvisionerName, Parameters: map[string]string{v1alpha1.ParameterMemberAttributesClass: MemberAttributes(name)}}
			class.Name = name
			if c != r.Host {
				class.Name, class.DriverName, class.Parameters = MemberAttributes(name), controlplane.DefaultDriverName, map[string]string{"iops": name}
			}
			if err := c.API.Create(ctx, class); err != nil {
				return fmt.Errorf("create VolumeAttributesClass %s in %s: %w", class.Name, c.Name(), err)
			}
		}
	}
	return nil
}

// front starts a proxy in front of a cluster, unless one is running, and returns a kubeconfig that
// uses the proxy.
func (r *Rig) front(c *controlplane.Cluster, kubeconfig []byte) ([]byte, error) {
	p, err := r.proxyOf(c)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of %s: %w", c.Name(), err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthorityData = p.URL(), p.CA()
	}
	if kubeconfig, err = clientcmd.Write(*config); err != nil {
		return nil, fmt.Errorf("write the kubeconfig of %s: %w", c.Name(), err)
	}
	return kubeconfig, nil
}

func (r *Rig) proxyOf(c *controlplane.Cluster) (*proxy.Proxy, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.proxies[c.Name()]; ok {
		return p, nil
	}
	server, err := url.Parse(c.Server(controlplane.Direct))
	if err != nil {
		return nil, fmt.Errorf("read the address of %s: %w", c.Name(), err)
	}
	p, err := proxy.New(proxy.Options{Name: c.Name(), Server: server, CA: c.CA(), Log: r.Writes})
	if err != nil {
		return nil, fmt.Errorf("start the proxy of %s: %w", c.Name(), err)
	}
	p.OnKill(r.kill)
	r.proxies[c.Name()] = p
	return p, nil
}

// Proxy returns the proxy in front of a cluster.
func (r *Rig) Proxy(name string) *proxy.Proxy {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.proxies[name]
}

// Proxies returns all proxies by cluster name.
func (r *Rig) Proxies() []*proxy.Proxy {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*proxy.Proxy, 0, len(r.proxies))
	for _, name := range slices.Sorted(maps.Keys(r.proxies)) {
		all = append(all, r.proxies[name])
	}
	return all
}

func (r *Rig) closeProxies() {
	for _, p := range r.Proxies() {
		p.Close()
	}
}

// Stop stops all processes. It ignores panics of the manager, because the runs judge them, and a
// mutant may still be panicking.
func (r *Rig) Stop(ctx context.Context) error {
	r.end()
	r.keeper.Wait()
	defer r.closeProxies()
	err := r.Manager.Kill()
	_ = r.Panics()
	return errors.Join(err, r.Xylem.Stop(ctx))
}

// Shares makes a registration share the rig's backend. Scenarios that register a member again must
// use it, because the next scenario may use a shared volume.
func Shares(cr *v1alpha1.ClusterRegistration) {
	harness.Shares("files", controlplane.DefaultDriverName, controlplane.ClassHostpath)(cr)
}
