package move_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/kubelet"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// storyTime is the timeout of a story.
const storyTime = 4 * time.Minute

const (
	one, nodeOne = "cluster38", "kosmos-cluster38"
	two, nodeTwo = "cluster39", "kosmos-cluster39"
)

// StorageClasses in the host.
const (
	// class has policy Delete in the host and in the members.
	class = "moved"
	// onlyOne maps to a class that only the first member has.
	onlyOne = "only-one"
)

var (
	x        *harness.Xylem
	kubelets = map[string]*kubelet.Server{}
	// kubeconfig is the kubeconfig of the user that asMover creates.
	kubeconfig string
)

func TestMove(t *testing.T) {
	suite.Run(t, "Move", suite.Slow)
}

var _ = suite.On(&x, func(ctx SpecContext) harness.Options {
	address, err := harness.FreeAddress(ctx)
	Expect(err).NotTo(HaveOccurred())
	members := make([]controlplane.ClusterOptions, 0, 2)
	for _, name := range []string{one, two} {
		k := kubelet.New(func() *controlplane.Cluster { return x.Fleet.Member(name) })
		DeferCleanup(k.Close)
		kubelets[name] = k
		members = append(members, controlplane.ClusterOptions{Name: name, Nodes: 1, Kubelets: true, Kubelet: k.Address()})
	}
	only := controlplane.DefaultStorage()
	only.Classes = append(only.Classes, controlplane.Class(onlyOne, "WaitForFirstConsumer", corev1.PersistentVolumeReclaimDelete))
	members[0].Storage = only
	return harness.Options{
		Host: controlplane.ClusterOptions{Kubelets: true}, Members: members,
		ManagerArgs: []string{"--node-api-bind-address=" + address, "--node-api-advertise-address=127.0.0.1", "--node-grace=" + suite.NodeGrace.String(), "--fence-epoch-interval=1s"},
	}
}, func(ctx SpecContext) {
	for _, name := range []string{one, two} {
		_, err := x.Kubectl(ctx, x.Fleet.Member(name), "apply", "--server-side", "-k", x.Root("config", "member", "exec"))
		Expect(err).NotTo(HaveOccurred())
	}
	asMover(ctx)
	Expect(x.Host.Create(ctx, harness.HostClass(class, nil),
		harness.HostClass(onlyOne, map[string]string{v1alpha1.ParameterMemberClass: onlyOne}))).To(Succeed())
})

var _ = AfterEach(func() {
	for _, k := range kubelets {
		k.Before(nil)
	}
	if CurrentSpecReport().Failed() {
		log := x.Manager.Log()
		GinkgoWriter.Println(log[max(0, len(log)-20_000):])
	}
})

// asMover creates a user with only the permissions that config/samples/README.md lists.
func asMover(ctx context.Context) {
	GinkgoHelper()
	const user = "mover"
	read := []string{"get", "list"}
	change := []string{"get", "list", "create", "patch", "delete"}
	name := metav1.ObjectMeta{Name: user}
	Expect(x.Host.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes", "namespaces"}, Verbs: read},
		{APIGroups: []string{"cluster.xylem.io"}, Resources: []string{"clusterregistrations"}, Verbs: read},
		{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"storageclasses", "csistoragecapacities"}, Verbs: read},
		{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: read},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"get", "list", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims", "pods", "configmaps"}, Verbs: change},
		{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}},
	}}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
	content, err := x.Fleet.Host.UserKubeconfig(controlplane.Direct, user)
	Expect(err).NotTo(HaveOccurred())
	kubeconfig = filepath.Join(x.Fleet.Dir(), "mover.kubeconfig")
	Expect(os.WriteFile(kubeconfig, content, 0o600)).To(Succeed())
}

// result contains the output, error output and exit code of a run of the plugin.
type result struct {
	out, err string
	code     int
}

func plugin(ctx context.Context, kubeconfig string, args ...string) result {
	GinkgoHelper()
	out, complaints, code := suite.Plugin(ctx, kubeconfig, clock.RealClock{}, args...)
	GinkgoWriter.Printf("$ kubectl xylem %s\n%s%s(exit %d)\n", strings.Join(args, " "), out, complaints, code)
	return result{out, complaints, code}
}

// story is a namespace with a claim "data", whose disk is in the first member.
type story struct {
	namespace string
	// volume is the name of the claim's first volume.
	volume string
}

func begin(ctx context.Context, change ...func(*corev1.PersistentVolumeClaim)) *story {
	GinkgoHelper()
	names++
	s := &story{namespace: "move-" + time.Now().Format("150405") + "-" + string(rune('a'+names%26))}
	Expect(x.Host.CreateNamespace(ctx, s.namespace)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // A cleanup has a context of its own.
		if CurrentSpecReport().Failed() {
			x.Dump(ctx, GinkgoWriter, s.namespace)
		}
		Expect(x.Host.API.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.namespace))).To(Succeed())
		Expect(x.Host.API.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(s.namespace))).To(Succeed())
	}, NodeTimeout(storyTime))
	claim := harness.Claim(s.namespace, "data", class)
	claim.Labels, claim.Annotations = map[string]string{"app": "db"}, map[string]string{"note": "mine"}
	for _, f := range change {
		f(claim)
	}
	s.provision(ctx, claim)
	s.volume = s.claim(ctx).Spec.VolumeName
	return s
}

var names int

// provision creates a claim, and its disk in the first member.
func (s *story) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	Expect(x.Host.Create(ctx, claim)).To(Succeed())
	s.pod(ctx, "first", claim.Name, nodeOne)
	s.running(ctx, "first")
	s.deletePod(ctx, "first")
}

func (s *story) pod(ctx context.Context, name, claim, node string) {
	GinkgoHelper()
	pod := harness.Pod(s.namespace, name, claim)
	if isBlock(ctx, s.namespace, claim) {
		pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: claim, DevicePath: "/dev/x"}}
	}
	harness.OnNodes(pod, node)
	Expect(x.Host.Create(ctx, pod)).To(Succeed())
}

func (s *story) deletePod(ctx context.Context, name string) {
	GinkgoHelper()
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = s.namespace, name
	Expect(client.IgnoreNotFound(x.Host.API.Delete(ctx, pod))).To(Succeed())
	suite.Gone[corev1.Pod](ctx, x.Host, s.namespace, name)
}

// running waits until a Pod runs.
func (s *story) running(ctx context.Context, name string) {
	GinkgoHelper()
	suite.Until[corev1.Pod](ctx, x.Host, s.namespace, name, HaveField("Status.Phase", corev1.PodRunning))
}

// claim waits until the claim is bound, and returns it.
func (s *story) claim(ctx context.Context) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	return suite.Until[corev1.PersistentVolumeClaim](ctx, x.Host, s.namespace, "data", HaveField("Status.Phase", corev1.ClaimBound))
}

// disk returns the path of a host volume's disk.
func (s *story) disk(ctx context.Context, volume string) string {
	GinkgoHelper()
	host, err := suite.Read[corev1.PersistentVolume](ctx, x.Host, "", volume)
	Expect(err).NotTo(HaveOccurred())
	leafName := host.Spec.CSI.VolumeHandle[strings.Index(host.Spec.CSI.VolumeHandle, "/")+1:]
	for _, m := range x.Members() {
		if id, err := m.ID(ctx); err != nil || !strings.HasPrefix(host.Spec.CSI.VolumeHandle, id) {
			continue
		}
		leaf, err := suite.Read[corev1.PersistentVolume](ctx, m, "", leafName)
		Expect(err).NotTo(HaveOccurred())
		disk, err := kubelet.DiskOfVolume(m.Cluster, leaf)
		Expect(err).NotTo(HaveOccurred())
		return disk
	}
	Fail("no member has volume " + volume)
	return ""
}

// move runs `kubectl xylem move` for the story's claim.
func (s *story) move(ctx context.Context, args ...string) result {
	GinkgoHelper()
	return plugin(ctx, kubeconfig, s.args(args...)...)
}

func (s *story) args(args ...string) []string {
	return append([]string{"move", "pvc", "data", "-n", s.namespace, "--yes", "--timeout=60s"}, args...)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
