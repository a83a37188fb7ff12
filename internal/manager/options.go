package manager

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/backlog"
	"github.com/xylem-io/xylem/internal/controller/membertoken"
	"github.com/xylem-io/xylem/internal/controller/orphan"
	"github.com/xylem-io/xylem/internal/controller/rootpvc"
	"github.com/xylem-io/xylem/internal/controller/stuck"
	"github.com/xylem-io/xylem/internal/controller/virtualnode"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/budget"
)

// Options are the manager's flags.
type Options struct {
	// Namespace is the namespace of the manager, of its Secrets, records and published capacity in
	// the host, and of its fences in members.
	Namespace string
	// LeaderElect enables leader election, which is required if there are several replicas.
	LeaderElect bool
	// MetricsAddress is the address on which metrics are served, with TLS and authorization if
	// MetricsSecure is set; "0" disables them. ProbeAddress is the address of /healthz and /readyz.
	MetricsAddress, ProbeAddress string
	// PprofAddress is the loopback address on which Go profiles are served without authentication.
	// If it is empty, they are not served.
	PprofAddress  string
	MetricsSecure bool
	// AllowInsecure allows members' kubeconfigs that skip server verification.
	AllowInsecure bool
	// AllowLoopback allows members' kubeconfigs that point to loopback addresses.
	AllowLoopback bool
	// FenceDuration is how long a member's fence remains valid after its last renewal.
	// ProbeInterval is the interval at which the manager renews the fence.
	FenceDuration, ProbeInterval time.Duration
	// EpochInterval is the interval at which a fence advances its epoch within a leadership.
	EpochInterval time.Duration
	// NodeGrace is how long a member may be unreachable before its Pods become unready and new Pods
	// are scheduled elsewhere.
	NodeGrace time.Duration
	// OrphanInterval is the interval at which Xylem compares a member's volumes with the host's by
	// live reads, if no event triggers the comparison.
	OrphanInterval time.Duration
	// StuckAfter is how long a deletion may take before it is reported.
	StuckAfter time.Duration
	// RecheckInterval is the interval at which Xylem checks again what no event reports, and the
	// maximum interval between two attempts to connect to a member.
	RecheckInterval time.Duration
	// ClaimsInProgress is the maximum number of claims that wait for the host's PV controller.
	ClaimsInProgress int
	// SilentAfter is how long a member's programs may take to respond before this is
	// reported.
	SilentAfter time.Duration
	// RenewTokensAfter is the fraction of a token's lifetime after which Xylem renews it: a member's token, if its
	// Secret requests renewal, and the tokens of Pods.
	RenewTokensAfter float64
	// AnswerLimit is the maximum memory for one decoded response from a member. CacheLimit is the
	// maximum memory for all of a member's objects in caches.
	AnswerLimit, CacheLimit resource.QuantityValue
	// NodeAPIAddress is the address on which the node API for the host's API server is served; "0"
	// disables it. NodeAPIHost is the address at which the API server reaches it.
	NodeAPIAddress, NodeAPIHost string
	// NodeAPICertDir contains the serving certificate. If it is empty, the manager creates a
	// certificate, or requests one from the host if NodeAPIRequest is set.
	NodeAPICertDir string
	NodeAPIRequest bool
	// NodeAPISessions and NodeAPIMemberSessions limit the streams of all members and of one
	// member. NodeAPIIdle is the idle timeout of a stream.
	NodeAPISessions, NodeAPIMemberSessions int
	NodeAPIIdle                            time.Duration
	// NominatedNode specifies whether the host's scheduler sets status.nominatedNodeName before it
	// binds a Pod: auto (depends on the host's version), always or never.
	NominatedNode string
	// SecretsAccess specifies with which identity the manager reads the Secrets to which Pods refer: its own
	// (Cluster), or that of the virtual node (Node).
	SecretsAccess string
}

// Values of the flag --secrets-access.
const (
	secretsAccessCluster = "Cluster"
	secretsAccessNode    = "Node"
)

// minMemberLimit is the minimum for a member's memory limits, in bytes. With a lower limit, Xylem could
// not link even a nearly empty member.
const minMemberLimit = 16 << 20

// Values of the flag --nominated-node-name.
const (
	nominatedAuto   = "auto"
	nominatedAlways = "always"
	nominatedNever  = "never"
)

// nominatedSince is the first Kubernetes version whose scheduler sets, by default,
// status.nominatedNodeName before it binds a Pod (KEP-5278).
const nominatedSince = "1.35.0"

