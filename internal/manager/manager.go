package manager

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/backlog"
	"github.com/xylem-io/xylem/internal/controller/orphan"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/reduced"
	"github.com/xylem-io/xylem/internal/reflection"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// userAgent is the user agent of all requests.
	userAgent = "xylem"
	// LeaderElectionID names the Lease that the leading replica holds.
	LeaderElectionID = v1alpha1.LeaderLease
)

// Run runs the manager for the host with the given client configuration, until the context
// ends.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	if err := o.CompleteAndValidate(); err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	config = hostClientConfig(config)

	// On every replica, the node API authenticates its callers against the host.
	asking := configWithoutTimeout(config)

	// The heartbeat writes on every replica. All other writers run only on the leader.
	renewing := dedicatedConnectionConfig(config)
	beats, err := client.New(renewing, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("create a client for the host: %w", err)
	}
	me := newProcessIdentity()
	var lock resourcelock.Interface
	leads := func() error { return nil }
	revision := fencing.NewRevisionMonitor(beats, o.ProbeInterval)
	if o.LeaderElect {
		lease, err := New(renewing, o.Namespace, LeaderElectionID, me, revision.RecordRestore)
		if err != nil {
			return err
		}
		lock, leads = lease, lease.CheckRenewed
		config.Wrap(lease.WrapTransport)
	}
	live, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("create a client for the host: %w", err)
	}
	host, err := identifyHost(ctx, config, live)
	if err != nil {
		return err
	}
	watches, err := newWatchClient(config, revision)
	if err != nil {
		return err
	}
	pods := newHostPods()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                              scheme,
		Cache:                               hostCacheOptions(o.Namespace, watches, revision, pods),
		NewCache:                            newIndexedCache,
		Metrics:                             metricsServerOptions(o),
		HealthProbeBindAddress:              o.ProbeAddress,
		PprofBindAddress:                    o.PprofAddress,
		LeaderElection:                      o.LeaderElect,
		LeaderElectionID:                    LeaderElectionID, // the lock's name in metrics
		LeaderElectionResourceLockInterface: lock,
		LeaseDuration:                       ptr.To(LeaseDuration),
		RenewDeadline:                       ptr.To(RenewDeadline),
		LeaderElectionReleaseOnCancel:       true, // safe, because the process exits when Run returns
	})
	if err != nil {
		return fmt.Errorf("create the manager: %w", err)
	}
	router, err := prepareHostCache(ctx, mgr, live, pods)
	if err != nil {
		return err
	}
	claims := backlog.New(clock.RealClock{}, o.ClaimsInProgress)
	if err := claims.WatchHostVolumes(ctx, mgr.GetCache()); err != nil {
		return err
	}
	w := wiring{
		nodeAPIConfig: asking, mgr: mgr, live: live, revision: revision, heartbeatClient: beats, checkLeading: leads, host: host, options: o, router: router, identity: me,
		orphans: account.NewOrphanTracker(), stuck: account.NewStuckDeletions(), mirrorTracker: account.NewMirrorTracker(mgr.GetCache(), live), latency: account.NewProvisioningLatency(clock.RealClock{}), backlog: claims, classes: reflection.NewMemberClasses(),
		snapshots: route.NewOptionalCache(), clock: clock.RealClock{}, inventories: orphan.NewInventorySlots(),
	}
	if err := w.addHostControllers(); err != nil {
		return err
	}
	for name, check := range map[string]func(string, healthz.Checker) error{"healthz": mgr.AddHealthzCheck, "readyz": mgr.AddReadyzCheck} {
		if err := check("ping", healthz.Ping); err != nil {
			return fmt.Errorf("add the %s check: %w", name, err)
		}
	}
	ctrl.Log.Info("starting", "host", host.id, "version", host.version, "namespace", o.Namespace)
	return mgr.Start(ctx)
}

// hostClientConfig returns the configuration for all clients of the host. It disables compression,
// because the network to the host is fast. Otherwise, since Kubernetes 1.37, the API server would
// compress each event of a watch, and the manager would have to decompress it.
func hostClientConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	config.QPS = -1 // the API server limits the rate (API Priority and Fairness)
	config.DisableCompression = true
	config.Timeout = CallTimeout
	return config
}

// dedicatedConnectionConfig returns the configuration for clients that renew Leases. client-go shares connections,
// except those of a custom dialer. On a shared connection, a renewal after a restart would wait
// behind the lists of all claims and volumes, and the process would lose its leadership.
func dedicatedConnectionConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Dial = (&net.Dialer{Timeout: CallTimeout}).DialContext
	return config
}

// configWithoutTimeout returns the configuration for clients that also watch.
func configWithoutTimeout(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Timeout = 0
	return config
}

// newWatchClient returns a client for watches. It has no timeout, because a timeout would end watches and
// the initial lists of large caches.
func newWatchClient(config *rest.Config, revision *fencing.RevisionMonitor) (*http.Client, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 0
	config.Wrap(revision.WrapTransport)
	watches, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create a client for the host's watches: %w", err)
	}
	return watches, nil
}

// prepareHostCache prepares the host's cache: what it keeps of Pods, its indexes and its event handlers.
func prepareHostCache(ctx context.Context, mgr ctrl.Manager, live client.Reader, pods *hostPods) (*route.Router, error) {
	if err := waitUntilServed(ctx, mgr.GetRESTMapper(), v1alpha1.GroupVersion.WithKind("ClusterRegistration")); err != nil {
		return nil, err
	}
	if err := pods.readVirtualNodes(ctx, live); err != nil {
		return nil, err
	}
	if err := index.SetupHostIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	router := route.New(mgr.GetCache())
	return router, router.SetupHandlers(ctx)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, snapshotv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	return scheme, nil
}

