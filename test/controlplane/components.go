package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

//go:embed stages/node.yaml
var nodeStages []byte

//go:embed stages/kubelet.yaml
var kubeletConfig string

//go:embed stages/pod.yaml
var podStages []byte

// The users as which the programs authenticate. Those of the control plane are Kubernetes' built-in
// users, so that the default roles apply to them. The others have roles in base.go.
const (
	userControllerManager = "system:kube-controller-manager"
	userScheduler         = "system:kube-scheduler"
	userKWOK              = "kwok"
	userProvisioner       = "csi-provisioner"
	userResizer           = "csi-resizer"

	userSnapshotController = "snapshot-controller"
	userSnapshotter        = "csi-snapshotter"
	userAttacher           = "csi-attacher"
)

const (
	// serviceCIDR is the range of ClusterIPs.
	serviceCIDR = "10.0.0.0/20"
	// leaseSeconds is how long a node's Lease is valid, as with a kubelet.
	leaseSeconds = 40
	// probeTimeout is the timeout of one readiness probe of a process.
	probeTimeout = 3 * time.Second
	// watchGrace is how long watches may continue after the apiserver receives SIGTERM.
	watchGrace = 500 * time.Millisecond
	// auditMegabytes is the size at which the apiserver rotates the audit log. It is large, because a
	// rotation would invalidate marks.
	auditMegabytes = 100_000
)

// schedulerConfig raises the limits of the scheduler's client, and leaves the other settings at
// their defaults.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection:
  kubeconfig: %q
  qps: %d
  burst: %d
`

// addresses are the addresses on which a cluster listens.
type addresses struct {
	etcd, etcdPeer, apiServer, proxy, controllerManager, scheduler, kwok string
}

func takeAddresses(p *ports) (addresses, error) {
	var a addresses
	for _, field := range []*string{
		&a.etcd, &a.etcdPeer, &a.apiServer, &a.proxy, &a.controllerManager, &a.scheduler, &a.kwok,
	} {
		address, err := p.take()
		if err != nil {
			return addresses{}, err
		}
		*field = address
	}
	return a, nil
}

// podCIDR and nodeIP are unique for each cluster and node.
func (c *Cluster) podCIDR() string { return fmt.Sprintf("10.%d.0.0/16", 63+c.ordinal%190) }
func (c *Cluster) nodePodCIDR(n int) string {
	return fmt.Sprintf("10.%d.%d.0/24", 63+c.ordinal%190, n%256)
}
func (c *Cluster) nodeIP(n int) string          { return fmt.Sprintf("172.20.%d.%d", c.ordinal%256, n%256) }
func (c *Cluster) kubeconfigOf(u string) string { return c.path(u + ".kubeconfig") }

// writeConfigs writes the configuration files of the processes.
func (c *Cluster) writeConfigs() error {
	if err := c.writeKubeconfig("admin.kubeconfig", adminUser, adminGroup); err != nil {
		return err
	}
	users := map[string]string{
		kubebin.ControllerManager: userControllerManager, kubebin.Scheduler: userScheduler,
		kubebin.KWOK: userKWOK, kubebin.Provisioner: userProvisioner, kubebin.Resizer: userResizer,
	}
	extraUsers := map[string]string{
		kubebin.SnapshotController: userSnapshotController, kubebin.Snapshotter: userSnapshotter, kubebin.Attacher: userAttacher,
	}
	for _, program := range c.options.extras() {
		users[program] = extraUsers[program]
	}
	for program, user := range users {
		if err := c.writeKubeconfig(program+".kubeconfig", user); err != nil {
			return err
		}
	}
	scheduler := fmt.Sprintf(schedulerConfig, c.kubeconfigOf(kubebin.Scheduler), c.options.KubeAPIQPS, c.options.KubeAPIBurst)
	kubelet := strings.NewReplacer("@DIR@", c.path("kubelet"), "@PORT@", port(c.kwokAddress)).Replace(kubeletConfig)
	if err := c.writeKubeletFiles(); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"kubelet.yaml":      []byte(kubelet),
		"audit-policy.yaml": []byte(auditPolicy),
		"scheduler.yaml":    []byte(scheduler),
		"stages-node.yaml":  nodeStages,
		"stages-pod.yaml":   podStages,
	} {
		if err := os.WriteFile(c.path(name), content, 0o600); err != nil {
			return fmt.Errorf("write the configuration of %s: %w", c.Name(), err)
		}
	}
	return nil
}

// The current and previous logs that KWOK serves for every container.
const (
	KubeletLog      = "2026-11-01T00:00:00.000000000Z stdout F first line\n2026-11-01T00:00:01.000000000Z stdout F second line\n2026-11-01T00:00:02.000000000Z stdout F third line\n"
	KubeletPrevious = "2026-10-31T00:00:00.000000000Z stdout F earlier line\n"
)

// KubeletLogFile returns the path of the file with the log that KWOK serves for every container of
// the cluster's Pods.
func (c *Cluster) KubeletLogFile() string { return c.path("kubelet", "log") }

func (c *Cluster) writeKubeletFiles() error {
	if err := os.MkdirAll(c.path("kubelet"), 0o700); err != nil {
		return fmt.Errorf("write the logs of %s: %w", c.Name(), err)
	}
	for file, content := range map[string]string{c.KubeletLogFile(): KubeletLog, c.path("kubelet", "previous"): KubeletPrevious} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return fmt.Errorf("write the logs of %s: %w", c.Name(), err)
		}
	}
	return nil
}

// newProcesses returns the processes of the cluster, with all their arguments.
func (c *Cluster) newProcesses(bin programs, a addresses) []*Process {
	pool := x509.NewCertPool()
	pool.AddCert(c.ca.cert)
	secure := &http.Client{Timeout: probeTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
	}}
	plain := &http.Client{Timeout: probeTimeout, Transport: &http.Transport{DisableKeepAlives: true}}

	all := []*Process{
		{
			name: Etcd, path: bin.path(kubebin.Etcd), args: c.etcdArgs(a),
			ready: healthy(plain, "http://"+a.etcd+"/health"),
		},
		{
			name: APIServer, path: bin.path(kubebin.APIServer), args: c.apiServerArgs(a),
			ready: healthy(secure, "https://"+a.apiServer+"/readyz"),
		},
		{
			name: ControllerManager, path: bin.path(kubebin.ControllerManager), args: c.controllerManagerArgs(a),
			ready: healthy(secure, "https://"+a.controllerManager+"/healthz"), supervised: true,
		},
		{
			name: Scheduler, path: bin.path(kubebin.Scheduler), args: c.schedulerArgs(a),
			ready: healthy(secure, "https://"+a.scheduler+"/readyz"), supervised: true,
		},
		{
			name: KWOK, path: bin.path(kubebin.KWOK), args: c.kwokArgs(a),
			ready: healthy(plain, "http://"+a.kwok+"/healthz"), supervised: true,
		},
	}
	if c.options.APIOnly {
		all = all[:2]
	}
	if c.options.Storage != nil {
		all = append(all,
			&Process{
				name: CSIDriver, path: bin.csiDriver, args: c.driverArgs(),
				ready: listens(c.socket()), supervised: true,
			},
			&Process{
				name: Provisioner, path: bin.path(kubebin.Provisioner), args: c.provisionerArgs(), supervised: true,
			},
			&Process{name: Resizer, path: bin.path(kubebin.Resizer), args: c.resizerArgs(), supervised: true},
		)
	}
	all = append(all, c.newExtras(bin)...)
	for _, p := range all {
		p.cluster, p.progress = c.Name(), c.progress
		p.logPath = c.path("logs", string(p.name)+".log")
		p.args = append(p.args, c.options.ExtraArgs[p.name]...)
	}
	return all
}

// newExtras returns the processes that the cluster's options require.
func (c *Cluster) newExtras(bin programs) []*Process {
	// Without group snapshots, which would double snapshot-controller's watches.
	const noGroups = "--feature-gates=CSIVolumeGroupSnapshot=false"
	var all []*Process
	for _, program := range c.options.extras() {
		p := &Process{path: bin.path(program), supervised: true}
		switch program {
		case kubebin.SnapshotController:
			p.name, p.args = SnapshotController, append(c.clientArgs(program), noGroups)
		case kubebin.Snapshotter:
			p.name, p.args = Snapshotter, append(c.sidecarArgs(program), "--extra-create-metadata", noGroups)
		case kubebin.Attacher:
			p.name, p.args = Attacher, append(c.sidecarArgs(program), "--default-fstype=ext4")
		}
		all = append(all, p)
	}
	return all
}

// healthy returns a probe that requests an HTTP endpoint. The endpoint responds with 200 when its
// process is ready.
func healthy(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(io.LimitReader(response.Body, 500))
			return fmt.Errorf("%s: %s: %s", url, response.Status, body)
		}
		return nil
	}
}

// listens returns a probe that connects to a unix socket. The existence of the file is not
// sufficient, because a killed driver leaves it behind.
func listens(socket string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// port returns the port of an address.
func port(address string) string { return address[len(loopback)+1:] }

func (c *Cluster) etcdArgs(a addresses) []string {
	peer := "http://" + a.etcdPeer
	return []string{
		"--name=" + c.Name(),
		"--data-dir=" + c.path(etcdDir),
		"--listen-client-urls=http://" + a.etcd,
		"--advertise-client-urls=http://" + a.etcd,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + c.Name() + "=" + peer,
		// Data in the page cache survives a killed process. Only a crash of the machine loses it,
		// and that loses everything else too.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=" + strconv.Itoa(4<<30),
		"--log-level=warn",
	}
}

func (c *Cluster) apiServerArgs(a addresses) []string {
	pki := func(name string) string { return c.path("pki", name) }
	args := []string{
		"--bind-address=" + loopback,
		"--secure-port=" + port(a.apiServer),
		"--advertise-address=" + loopback,
		// The endpoints of Service "kubernetes" cannot be loopback addresses.
		"--endpoint-reconciler-type=none",
		"--etcd-servers=http://" + a.etcd,
		"--service-cluster-ip-range=" + serviceCIDR,
		"--tls-cert-file=" + pki(servingCertFile),
		"--tls-private-key-file=" + pki(servingKeyFile),
		"--client-ca-file=" + pki(caFile),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki(tokenPublicFile),
		"--service-account-signing-key-file=" + pki(tokenKeyFile),
		"--allow-privileged=true",
		"--audit-policy-file=" + c.path("audit-policy.yaml"),
		"--audit-log-path=" + c.path("audit.log"),
		"--audit-log-mode=blocking",
		"--audit-log-maxsize=" + strconv.Itoa(auditMegabytes),
		// Otherwise, the apiserver waits for its watches to end before it stops.
		"--shutdown-watch-termination-grace-period=" + watchGrace.String(),
		"--profiling=false",
	}
	if c.options.Kubelets {
		args = append(args, "--kubelet-preferred-address-types=InternalIP",
			"--kubelet-client-certificate="+pki(kubeletCertFile), "--kubelet-client-key="+pki(kubeletKeyFile))
	}
	return args
}

func (c *Cluster) controllerManagerArgs(a addresses) []string {
	kubeconfig := c.kubeconfigOf(kubebin.ControllerManager)
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + loopback,
		"--secure-port=" + port(a.controllerManager),
		"--tls-cert-file=" + c.path("pki", servingCertFile),
		"--tls-private-key-file=" + c.path("pki", servingKeyFile),
		"--leader-elect=false",
		// The controller manager's own user is not allowed to bind volumes, but the controllers' service
		// accounts are.
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.path("pki", tokenKeyFile),
		"--root-ca-file=" + c.path("pki", caFile),
		"--flex-volume-plugin-dir=" + c.path("flexvolume"),
		"--kube-api-qps=" + strconv.Itoa(c.options.KubeAPIQPS),
		"--kube-api-burst=" + strconv.Itoa(c.options.KubeAPIBurst),
		"--profiling=false",
	}
	if d := c.options.NodeMonitorGracePeriod; d > 0 {
		args = append(args, "--node-monitor-grace-period="+d.String(), "--node-monitor-period="+(d/5).String())
	}
	return args
}

func (c *Cluster) schedulerArgs(a addresses) []string {
	kubeconfig := c.kubeconfigOf(kubebin.Scheduler)
	return []string{
		"--config=" + c.path("scheduler.yaml"),
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + loopback,
		"--secure-port=" + port(a.scheduler),
		"--tls-cert-file=" + c.path("pki", servingCertFile),
		"--tls-private-key-file=" + c.path("pki", servingKeyFile),
	}
}

func (c *Cluster) kwokArgs(a addresses) []string {
	args := []string{
		"--kubeconfig=" + c.kubeconfigOf(kubebin.KWOK),
		"--config=" + c.path("stages-node.yaml"),
		"--config=" + c.path("stages-pod.yaml"),
		"--manage-nodes-with-label-selector=" + LabelKWOK + "=" + c.nodesOf,
		"--cidr=" + c.podCIDR(),
		"--node-lease-duration-seconds=" + strconv.Itoa(leaseSeconds),
		"--server-address=" + a.kwok,
	}
	if c.options.Kubelets {
		args = append(args, "--config="+c.path("kubelet.yaml"))
	}
	return args
}

func (c *Cluster) driverArgs() []string {
	s := c.options.Storage
	return []string{
		"--name=" + s.DriverName,
		"--dir=" + c.DriverDir(),
		"--socket=" + c.socket(),
		"--max-volume-bytes=" + strconv.FormatInt(s.MaxVolumeBytes, 10),
		"--capacity-bytes=" + strconv.FormatInt(s.CapacityBytes, 10),
		"--attach=" + strconv.FormatBool(c.options.Attach),
	}
}

// sidecarArgs are the common arguments of all CSI sidecars.
func (c *Cluster) sidecarArgs(program string) []string {
	s := c.options.Storage
	return append(c.clientArgs(program), "--csi-address="+c.socket(), "--timeout="+s.CallTimeout.String())
}

// clientArgs are the common arguments of the sidecars and snapshot-controller.
func (c *Cluster) clientArgs(program string) []string {
	retryStart, retryMax := retryStart, retryMax
	if s := c.options.Storage; s != nil {
		retryStart, retryMax = s.RetryStart, s.RetryMax
	}
	return []string{
		"--kubeconfig=" + c.kubeconfigOf(program),
		"--retry-interval-start=" + retryStart.String(),
		"--retry-interval-max=" + retryMax.String(),
		"--kube-api-qps=" + strconv.Itoa(c.options.KubeAPIQPS),
		"--kube-api-burst=" + strconv.Itoa(c.options.KubeAPIBurst),
		"--v=2",
	}
}

func (c *Cluster) provisionerArgs() []string {
	return append(c.sidecarArgs(kubebin.Provisioner), "--extra-create-metadata", "--default-fstype=ext4")
}

func (c *Cluster) resizerArgs() []string { return c.sidecarArgs(kubebin.Resizer) }