// podResizeSince is the first Kubernetes version that resizes the resources of a Pod itself, by default, on Nodes that
// declare this feature (KEP-5419, KEP-5328).
const podResizeSince = "1.36.0"

// AddFlags adds the options to a flag set, with their defaults.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.Namespace, "namespace", "", "Namespace of the manager. Default: the namespace of its Pod, or "+v1alpha1.DefaultNamespace+".")
	flags.BoolVar(&o.LeaderElect, "leader-elect", false, "Elect a leader, so that only one of several replicas writes at a time.")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", "0", "Address on which metrics are served, such as :8443; 0 disables them.")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true, "Serve metrics over HTTPS, only to clients that the API server authorizes.")
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "Address on which /healthz and /readyz are served; 0 disables them.")
	flags.StringVar(&o.PprofAddress, "pprof-bind-address", "", "Loopback address on which Go profiles are served below /debug/pprof/, such as 127.0.0.1:8082. If empty, they are not served. The endpoint has no authentication; use kubectl port-forward.")
	flags.BoolVar(&o.AllowInsecure, "allow-insecure-members", false, "Allow insecure-skip-tls-verify in members' kubeconfigs.")
	flags.BoolVar(&o.AllowLoopback, "allow-loopback-members", true, "Allow loopback addresses in members' kubeconfigs. In a Pod, these addresses point to the Pod itself, so the Deployment in config/manager sets this flag to false.")
	flags.DurationVar(&o.FenceDuration, "fence-duration", 30*time.Second, "Time after which a member's fence expires if the manager crashes. The next leader waits that long before it writes to the member.")
	flags.DurationVar(&o.ProbeInterval, "probe-interval", 10*time.Second, "Interval at which the manager renews a member's fence. Each renewal also serves as a probe. The maximum is a third of --fence-duration.")
	flags.DurationVar(&o.EpochInterval, "fence-epoch-interval", 5*time.Minute, "Interval at which the fence gets a new epoch while the leader does not change. Xylem detects a restore if the backup is older than this interval. Each new epoch takes three writes per member.")
	flags.DurationVar(&o.NodeGrace, "node-grace", virtualnode.DefaultGrace, "Time that a member may be unreachable before its Pods become unready and new Pods are scheduled elsewhere.")
	flags.DurationVar(&o.OrphanInterval, "orphan-interval", orphan.DefaultInterval, "Interval at which Xylem compares each member's volumes with the host's, to find orphans. It also compares them after each connection, and when an event may have caused an orphan.")
	flags.DurationVar(&o.StuckAfter, "stuck-after", stuck.DefaultAfter, "Time after which Xylem reports why the deletion of a volume, claim or Pod in a member has not finished. For a Pod, this time starts after the grace period.")
	flags.DurationVar(&o.RecheckInterval, "recheck-interval", member.DefaultRecheckInterval, "Interval at which Xylem checks again what no event reports: whether it can use a taken name of a Node or CSINode, read optional kinds, or correct an estimated capacity. Also the maximum interval between two attempts to connect to a member, or to complete a request that fails there. The minimum is 1s.")
	flags.IntVar(&o.ClaimsInProgress, "claims-in-progress", backlog.DefaultLimit, "Maximum number of claims that Xylem places before the host's PV controller has bound them. If kube-controller-manager may send more requests (--kube-api-qps), increase it.")
	flags.DurationVar(&o.SilentAfter, "silent-after", rootpvc.DefaultSilentAfter, "Time after which Xylem reports that a program in a member does not respond (kube-scheduler, kube-controller-manager, provisioner, snapshot-controller or csi-snapshotter), or that a provisioner's calls are too slow. If the drivers take longer to create volumes, increase it.")
	flags.Float64Var(&o.RenewTokensAfter, "renew-tokens-after", membertoken.DefaultRenewAfter, fmt.Sprintf("Fraction of a token's lifetime after which the manager renews it: a member's token, and the tokens of Pods. The maximum is %g. The manager adds jitter to this time to spread the renewals.", membertoken.MaxRenewAfter))
	o.AnswerLimit = resource.QuantityValue{Quantity: *resource.NewQuantity(budget.DefaultMemoryLimits.ResponseBytes, resource.BinarySI)}
	flags.Var(&o.AnswerLimit, "member-answer-limit", "Maximum memory for one decoded response from a member, such as 128Mi. Xylem closes the connection to a member that exceeds this limit.")
	o.CacheLimit = resource.QuantityValue{Quantity: *resource.NewQuantity(budget.DefaultMemoryLimits.CacheBytes, resource.BinarySI)}
	flags.Var(&o.CacheLimit, "member-cache-limit", "Maximum memory for the objects of one member in the manager's caches, such as 256Mi. A volume with its claim takes about 4Ki, and a Pod 8Ki. Xylem closes the connection to a member that exceeds this limit.")
	flags.StringVar(&o.NodeAPIAddress, "node-api-bind-address", ":10250", "Address on which the manager serves the node API to the host's API server, so that kubectl logs, exec, attach and port-forward work for Pods on virtual nodes; 0 disables the node API.")
	flags.StringVar(&o.NodeAPIHost, "node-api-advertise-address", os.Getenv("POD_IP"), "IP address at which the host's API server can reach this replica. Virtual nodes report this address as their InternalIP while this replica is the leader. Default: the environment variable POD_IP.")
	flags.StringVar(&o.NodeAPICertDir, "node-api-cert-dir", "", "Directory with tls.crt and tls.key for the node API. The manager reloads these files when they change. If empty, the manager uses a self-signed certificate in memory.")
	flags.BoolVar(&o.NodeAPIRequest, "node-api-request-certificate", false, "Request the certificate for the node API from the host, with a CertificateSigningRequest for the signer kubernetes.io/kubelet-serving. An admin must approve each request.")
	flags.IntVar(&o.NodeAPISessions, "node-api-sessions", 1000, "Maximum number of open sessions for logs, exec, attach and port-forward.")
	flags.IntVar(&o.NodeAPIMemberSessions, "node-api-member-sessions", 250, "Maximum number of open sessions to the Pods of one member.")
	flags.DurationVar(&o.NodeAPIIdle, "node-api-idle-timeout", 4*time.Hour, "Time that a session may be idle before the manager closes it.")
	flags.StringVar(&o.SecretsAccess, "secrets-access", secretsAccessCluster, "Identity with which the manager reads the Secrets to which Pods refer: its own ("+secretsAccessCluster+"), which needs the permission to get them, or that of the virtual node ("+secretsAccessNode+"), as a kubelet does. With "+secretsAccessNode+", the host needs Kubernetes 1.36 or later, each registration needs a ClusterRole (kubectl xylem register --node-identity), and Xylem copies a Secret only after the host has bound the Pod.")
	flags.StringVar(&o.NominatedNode, "nominated-node-name", nominatedAuto, "Whether the host's scheduler writes status.nominatedNodeName before it binds volumes: auto (depends on the host's version), always or never.")
}

