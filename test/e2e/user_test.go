package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/docs"
	"github.com/xylem-io/xylem/test/e2e/fleet"
)

// programs are the programs that a user runs, with their paths from the Makefile.
var programs = map[string]string{"helm": os.Getenv("HELM"), "kubectl": os.Getenv("KUBECTL")}

// command returns a command as a user would run it against a cluster, and prints it.
func command(ctx context.Context, c *fleet.Cluster, program string, args ...string) *exec.Cmd {
	path := program
	if known := programs[program]; known != "" {
		path = known
	}
	fmt.Fprintf(GinkgoWriter, "\n%s $ %s %s\n", c.Name, program, strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = root
	// kubectl finds its plugins in PATH, and a shell finds the other programs.
	search := []string{filepath.Join(root, "bin")}
	for _, known := range programs {
		search = append(search, filepath.Dir(known))
	}
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "NO_COLOR=1", "PATH="+strings.Join(append(search, os.Getenv("PATH")), ":"))
	return cmd
}

// background starts a command that runs until the end of the spec, and returns its output.
func background(ctx context.Context, c *fleet.Cluster, program string, args ...string) *gbytes.Buffer {
	GinkgoHelper()
	ctx, end := context.WithCancel(ctx)
	cmd, out := command(ctx, c, program, args...), gbytes.NewBuffer()
	cmd.Stdout, cmd.Stderr = io.MultiWriter(out, GinkgoWriter), io.MultiWriter(out, GinkgoWriter)
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		end()
		_ = cmd.Wait() // the command was killed
	})
	return out
}

// user runs a command against a cluster as a user would. It prints the command and its output,
// and returns its output.
func user(ctx context.Context, c *fleet.Cluster, input, program string, args ...string) (string, error) {
	GinkgoHelper()
	cmd := command(ctx, c, program, args...)
	cmd.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	fmt.Fprint(GinkgoWriter, out.String())
	if err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out.String())
	}
	return out.String(), nil
}

func run(ctx context.Context, c *fleet.Cluster, program string, args ...string) string {
	GinkgoHelper()
	out, err := user(ctx, c, "", program, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// shell runs a command block from the documentation.
func shell(ctx context.Context, c *fleet.Cluster, commands string) {
	GinkgoHelper()
	fmt.Fprintf(GinkgoWriter, "\n%s", commands)
	_, err := user(ctx, c, "set -euo pipefail\n"+commands, "bash", "-s")
	Expect(err).NotTo(HaveOccurred())
}

// documented returns the only command block on a page that contains the given text.
func documented(page, text string) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(root, page))
	Expect(err).NotTo(HaveOccurred())
	blocks, err := docs.Blocks(page, string(content))
	Expect(err).NotTo(HaveOccurred())
	var found []string
	for _, b := range blocks {
		if strings.Contains(b.Commands, text) {
			found = append(found, b.Commands)
		}
	}
	Expect(found).To(HaveLen(1), "blocks of %s with %q", page, text)
	return found[0]
}

func apply(ctx context.Context, c *fleet.Cluster, manifest string) {
	GinkgoHelper()
	_, err := user(ctx, c, manifest, "kubectl", "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// sample reads a file in config/samples, and applies the replacements.
func sample(name string, replace ...string) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(root, "config/samples", name))
	Expect(err).NotTo(HaveOccurred())
	for i := 0; i+1 < len(replace); i += 2 {
		Expect(string(content)).To(ContainSubstring(replace[i]))
	}
	return strings.NewReplacer(replace...).Replace(string(content))
}

// nodeName returns the name of a registration's virtual node.
func nodeName(registration string) string { return v1alpha1.DefaultNodeNamePrefix + registration }

// workload returns the manifests of a claim, and of a Deployment that runs one Pod with it in a
// member.
func workload(namespace, name, registration string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: %[4]s
  resources: {requests: {storage: 64Mi}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {kubernetes.io/hostname: %[3]s}
      tolerations: [{key: kosmos.io/node, operator: Exists, effect: NoSchedule}]
      containers:
      - name: app
        image: %[5]s
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: %[2]s}}]
---
`, namespace, name, nodeName(registration), fleet.Class, fleet.WorkloadImage)
}

// apart returns a workload whose Pod does not share a member's node with Pods of other such
// workloads.
func apart(namespace, name, registration string) string {
	return strings.NewReplacer(
		"metadata: {labels: {app: "+name+"}}", "metadata: {labels: {app: "+name+", nodes: apart}}",
		"      containers:\n", `      topologySpreadConstraints:
      - topologyKey: kubernetes.io/hostname
        maxSkew: 1
        whenUnsatisfiable: DoNotSchedule
        nodeTaintsPolicy: Honor
        labelSelector: {matchLabels: {nodes: apart}}
      containers:
