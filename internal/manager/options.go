package manager

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/controller/membertoken"
	"github.com/xylem-io/xylem/internal/controller/orphan"
	"github.com/xylem-io/xylem/internal/controller/stuck"
	"github.com/xylem-io/xylem/internal/controller/virtualnode"
	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/tracing"
)

// Options are the flags of the manager.
type Options struct {
	// Namespace of the manager, of its Secrets, records and published capacity in the host, and of
	// its fences in members.
	Namespace string
	// LeaderElect enables leader election, for several replicas.
	LeaderElect bool
	// MetricsAddress serves metrics, with TLS and authorization if MetricsSecure is set; "0"
	// disables it. ProbeAddress serves /healthz and /readyz.
	MetricsAddress, ProbeAddress string
	// PprofAddress, on loopback, serves Go's profiles without authentication; empty disables it.
	PprofAddress  string
	MetricsSecure bool
	// AllowInsecure allows members' kubeconfigs that skip the verification of the server.
	AllowInsecure bool
	// AllowLoopback allows members' kubeconfigs that point to loopback addresses.
	AllowLoopback bool
	// FenceDuration is how long a member's fence remains valid after the manager that held it ends.
	// ProbeInterval is the interval of its renewal.
	FenceDuration, ProbeInterval time.Duration
	// EpochInterval is the interval at which a fence takes its next epoch within a leadership.
	EpochInterval time.Duration
	// NodeGrace is how long a member may be away before its Pods become not ready and new ones use
	// other members.
	NodeGrace time.Duration
	// OrphanInterval is the interval at which a member's volumes are compared with the host's, by
	// live reads, if nothing else triggers it.
	OrphanInterval time.Duration
	// StuckAfter is how long a deletion may take before it is reported.
	StuckAfter time.Duration
	// RenewTokensAfter is the share of the lifetime of a member's token after which Xylem renews
	// it, if its Secret requests renewal.
	RenewTokensAfter float64
	// AnswerLimit is the maximum memory of one decoded response of a member. CacheLimit is the
	// maximum memory of all its objects in caches.
	AnswerLimit, CacheLimit resource.QuantityValue
	// NodeAPIAddress serves the kubelet endpoints that the host's API server calls; "0" disables
	// it. NodeAPIHost is the address at which the host's API server reaches it.
	NodeAPIAddress, NodeAPIHost string
	// NodeAPICertDir has the serving certificate. If it is empty, the manager creates its own, or
	// requests one from the host if NodeAPIRequest is set.
	NodeAPICertDir string
	NodeAPIRequest bool
	// NodeAPISessions and NodeAPIMemberSessions limit the streams of all members and of one
	// member. NodeAPIIdle is the idle timeout of a stream.
	NodeAPISessions, NodeAPIMemberSessions int
	NodeAPIIdle                            time.Duration
	// NominatedNode reports whether the host's scheduler sets status.nominatedNodeName before it
	// binds a Pod. auto depends on the host's version.
	NominatedNode string
	// Tracing exports the steps of claims, if its endpoint is set.
	Tracing tracing.Options
}

// minLimit is the minimum, in bytes, of the memory limits of a member. Below it, not even
// members with hardly any objects could be linked.
const minLimit = 16 << 20

// Values of the flag --nominated-node-name.
const (
	nominatedAuto   = "auto"
	nominatedAlways = "always"
	nominatedNever  = "never"
)