// CompleteAndValidate sets defaults from the environment and validates the options.
func (o *Options) CompleteAndValidate() error {
	if o.Namespace == "" {
		o.Namespace = os.Getenv("POD_NAMESPACE")
	}
	if o.Namespace == "" {
		o.Namespace = v1alpha1.DefaultNamespace
	}
	wrong := o.validateTimes()
	if o.ProbeInterval <= 0 || o.ProbeInterval > o.FenceDuration/3 {
		wrong = append(wrong, fmt.Errorf("--probe-interval %s: must be more than 0 and at most a third of --fence-duration (%s)", o.ProbeInterval, o.FenceDuration))
	}
	if o.ClaimsInProgress < 1 {
		wrong = append(wrong, fmt.Errorf("--claims-in-progress %d: must be at least 1", o.ClaimsInProgress))
	}
	for name, limit := range map[string]resource.QuantityValue{"answer": o.AnswerLimit, "cache": o.CacheLimit} {
		if limit.Value() < minMemberLimit {
			wrong = append(wrong, fmt.Errorf("--member-%s-limit %s: must be at least 16Mi", name, limit.String()))
		}
	}
	if o.PprofAddress != "" && !isLoopbackAddress(o.PprofAddress) {
		wrong = append(wrong, fmt.Errorf("--pprof-bind-address %q: must be a loopback IP address and a port, such as 127.0.0.1:8082, because the endpoint has no authentication", o.PprofAddress))
	}
	wrong = append(wrong, o.completeNodeAPI()...)
	if !(o.RenewTokensAfter > 0 && o.RenewTokensAfter <= membertoken.MaxRenewAfter) { // also rejects NaN
		wrong = append(wrong, fmt.Errorf("--renew-tokens-after %g: must be more than 0 and at most %g", o.RenewTokensAfter, membertoken.MaxRenewAfter))
	}
	if o.SecretsAccess != secretsAccessCluster && o.SecretsAccess != secretsAccessNode {
		wrong = append(wrong, fmt.Errorf("--secrets-access %q: must be %s or %s", o.SecretsAccess, secretsAccessCluster, secretsAccessNode))
	}
	switch o.NominatedNode {
	case nominatedAuto, nominatedAlways, nominatedNever:
	default:
		wrong = append(wrong, fmt.Errorf("--nominated-node-name %q: must be auto, always or never", o.NominatedNode))
	}
	return errors.Join(wrong...)
}

// validateTimes validates the times that do not depend on others.
func (o *Options) validateTimes() []error {
	var wrong []error
	for name, value := range map[string]time.Duration{"fence-duration": o.FenceDuration, "orphan-interval": o.OrphanInterval, "recheck-interval": o.RecheckInterval} {
		if value < time.Second {
			wrong = append(wrong, fmt.Errorf("--%s %s: must be at least 1s", name, value))
		}
	}
	for name, value := range map[string]time.Duration{"fence-epoch-interval": o.EpochInterval, "stuck-after": o.StuckAfter, "silent-after": o.SilentAfter} {
		if value <= 0 {
			wrong = append(wrong, fmt.Errorf("--%s %s: must be more than 0", name, value))
		}
	}
	return wrong
}

// completeNodeAPI defaults and validates the node API's options.
func (o *Options) completeNodeAPI() []error {
	if !o.servesNodeAPI() {
		return nil
	}
	var wrong []error
	if _, err := o.NodeAPIPort(); err != nil {
		wrong = append(wrong, fmt.Errorf("--node-api-bind-address %q: must be an address and a port, such as :10250, or 0 to disable the node API", o.NodeAPIAddress))
	}
	if _, err := netip.ParseAddr(o.NodeAPIHost); o.NodeAPIHost != "" && err != nil {
		wrong = append(wrong, fmt.Errorf("--node-api-advertise-address %q: must be an IP address", o.NodeAPIHost))
	}
	if o.NodeAPISessions < 1 || o.NodeAPIMemberSessions < 1 || o.NodeAPIMemberSessions > o.NodeAPISessions {
		wrong = append(wrong, fmt.Errorf("--node-api-member-sessions %d: must be at least 1 and at most --node-api-sessions (%d)", o.NodeAPIMemberSessions, o.NodeAPISessions))
	}
	if o.NodeAPIIdle < time.Second {
		wrong = append(wrong, fmt.Errorf("--node-api-idle-timeout %s: must be at least 1s", o.NodeAPIIdle))
	}
	if o.NodeAPIRequest && o.NodeAPICertDir != "" {
		wrong = append(wrong, errors.New("--node-api-request-certificate and --node-api-cert-dir: set only one of them"))
	}
	return wrong
}

// servesNodeAPI reports whether the node API is enabled.
func (o *Options) servesNodeAPI() bool { return o.NodeAPIAddress != "0" && o.NodeAPIAddress != "" }

// NodeAPIPort returns the node API's port, or 0 if the node API is disabled.
func (o *Options) NodeAPIPort() (int32, error) {
	if !o.servesNodeAPI() {
		return 0, nil
	}
	_, port, err := net.SplitHostPort(o.NodeAPIAddress)
	if err != nil {
		return 0, fmt.Errorf("read the port: %w", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return 0, fmt.Errorf("%q is not a port", port)
	}
	return int32(number), nil
}

// SchedulerNominates reports whether the scheduler of a host with the given version sets
// status.nominatedNodeName before it binds a Pod.
func (o *Options) SchedulerNominates(hostVersion string) bool {
	switch o.NominatedNode {
	case nominatedAlways:
		return true
	case nominatedNever:
		return false
	}
	return isAtLeast(hostVersion, nominatedSince)
}

// isAtLeast reports whether a host's version is known, and not earlier than another one.
func isAtLeast(hostVersion, least string) bool {
	v, err := version.ParseGeneric(strings.TrimPrefix(hostVersion, "v"))
	return err == nil && v.AtLeast(version.MustParseGeneric(least))
}

// isLoopbackAddress reports whether an address is reachable only from this machine or Pod.
func isLoopbackAddress(address string) bool {
	bound, err := netip.ParseAddrPort(address)
	return err == nil && bound.Addr().IsLoopback()
}