// hostIdentity contains the host's identity and version.
type hostIdentity struct{ id, version string }

func identifyHost(ctx context.Context, config *rest.Config, live client.Client) (hostIdentity, error) {
	var system corev1.Namespace
	if err := live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return hostIdentity{}, fmt.Errorf("read the kube-system namespace, whose UID identifies the host: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return hostIdentity{}, fmt.Errorf("create a discovery client for the host: %w", err)
	}
	info, err := d.ServerVersion()
	if err != nil {
		return hostIdentity{}, fmt.Errorf("read the host's version: %w", err)
	}
	return hostIdentity{string(system.UID), info.GitVersion}, nil
}

// newProcessIdentity returns a unique identity for this process.
func newProcessIdentity() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "manager"
	}
	return name + "_" + string(uuid.NewUUID())
}

// hostCacheOptions configures the host's cache. Of Secrets and CSIStorageCapacities, it contains only
// those in the manager's namespace, of CSINodes, only those that Xylem created, and of Pods, those that
// may concern it. The manager reads all others live.
func hostCacheOptions(namespace string, watches *http.Client, revision *fencing.RevisionMonitor, pods *hostPods) cache.Options {
	own := map[string]cache.Config{namespace: {}}
	pods.pods.Reduce, pods.pods.OnSeen = pods.reducePod, revision.RecordRevision
	return cache.Options{
		HTTPClient:       watches,
		NewInformer:      pods.newInformer,
		DefaultTransform: revision.WrapTransform(cache.TransformStripManagedFields()),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:                {Namespaces: own},
			&storagev1.CSIStorageCapacity{}: {Namespaces: own},
			&storagev1.CSINode{}:            {Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue})},
			&v1alpha1.ClusterRegistration{}: {Transform: revision.WrapTransform(pods.transformRegistration)},
			&corev1.Node{}:                  {Transform: revision.WrapTransform(reduceHostNode)},
			&corev1.PersistentVolumeClaim{}: {Transform: revision.WrapTransform(reduced.InternTransform)},
			&corev1.PersistentVolume{}:      {Transform: revision.WrapTransform(reduced.InternTransform)},
		},
	}
}

// newIndexedCache creates the host's cache.
func newIndexedCache(config *rest.Config, o cache.Options) (cache.Cache, error) {
	built, err := cache.New(config, o)
	if err != nil {
		return nil, fmt.Errorf("create the host's cache: %w", err)
	}
	return index.NewCache(built), nil
}

// reduceHostNode drops large fields that kubelets report and Xylem does not read.
func reduceHostNode(obj any) (any, error) {
	if node, ok := obj.(*corev1.Node); ok {
		node.ManagedFields = nil
		node.Status.Images = nil
		node.Status.VolumesInUse = nil
		node.Status.VolumesAttached = nil
	}
	return obj, nil
}

func metricsServerOptions(o Options) metricsserver.Options {
	server := metricsserver.Options{BindAddress: o.MetricsAddress, SecureServing: o.MetricsSecure, TLSOpts: []func(*tls.Config){disableHTTP2}}
	if o.MetricsSecure {
		server.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return server
}

// hostAsNode returns a client for the host that impersonates a node. The API server adds the groups.
func (w *wiring) hostAsNode(node string) (client.Client, error) {
	config := rest.CopyConfig(w.mgr.GetConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: nodes.UserName(node)}
	asNode, err := client.New(config, client.Options{Scheme: w.mgr.GetScheme(), Mapper: w.mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("create a client for the host that acts as node %s: %w", node, err)
	}
	return asNode, nil
}

// hostCABundle returns the certificates with which the manager verifies the host's API server. It is empty if these are the
// system's.
func hostCABundle(config *rest.Config) ([]byte, error) {
	loaded := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: config.CAFile, CAData: config.CAData}}
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return nil, fmt.Errorf("load the CA of the host's API server: %w", err)
	}
	return loaded.CAData, nil
}

// newFleet creates the fleet of members.
func (w *wiring) newFleet(admit func(context.Context, fleet.Registration, member.Identity) error) *fleet.Fleet {
	return fleet.New(fleet.Config{
		HostID: w.host.id, Namespace: w.options.Namespace, Identity: w.identity, UserAgent: userAgent,
		Scheme: w.mgr.GetScheme(), Host: w.client, HostLive: w.live, HostAsNode: w.hostAsNode, SecretsAsNode: w.options.SecretsAccess == secretsAccessNode,
		Router: w.router, Recorder: w.newEventRecorder(), HostSnapshots: w.snapshots,
		AllowInsecure: w.options.AllowInsecure, AllowLoopback: w.options.AllowLoopback,
		FenceDuration: w.options.FenceDuration, ProbeInterval: w.options.ProbeInterval, EpochInterval: w.options.EpochInterval,
		RecheckInterval: w.options.RecheckInterval, SyncTimeout: syncTimeout, CheckLeading: w.checkLeading, Revision: w.revision,
		Limits:      budget.MemoryLimits{ResponseBytes: w.options.AnswerLimit.Value(), CacheBytes: w.options.CacheLimit.Value()},
		AdmitMember: admit, SetupLink: w.addMemberControllers, Log: ctrl.Log.WithName("member"),
	})
}

// disableHTTP2 disables HTTP/2 on the manager's servers, because clients could exhaust them with
// stream resets (CVE-2023-44487).
func disableHTTP2(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }
