package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	kindexec "sigs.k8s.io/kind/pkg/exec"
	kindlog "sigs.k8s.io/kind/pkg/log"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/image"
)

const (
	// prefix is the prefix of the clusters' names in kind.
	prefix = "xylem-e2e-"
	// leaseName is the Lease of the managers' leader election.
	leaseName = "xylem-manager"
	// poll and patience are the interval and the timeout of waits for a cluster.
	poll, patience = 500 * time.Millisecond, 3 * time.Minute
)

const (
	// NodeImageEnv is the environment variable that sets the nodes' image.
	NodeImageEnv = "KIND_NODE_IMAGE"
	// KindDir is the directory of the kubeconfigs, relative to the repository's root.
	KindDir = "dist/e2e"
	// ImageArchive is the archive with the manager's image, relative to the repository's root.
	ImageArchive = "dist/image.tar"
)

// sampleImages lists the names under which the tests' image is loaded, including those in
// config/samples.
var sampleImages = []string{WorkloadImage, "docker.io/library/nginx:1.28-alpine"}

// KindOptions are the options for a fleet of kind clusters.
type KindOptions struct {
	// Dir is the directory for kubeconfigs.
	Dir string
	// NodeImage is the image of the nodes. Empty means kind's default, which is pulled.
	NodeImage string
	// Archive is the archive of the manager's image that `make image` writes.
	Archive string
	// Progress receives a line about each long step.
	Progress func(format string, args ...any)
}

// workers is the number of worker nodes of a cluster. With workers, no user Pods run on the
// control plane's node. Other clusters have one node for everything.
var workers = map[string]int{First: 3}

// podSubnets are the ranges of the clusters' Pod IPs. They differ, so that Connect can connect the networks.
var podSubnets = map[string]string{HostName: "10.244.0.0/16", First: "10.245.0.0/16", Second: "10.246.0.0/16"}

// PodSubnet returns the range of a cluster's Pod IPs.
func (*Kind) PodSubnet(name string) string { return podSubnets[name] }

// Kind is a host and two members, each a kind cluster.
type Kind struct {
	options  KindOptions
	provider *cluster.Provider
	shared   string
	host     *Cluster
	members  []*Cluster

	mu   sync.Mutex
	made []string // clusters that Up created
}

// NewKind returns a fleet that is not started.
func NewKind(o KindOptions) *Kind {
	return &Kind{options: o, provider: cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(kindlog.NoopLogger{}))}
}

// Host implements Fleet.
func (k *Kind) Host() *Cluster { return k.host }

// Members implements Fleet.
func (k *Kind) Members() []*Cluster { return k.members }

// Member implements Fleet.
func (k *Kind) Member(name string) *Cluster { return find(k.members, name) }

func find(clusters []*Cluster, name string) *Cluster {
	i := slices.IndexFunc(clusters, func(c *Cluster) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return clusters[i]
}

// Kubelets implements Fleet.
func (*Kind) Kubelets() bool { return true }

// Server returns the address of a cluster's API server for the other clusters. It contains the
// name of the cluster's node, which stays the same when the node's IP address changes.
func (*Kind) Server(name string) string { return "https://" + node(name) + ":6443" }

// node returns the name of a cluster's control plane node, which is also its container's name.
func node(name string) string { return prefix + name + "-control-plane" }

// Up implements Fleet.
func (k *Kind) Up(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, "docker", "info").CombinedOutput(); err != nil {
		return fmt.Errorf("kind needs a Docker engine, but none responds: %w\n%s", err, out)
	}
	if err := os.MkdirAll(k.options.Dir, 0o750); err != nil {
		return fmt.Errorf("create a directory for kubeconfigs: %w", err)
	}
	if err := k.makeShared(); err != nil {
		return err
	}
	workload, err := packWorkload(ctx)
	if err != nil {
		return err
	}
	packed, err := packPrograms(ctx, k.options.Progress)
	if err != nil {
		return err
	}
	names := []string{HostName, First, Second}
	clusters := make([]*Cluster, len(names))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, name := range names {
		group.Go(func() (err error) {
			clusters[i], err = k.up(groupCtx, name, imagesOf(name, workload, packed))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	k.host, k.members = clusters[0], clusters[1:]
	return nil
}

// makeShared creates the directory that the members share.
func (k *Kind) makeShared() error {
	dir, err := filepath.Abs(filepath.Join(k.options.Dir, "shared"))
	if err != nil {
		return fmt.Errorf("find the shared directory: %w", err)
	}
	k.shared = dir
	if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // The driver's Pods write to it.
		return fmt.Errorf("create the shared directory: %w", err)
	}
	return nil
}

// configuration returns the kind configuration of a cluster. The nodes of members share a directory.
// A kubelet rejects cgroups v1
// unless it is configured to accept them. With cgroups v2, this has no effect.
func configuration(name, shared string) []byte {
	mounts := ""
	if name != HostName {
		mounts = fmt.Sprintf("  extraMounts: [{hostPath: %q, containerPath: %q}]\n", shared, filesDir)
	}
	return []byte(`kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
kubeadmConfigPatches:
- |
  kind: KubeletConfiguration
  failCgroupV1: false
networking: {podSubnet: ` + podSubnets[name] + `}
nodes:
- role: control-plane
` + mounts + strings.Repeat("- role: worker\n"+mounts, workers[name]))
}

// up starts one cluster, unless it runs, and prepares it for the tests.
func (k *Kind) up(ctx context.Context, name string, images map[string]v1.Image) (*Cluster, error) {
	there, err := k.provider.List()
	if err != nil {
		return nil, fmt.Errorf("list the kind clusters: %w", err)
	}
	kubeconfig := filepath.Join(k.options.Dir, name+".kubeconfig")
	if !slices.Contains(there, prefix+name) {
		start := time.Now()
		k.mu.Lock()
		k.made = append(k.made, name)
		k.mu.Unlock()
		options := []cluster.CreateOption{
			cluster.CreateWithRawConfig(configuration(name, k.shared)), cluster.CreateWithKubeconfigPath(kubeconfig),
			cluster.CreateWithWaitForReady(patience),
		}
		if k.options.NodeImage != "" {
			options = append(options, cluster.CreateWithNodeImage(k.options.NodeImage))
		}
		if err := k.provider.Create(prefix+name, options...); err != nil {
			return nil, fmt.Errorf("create cluster %s: %w%s", name, err, k.explain(err))
		}
		k.options.Progress("%s: a node is ready after %s", name, time.Since(start).Round(time.Second))
	} else if err := k.provider.ExportKubeConfig(prefix+name, kubeconfig, false); err != nil {
		return nil, fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	c, err := newCluster(name, kubeconfig)
	if err != nil {
		return nil, err
	}
	if err := k.load(name, images); err != nil {
		return nil, err
	}
	if err := ready(ctx, c); err != nil {
		return nil, err
	}
	if name != HostName {
		if err := k.memberClass(ctx, c); err != nil {
			return nil, err
		}
	}
	return c, storage(ctx, c)
}

// explain returns the output of a failed command, and a hint if the node image is kind's default.
func (k *Kind) explain(err error) (more string) {
	if failed := kindexec.RunErrorForError(err); failed != nil {
		more = "\n" + string(bytes.TrimSpace(failed.Output))
	}
	if k.options.NodeImage == "" {
		more += "\nif no registry is reachable, make kind-node-image builds a node image, and " + NodeImageEnv + " selects it"
	}
	return more
}

// memberClass creates the class of seed 001's example in a member, with kind's own provisioner,
// which creates directories on the node.
func (*Kind) memberClass(ctx context.Context, c *Cluster) error {
	mode, policy := storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: Class}, Provisioner: "rancher.io/local-path",
		VolumeBindingMode: &mode, ReclaimPolicy: &policy,
	}
	if err := c.API.Create(ctx, class); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create class %s in %s: %w", Class, c.Name, err)
	}
	return nil
}

// ready waits until DNS and the provisioner work.
func ready(ctx context.Context, c *Cluster) error {
	for _, key := range []client.ObjectKey{{Namespace: "kube-system", Name: "coredns"}, {Namespace: "local-path-storage", Name: "local-path-provisioner"}} {
		if err := available(ctx, c, key); err != nil {
			return err
		}
	}
	return nil
}

func available(ctx context.Context, c *Cluster, key client.ObjectKey) error {
	return await(ctx, fmt.Sprintf("%s: deployment %s", c.Name, key), func(ctx context.Context) error {
		var d appsv1.Deployment
		if err := c.API.Get(ctx, key, &d); err != nil {
			return err
		}
		if d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas < max(d.Status.Replicas, 1) {
			return fmt.Errorf("%d of %d are available", d.Status.AvailableReplicas, d.Status.Replicas)
		}
		return nil
	})
}