// AddFlags adds the options to a flag set, with their defaults.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.Namespace, "namespace", "", "Namespace of the manager; that of its Pod, or "+v1alpha1.DefaultNamespace+", unless given.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", false, "Let several replicas run, of which one writes at a time.")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", "0", "Address that metrics are served on, such as :8443; 0 serves none.")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true, "Serve metrics by HTTPS, to those whom the API server lets read them.")
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "Address that /healthz and /readyz are served on; 0 serves none.")
	flags.StringVar(&o.PprofAddress, "pprof-bind-address", "", "Loopback address that Go's profiles are served on below /debug/pprof/, such as 127.0.0.1:8082; none unless given. It asks nobody who they are; kubectl port-forward leads to it.")
	flags.BoolVar(&o.AllowInsecure, "allow-insecure-members", false, "Let members' kubeconfigs say insecure-skip-tls-verify.")
	flags.BoolVar(&o.AllowLoopback, "allow-loopback-members", true, "Let members' kubeconfigs lead to loopback addresses. In a Pod these are the Pod's own: the Deployment of config/manager does not.")
	flags.DurationVar(&o.FenceDuration, "fence-duration", 30*time.Second, "How long a member's fence outlives a manager that crashed; another one waits as long before it writes there.")
	flags.DurationVar(&o.ProbeInterval, "probe-interval", 10*time.Second, "How often a member is probed by renewing its fence; a third of --fence-duration at most.")
	flags.DurationVar(&o.EpochInterval, "fence-epoch-interval", 5*time.Minute, "How often the fence takes its next epoch while the leader stays: a cluster that is restored from an older state than that is found out. Three writes a member.")
	flags.DurationVar(&o.NodeGrace, "node-grace", virtualnode.DefaultGrace, "How long a member may be out of reach before its Pods are not ready and new ones go elsewhere.")
	flags.DurationVar(&o.OrphanInterval, "orphan-interval", orphan.DefaultInterval, "How often each member's volumes are held against the host's to find those without a root; at each connect, and when there is reason to, it is done in any case.")
	flags.DurationVar(&o.StuckAfter, "stuck-after", stuck.DefaultAfter, "How long the deletion of a volume, claim or Pod that concerns a member may take, beyond a Pod's grace period, before Xylem reports why.")
	flags.Float64Var(&o.RenewTokensAfter, "renew-tokens-after", membertoken.DefaultAfter, fmt.Sprintf("The share of its life after which a member's token is renewed, or up to 1.4 times that, so that not all are at once; %g at most.", membertoken.MaxAfter))
	o.AnswerLimit = resource.QuantityValue{Quantity: *resource.NewQuantity(budget.DefaultLimits.Answer, resource.BinarySI)}
	flags.Var(&o.AnswerLimit, "member-answer-limit", "How much memory, such as 128Mi, one decoded response of a member may take. Xylem closes the link to a member that sends more.")
	o.CacheLimit = resource.QuantityValue{Quantity: *resource.NewQuantity(budget.DefaultLimits.Cache, resource.BinarySI)}
	flags.Var(&o.CacheLimit, "member-cache-limit", "How much memory, such as 256Mi, the objects of one member may take in the manager's caches: about 4Ki for each volume with its claim, 8Ki for each Pod. Xylem closes the link to a member that has more.")
	flags.StringVar(&o.NodeAPIAddress, "node-api-bind-address", ":10250", "Address on which the manager serves the host's API server for kubectl logs, exec, attach and port-forward of Pods on virtual nodes; 0 disables it.")
	flags.StringVar(&o.NodeAPIHost, "node-api-advertise-address", os.Getenv("POD_IP"), "IP address at which the host's API server reaches this replica: the InternalIP of virtual nodes while it leads. Default: the environment variable POD_IP.")
	flags.StringVar(&o.NodeAPICertDir, "node-api-cert-dir", "", "Directory with tls.crt and tls.key to serve the node API with, which are read again when they change. If empty, the manager signs a certificate itself, in memory.")
	flags.BoolVar(&o.NodeAPIRequest, "node-api-request-certificate", false, "Request the certificate of the node API from the host, by a CertificateSigningRequest for the signer kubernetes.io/kubelet-serving. An admin has to approve it.")
	flags.IntVar(&o.NodeAPISessions, "node-api-sessions", 1000, "How many logs, exec, attach and port-forward sessions may be open in total.")
	flags.IntVar(&o.NodeAPIMemberSessions, "node-api-member-sessions", 250, "How many of them may be open to the Pods of one member.")
	flags.DurationVar(&o.NodeAPIIdle, "node-api-idle-timeout", 4*time.Hour, "How long a session may be idle before the manager closes it.")
	flags.StringVar(&o.NominatedNode, "nominated-node-name", nominatedAuto, "Whether the host's scheduler writes status.nominatedNodeName before it binds volumes: auto (by the host's version), always or never.")
	flags.StringVar(&o.Tracing.Endpoint, "tracing-endpoint", "", "Host and port of an OTLP receiver for gRPC, such as collector.monitoring:4317, to which Xylem exports a trace of each claim. If empty, it exports none.")
	flags.BoolVar(&o.Tracing.Insecure, "tracing-insecure", false, "Connect to --tracing-endpoint without TLS.")
	flags.Float64Var(&o.Tracing.Ratio, "tracing-sampling-ratio", 1, "Share of claims to export, from 0 to 1.")
}