`).Replace(workload(namespace, name, registration))
}

func makeNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(client.IgnoreAlreadyExists(world.Host().API.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))).To(Succeed())
}

// removeNamespace removes a namespace in the host, and waits until it has no claim or volume
// left in any cluster. The last story checks that its counterparts in members are deleted as
// well, which takes longer.
func removeNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	err := world.Host().API.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	Eventually(func() error { return absent(ctx, world.Host(), name, &corev1.Namespace{}) }).WithContext(ctx).Should(Succeed())
	for _, c := range everywhere() {
		Eventually(func() ([]string, error) { return volumesOf(ctx, c, name) }).WithContext(ctx).Should(BeEmpty(), "volumes of %s in %s", name, c.Name)
	}
}

func absent(ctx context.Context, c *fleet.Cluster, name string, o client.Object) error {
	switch err := c.API.Get(ctx, client.ObjectKey{Name: name}, o); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%s has %s", c.Name, name)
	}
}

// volumesOf lists the PVs of existing and deleted claims in a namespace.
func volumesOf(ctx context.Context, c *fleet.Cluster, namespace string) ([]string, error) {
	var list corev1.PersistentVolumeList
	if err := c.API.List(ctx, &list); err != nil {
		return nil, err
	}
	var names []string
	for _, pv := range list.Items {
		if ref := pv.Spec.ClaimRef; ref != nil && ref.Namespace == namespace {
			names = append(names, pv.Name)
		}
	}
	return names, nil
}

// runningPod waits until the only Pod of an app runs in a cluster, and returns it.
func runningPod(ctx context.Context, c *fleet.Cluster, namespace, app string) *corev1.Pod {
	GinkgoHelper()
	var found *corev1.Pod
	Eventually(func() error {
		var err error
		found, err = onlyPod(ctx, c, namespace, app)
		return err
	}).WithContext(ctx).Should(Succeed())
	return found
}

func onlyPod(ctx context.Context, c *fleet.Cluster, namespace, app string) (*corev1.Pod, error) {
	var list corev1.PodList
	if err := c.API.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
		return nil, err
	}
	var states []string
	for _, p := range list.Items {
		states = append(states, fmt.Sprintf("%s on %q %s", p.Name, p.Spec.NodeName, p.Status.Phase))
		if p.DeletionTimestamp != nil {
			states[len(states)-1] += " being deleted"
		}
	}
	if len(list.Items) != 1 || list.Items[0].DeletionTimestamp != nil || !ready(list.Items[0]) {
		return nil, fmt.Errorf("Pods of %s/%s in %s: %s", namespace, app, c.Name, strings.Join(states, ", "))
	}
	return &list.Items[0], nil
}

func ready(p corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.Status.Phase == corev1.PodRunning
		}
	}
	return false
}

// boundClaim waits until a claim in the host is bound, and returns it.
func boundClaim(ctx context.Context, namespace, name string) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	var claim corev1.PersistentVolumeClaim
	Eventually(func() error {
		if err := world.Host().API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &claim); err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("claim %s/%s is %s: %v", namespace, name, claim.Status.Phase, claim.Status.Conditions)
		}
		return nil
	}).WithContext(ctx).Should(Succeed())
	return &claim
}

func volume(ctx context.Context, c *fleet.Cluster, name string) *corev1.PersistentVolume {
	GinkgoHelper()
	var pv corev1.PersistentVolume
	Expect(c.API.Get(ctx, client.ObjectKey{Name: name}, &pv)).To(Succeed())
	return &pv
}

func scale(ctx context.Context, namespace, kind, name string, replicas int) {
	GinkgoHelper()
	run(ctx, world.Host(), "kubectl", "-n", namespace, "scale", kind, name, fmt.Sprintf("--replicas=%d", replicas))
}

// registered waits until a registration is Ready, and returns it.
func registered(ctx context.Context, name string) *v1alpha1.ClusterRegistration {
	GinkgoHelper()
	var cr v1alpha1.ClusterRegistration
	Eventually(func() error {
		if err := world.Host().API.Get(ctx, client.ObjectKey{Name: name}, &cr); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(cr.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("registration %s: %+v", name, cr.Status.Conditions)
		}
		return nil
	}).WithContext(ctx).Should(Succeed())
	return &cr
}

// reachable reports whether a member's node in the host is Ready and does not show that the
// member is away. By default, Xylem keeps an away member's node Ready (spec.node.whenAway).
func reachable(ctx context.Context, registration string) (bool, error) {
	var n corev1.Node
	if err := world.Host().API.Get(ctx, client.ObjectKey{Name: nodeName(registration)}, &n); err != nil {
		return false, err
	}
	isReady, away := false, false
	for _, c := range n.Status.Conditions {
		isReady = isReady || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		away = away || c.Type == v1alpha1.NodeMemberAway && c.Status == corev1.ConditionTrue
	}
	return isReady && !away, nil
}

// written returns the lines on a Pod's disk, which the Pod's program reads.
func written(ctx context.Context, member *fleet.Cluster, namespace, pod string) ([]string, error) {
	out, err := member.Typed.CoreV1().Pods(namespace).ProxyGet("http", pod, "80", "/", nil).DoRaw(ctx)
	return strings.Split(strings.TrimSpace(string(out)), "\n"), err
}

// write makes a Pod's program write a line, and returns once the line is on the disk.
func write(ctx context.Context, member *fleet.Cluster, namespace, pod, line string) {
	GinkgoHelper()
	if !world.Kubelets() {
		return
	}
	Eventually(func() error {
		return member.Typed.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name("http:" + pod + ":80").
			SubResource("proxy").Suffix("/").Body([]byte(line)).Do(ctx).Error()
	}).WithContext(ctx).Should(Succeed())
}

// holds waits until a Pod's disk contains the lines in this order.
func holds(ctx context.Context, member *fleet.Cluster, namespace, pod string, lines ...string) {
	GinkgoHelper()
	if !world.Kubelets() {
		return
	}
	Eventually(func() ([]string, error) { return written(ctx, member, namespace, pod) }).WithContext(ctx).Should(ContainElements(lines))
}

// show prints the content of a Pod's disk.
func show(ctx context.Context, member *fleet.Cluster, namespace, pod string) {
	GinkgoHelper()
	if world.Kubelets() {
		run(ctx, member, "kubectl", "get", "--raw", "/api/v1/namespaces/"+namespace+"/pods/http:"+pod+":80/proxy/")
	}
}

// memberOf returns the member on whose node a host Pod runs.
func memberOf(p *corev1.Pod) *fleet.Cluster {
	GinkgoHelper()
	m := memberOn(p.Spec.NodeName)
	Expect(m).NotTo(BeNil(), "Pod %s is on %s, which is not a member's node", p.Name, p.Spec.NodeName)
	return m
}

// memberOn returns the member that a node in the host represents, or nil. If a member has several nodes, their names end in
// the name of its only node otherwise.
func memberOn(node string) *fleet.Cluster {
	_, registration, _ := strings.Cut(node, v1alpha1.DefaultNodeNamePrefix)
	return world.Member(registration)
}

// available waits until a Deployment in the host is available.
func available(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	Eventually(func() error {
		var d appsv1.Deployment
		if err := world.Host().API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &d); err != nil {
			return err
		}
		if d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas < *d.Spec.Replicas || d.Status.AvailableReplicas < *d.Spec.Replicas ||
			d.Status.Replicas > *d.Spec.Replicas {
			return fmt.Errorf("%s/%s: %+v", namespace, name, d.Status)
		}
		return nil
	}).WithContext(ctx).Should(Succeed())
}

// shellPod runs a Pod with a claim in a member, in which kubectl exec can run shell scripts.
func shellPod(ctx context.Context, namespace, name, claim, registration string) {
	GinkgoHelper()
	apply(ctx, world.Host(), fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s}
spec:
  terminationGracePeriodSeconds: 1
  nodeSelector: {kubernetes.io/hostname: %s}
  tolerations: [{key: kosmos.io/node, operator: Exists, effect: NoSchedule}]
  containers:
  - name: app
    image: %s
    command: [sleep, infinity]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: %s}}]
`, name, namespace, nodeName(registration), fleet.MoverImage, claim))
	run(ctx, world.Host(), "kubectl", "-n", namespace, "wait", "pod/"+name, "--for=condition=Ready", "--timeout", settle.String())
}