// await calls check until it returns nil. After the timeout, it returns check's last error.
func await(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, errors.Join(err, last))
	}
	return nil
}

// packWorkload builds the program of the tests' Pods, and packs it into images.
func packWorkload(ctx context.Context) (map[string]v1.Image, error) {
	root, err := kubebin.Root()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "xylem-workload-")
	if err != nil {
		return nil, fmt.Errorf("create a work directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // The images already contain it.
	program := filepath.Join(dir, "workload")
	if err := kubebin.GoBuild(ctx, root, program, "./test/e2e/workload", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w"); err != nil {
		return nil, err
	}
	scratch, err := image.Scratch("linux", runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	packed, err := image.Build(scratch, []image.File{{Path: "/workload", Mode: 0o755, From: program}, {Path: "/bin/tar", Mode: 0o755, From: program}},
		func(c *v1.Config) { c.Entrypoint = []string{"/workload"} })
	if err != nil {
		return nil, err
	}
	images := map[string]v1.Image{}
	for _, tag := range sampleImages {
		images[tag] = packed
	}
	return images, nil
}

// load loads the images onto a cluster's nodes. The host's nodes also get the manager's image, and
// the members' nodes also get the mover's image.
func (k *Kind) load(name string, images map[string]v1.Image) error {
	images = maps.Clone(images)
	return k.eachNode(name, func(n nodes.Node) error {
		if name != HostName && images[MoverImage] == nil { // the nodes of a cluster have the same programs
			packed, err := mover(n)
			if err != nil {
				return err
			}
			images[MoverImage] = packed
		}
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(image.Write(writer, images)) }()
		if err := nodeutils.LoadImageArchive(n, reader); err != nil {
			return fmt.Errorf("load the tests' image onto %s: %w", n, err)
		}
		if name != HostName {
			return nil
		}
		archive, err := os.Open(k.options.Archive)
		if err != nil {
			return fmt.Errorf("read the manager's image (make image writes it): %w", err)
		}
		defer archive.Close() //nolint:errcheck // Only read.
		if err := nodeutils.LoadImageArchive(n, archive); err != nil {
			return fmt.Errorf("load the manager's image onto %s: %w", n, err)
		}
		return nil
	})
}

// Retag adds another name to an image on the host's nodes.
func (k *Kind) Retag(from, to string) error {
	return k.eachNode(HostName, func(n nodes.Node) error {
		if err := nodeutils.ReTagImage(n, "docker.io/library/"+from, "docker.io/library/"+to); err != nil {
			return fmt.Errorf("tag the image %s on %s: %w", to, n, err)
		}
		return nil
	})
}

func (k *Kind) eachNode(name string, do func(nodes.Node) error) error {
	list, err := k.provider.ListInternalNodes(prefix + name)
	if err != nil {
		return fmt.Errorf("list the nodes of %s: %w", name, err)
	}
	for _, n := range list {
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}

// Down implements Fleet.
func (k *Kind) Down(context.Context) error { return k.delete(k.made) }

// Delete removes all clusters of the tests, including those of other runs.
func (k *Kind) Delete() error { return k.delete([]string{HostName, First, Second}) }

func (k *Kind) delete(names []string) error {
	var errs []error
	for _, name := range names {
		kubeconfig := filepath.Join(k.options.Dir, name+".kubeconfig")
		if err := k.provider.Delete(prefix+name, kubeconfig); err != nil {
			errs = append(errs, fmt.Errorf("delete cluster %s: %w", name, err))
			continue
		}
		if err := os.Remove(kubeconfig); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("delete cluster %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// KillManager implements Fleet.
func (k *Kind) KillManager(ctx context.Context) error {
	var lease coordinationv1.Lease
	if err := k.host.API.Get(ctx, client.ObjectKey{Namespace: v1alpha1.DefaultNamespace, Name: leaseName}, &lease); err != nil {
		return fmt.Errorf("find the leading manager: %w", err)
	}
	if lease.Spec.HolderIdentity == nil {
		return errors.New("find the leading manager: the Lease has no holder")
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: name}}
	if err := k.host.API.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("kill manager %s: %w", name, err)
	}
	return nil
}

// Cut implements Fleet. It drops all packets between the host's node and the member's control plane
// node, in both directions.
func (k *Kind) Cut(ctx context.Context, member string) error { return k.filter(ctx, member, "-I") }

// Mend implements Fleet.
func (k *Kind) Mend(ctx context.Context, member string) error { return k.filter(ctx, member, "-D") }

func (k *Kind) filter(ctx context.Context, member, verb string) error {
	list, err := k.provider.ListInternalNodes(prefix + HostName)
	if err != nil || len(list) == 0 {
		return fmt.Errorf("find the host's node: %w", err)
	}
	address, _, err := list[0].IP()
	if err != nil {
		return fmt.Errorf("find the host's address: %w", err)
	}
	return errors.Join(
		docker(ctx, "exec", node(member), "iptables", "-w", verb, "INPUT", "-s", address, "-j", "DROP"),
		docker(ctx, "exec", node(member), "iptables", "-w", verb, "OUTPUT", "-d", address, "-j", "DROP"),
	)
}

// Connect makes the Pod IPs of each member reachable from the other member's Pods. A node loses these routes when it
// restarts.
func (k *Kind) Connect(ctx context.Context) error {
	for _, to := range k.members {
		var list corev1.NodeList
		if err := to.API.List(ctx, &list); err != nil {
			return fmt.Errorf("list the nodes of %s: %w", to.Name, err)
		}
		for _, from := range k.members {
			if from == to {
				continue
			}
			err := k.eachNode(from.Name, func(n nodes.Node) error { return addRoutes(ctx, n, list.Items) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// addRoutes adds routes from a node to the Pods of nodes in another cluster.
func addRoutes(ctx context.Context, n nodes.Node, others []corev1.Node) error {
	for _, other := range others {
		for _, a := range other.Status.Addresses {
			if a.Type != corev1.NodeInternalIP {
				continue
			}
			if err := docker(ctx, "exec", n.String(), "ip", "route", "replace", other.Spec.PodCIDR, "via", a.Address); err != nil {
				return err
			}
		}
	}
	return nil
}

// Kill implements Fleet.
func (k *Kind) Kill(ctx context.Context, member string) error { return k.KillNode(ctx, node(member)) }

// Start implements Fleet.
func (k *Kind) Start(ctx context.Context, member string) error {
	if err := k.StartNode(ctx, node(member)); err != nil {
		return err
	}
	return ready(ctx, k.Member(member))
}

// KillNode kills one node without warning, by its name in its cluster.
func (*Kind) KillNode(ctx context.Context, name string) error { return docker(ctx, "kill", name) }

// StartNode starts a node that was killed.
func (*Kind) StartNode(ctx context.Context, name string) error { return docker(ctx, "start", name) }

func docker(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput() //nolint:gosec // Our own arguments.
	if err != nil {
		return fmt.Errorf("docker %s: %w\n%s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// provisioned is the directory in which kind's provisioner creates disks.
const provisioned = "/var/local-path-provisioner"

// Files lists the directories that a member's provisioner has created on the member's nodes and has
// not removed.
func (k *Kind) Files(ctx context.Context, member string) ([]string, error) {
	return k.list(ctx, member, provisioned)
}

// list lists the contents of directories on a member's nodes. It ignores missing directories.
func (k *Kind) list(ctx context.Context, member string, dirs ...string) ([]string, error) {
	var files []string
	err := k.eachNode(member, func(n nodes.Node) error {
		script := `for dir in "$@"; do ls "$dir" 2>/dev/null || true; done`
		out, err := exec.CommandContext(ctx, "docker", append([]string{"exec", n.String(), "sh", "-c", script, "sh"}, dirs...)...).Output() //nolint:gosec // Our own node.
		if err != nil {
			return fmt.Errorf("list the disks on %s: %w", n, err)
		}
		files = append(files, strings.Fields(string(out))...)
		return nil
	})
	return files, err
}

// Collect implements Fleet.
func (k *Kind) Collect(ctx context.Context, dir string) error {
	var errs []error
	for _, name := range []string{HostName, First, Second} {
		to := filepath.Join(dir, name)
		if err := k.provider.CollectLogs(prefix+name, filepath.Join(to, "node")); err != nil {
			errs = append(errs, fmt.Errorf("collect the logs of %s: %w", name, err))
		}
		if c := find(append([]*Cluster{k.host}, k.members...), name); c != nil {
			errs = append(errs, collectObjects(ctx, c, to))
		}
	}
	return errors.Join(errs...)
}