// Complete sets defaults from the environment and validates the options.
func (o *Options) Complete() error {
	if o.Namespace == "" {
		o.Namespace = os.Getenv("POD_NAMESPACE")
	}
	if o.Namespace == "" {
		o.Namespace = v1alpha1.DefaultNamespace
	}
	var wrong []error
	if o.FenceDuration < time.Second {
		wrong = append(wrong, fmt.Errorf("--fence-duration %s: at least 1s", o.FenceDuration))
	}
	if o.ProbeInterval <= 0 || o.ProbeInterval > o.FenceDuration/3 {
		wrong = append(wrong, fmt.Errorf("--probe-interval %s: more than 0, and a third of --fence-duration (%s) at most", o.ProbeInterval, o.FenceDuration))
	}
	if o.EpochInterval <= 0 {
		wrong = append(wrong, fmt.Errorf("--fence-epoch-interval %s: more than 0", o.EpochInterval))
	}
	if o.OrphanInterval < time.Second {
		wrong = append(wrong, fmt.Errorf("--orphan-interval %s: at least 1s", o.OrphanInterval))
	}
	if o.StuckAfter <= 0 {
		wrong = append(wrong, fmt.Errorf("--stuck-after %s: more than 0", o.StuckAfter))
	}
	for name, limit := range map[string]resource.QuantityValue{"answer": o.AnswerLimit, "cache": o.CacheLimit} {
		if limit.Value() < minLimit {
			wrong = append(wrong, fmt.Errorf("--member-%s-limit %s: at least 16Mi", name, limit.String()))
		}
	}
	if o.PprofAddress != "" && !onLoopback(o.PprofAddress) {
		wrong = append(wrong, fmt.Errorf("--pprof-bind-address %q: an IP address of loopback and a port, such as 127.0.0.1:8082, because it serves profiles without authentication", o.PprofAddress))
	}
	wrong = append(wrong, o.completeNodeAPI()...)
	if !(o.RenewTokensAfter > 0 && o.RenewTokensAfter <= membertoken.MaxAfter) { // also rejects NaN
		wrong = append(wrong, fmt.Errorf("--renew-tokens-after %g: more than 0, %g at most", o.RenewTokensAfter, membertoken.MaxAfter))
	}
	switch o.NominatedNode {
	case nominatedAuto, nominatedAlways, nominatedNever:
	default:
		wrong = append(wrong, fmt.Errorf("--nominated-node-name %q: auto, always or never", o.NominatedNode))
	}
	wrong = append(wrong, o.checkTracing()...)
	return errors.Join(wrong...)
}

// checkTracing validates the options of traces.
func (o *Options) checkTracing() []error {
	var wrong []error
	if o.Tracing.Endpoint != "" {
		if host, port, err := net.SplitHostPort(o.Tracing.Endpoint); err != nil || host == "" || port == "" {
			wrong = append(wrong, fmt.Errorf("--tracing-endpoint %q: a host and a port, such as collector.monitoring:4317", o.Tracing.Endpoint))
		}
	}
	if !(o.Tracing.Ratio >= 0 && o.Tracing.Ratio <= 1) { // also rejects NaN
		wrong = append(wrong, fmt.Errorf("--tracing-sampling-ratio %g: from 0 to 1", o.Tracing.Ratio))
	}
	return wrong
}

// completeNodeAPI defaults and validates the options of the node API.
func (o *Options) completeNodeAPI() []error {
	if !o.servesNodes() {
		return nil
	}
	var wrong []error
	if _, err := o.nodePort(); err != nil {
		wrong = append(wrong, fmt.Errorf("--node-api-bind-address %q: an address and a port, such as :10250, or 0 to disable the node API", o.NodeAPIAddress))
	}
	if _, err := netip.ParseAddr(o.NodeAPIHost); o.NodeAPIHost != "" && err != nil {
		wrong = append(wrong, fmt.Errorf("--node-api-advertise-address %q: an IP address", o.NodeAPIHost))
	}
	if o.NodeAPISessions < 1 || o.NodeAPIMemberSessions < 1 || o.NodeAPIMemberSessions > o.NodeAPISessions {
		wrong = append(wrong, fmt.Errorf("--node-api-member-sessions %d: at least 1, and --node-api-sessions (%d) at most", o.NodeAPIMemberSessions, o.NodeAPISessions))
	}
	if o.NodeAPIIdle < time.Second {
		wrong = append(wrong, fmt.Errorf("--node-api-idle-timeout %s: at least 1s", o.NodeAPIIdle))
	}
	if o.NodeAPIRequest && o.NodeAPICertDir != "" {
		wrong = append(wrong, errors.New("--node-api-request-certificate and --node-api-cert-dir: give one of them"))
	}
	return wrong
}

// servesNodes reports whether the node API is enabled.
func (o *Options) servesNodes() bool { return o.NodeAPIAddress != "0" && o.NodeAPIAddress != "" }

// nodePort returns the port of the node API, or 0 if it is disabled.
func (o *Options) nodePort() (int32, error) {
	if !o.servesNodes() {
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

// onLoopback reports whether an address is reachable only from this machine or Pod.
func onLoopback(address string) bool {
	bound, err := netip.ParseAddrPort(address)
	return err == nil && bound.Addr().IsLoopback()
}

// disableHTTP2 disables HTTP/2 on the manager's servers, because clients can exhaust them with
// stream resets (CVE-2023-44487).
func disableHTTP2(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }
