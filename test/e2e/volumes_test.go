package e2e_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/e2e/fleet"
)

// These stories use disks of the second member's CSI driver, which supports snapshots and clones.
// The user works only in the host, and only with kubectl.

// takesSnapshots is the story of a snapshot, its restore, and a clone.
func takesSnapshots(ctx SpecContext) {
	const namespace = "kept"
	offersDisks(ctx)
	By("the driver has registered with the kubelet of the member's node")
	Eventually(func() (string, error) {
		return user(ctx, world.Member(fleet.Second), "", "kubectl", "get", "csinodes", "-o", "jsonpath={.items[*].spec.drivers[*].name}")
	}).WithContext(ctx).Should(ContainSubstring(fleet.DisksDriver))

	makeNamespace(ctx, namespace)
	apply(ctx, world.Host(), onDisks(workload(namespace, "ledger", fleet.Second)))
	runningPod(ctx, world.Host(), namespace, "ledger")
	inPod(ctx, namespace, "deployment/ledger", "replace", "balance on Monday: 100")

	By("the user takes a snapshot of the disk")
	ofHere := []string{"test-new", namespace, "openebs-hostpath", fleet.Disks, "nginx-pvc", "ledger"}
	taken, restored := halves(sample("restore.yaml", ofHere...))
	apply(ctx, world.Host(), taken)
	run(ctx, world.Host(), "kubectl", "-n", namespace, "wait", "volumesnapshot/nginx-monday", "--for=jsonpath={.status.readyToUse}=true", "--timeout", settle.String())
	run(ctx, world.Host(), "kubectl", "-n", namespace, "get", "volumesnapshots")
	run(ctx, world.Member(fleet.Second), "kubectl", "-n", namespace, "get", "volumesnapshots")

	By("the data is overwritten by accident")
	inPod(ctx, namespace, "deployment/ledger", "replace", "balance after the accident: 0")
	Expect(inPod(ctx, namespace, "deployment/ledger", "show")).NotTo(ContainSubstring("Monday"))

	By("the snapshot is restored to a new claim, whose Pod selects no member")
	apply(ctx, world.Host(), restored)
	Expect(onDisk(ctx, namespace, "nginx-restored")).To(And(HavePrefix("balance on Monday: 100\n"), Not(ContainSubstring("accident"))))

	By("the disk is cloned in its current state")
	apply(ctx, world.Host(), sample("clone.yaml", ofHere...))
	Expect(onDisk(ctx, namespace, "nginx-copy")).To(And(HavePrefix("balance after the accident: 0\n"), Not(ContainSubstring("Monday"))))

	By("the copies are independent: a write to one does not affect the others")
	inPod(ctx, namespace, "nginx-restored", "replace", "balance on Tuesday: 101")
	Expect(inPod(ctx, namespace, "deployment/ledger", "show")).To(HavePrefix("balance after the accident: 0\n"))
	Expect(inPod(ctx, namespace, "nginx-copy", "show")).To(HavePrefix("balance after the accident: 0\n"))
	run(ctx, world.Host(), "kubectl", "-n", namespace, "get", "pods,pvc,volumesnapshots", "-o", "wide")
	run(ctx, world.Host(), "kubectl", "xylem", "tree", "pvc", "nginx-restored", "--namespace", namespace)
	Expect(onKind.Disks(ctx)).To(HaveLen(4), "the member must have three disks and a snapshot")

	By("all disks and the snapshot are deleted")
	removeNamespace(ctx, namespace)
	Eventually(func() ([]string, error) { return onKind.Disks(ctx) }).WithContext(ctx).Should(BeEmpty())
}

// adopts is the story of a member's disk that the host adopts.
func adopts(ctx SpecContext) {
	const namespace, name, line = "adopted", "disk-7", "written before the adoption"
	member := world.Member(fleet.Second)
	offersDisks(ctx)
	leaf := releasedDisk(ctx, member, line)

	By("the admin runs adopt, first with --dry-run")
	adopt := []string{"xylem", "adopt", fleet.Second, leaf, "--member-kubeconfig", member.Kubeconfig, "--name", name}
	run(ctx, world.Host(), "kubectl", append(adopt, "--dry-run")...)
	Expect(absent(ctx, world.Host(), name, &corev1.PersistentVolume{})).To(Succeed())
	run(ctx, world.Host(), "kubectl", adopt...)

	By("a claim in the host uses the disk, and its Pod reads the data")
	makeNamespace(ctx, namespace)
	apply(ctx, world.Host(), strings.Replace(onDisks(workload(namespace, "app", fleet.Second)), "  resources:", "  volumeName: "+name+"\n  resources:", 1))
	pod := runningPod(ctx, world.Host(), namespace, "app")
	Expect(inPod(ctx, namespace, "deployment/app", "show")).To(And(HavePrefix(line+"\n"), ContainSubstring("started "+pod.Name)))
	Expect(volumesOf(ctx, member, namespace)).To(Equal([]string{leaf}), "no other disk must be provisioned")
	run(ctx, world.Host(), "kubectl", "get", "pv", name)
	run(ctx, world.Host(), "kubectl", "-n", namespace, "describe", "pvc", "app")

	By("the disk outlives the host's claim and volume")
	run(ctx, world.Host(), "kubectl", "-n", namespace, "delete", "deployment/app", "pvc/app", "--timeout", settle.String())
	run(ctx, world.Host(), "kubectl", "wait", "pv/"+name, "--for=jsonpath={.status.phase}=Released", "--timeout", settle.String())
	run(ctx, world.Host(), "kubectl", "delete", "pv", name, "--timeout", settle.String())
	run(ctx, member, "kubectl", "get", "pv", leaf)
	Expect(onKind.Disks(ctx)).To(HaveLen(1))

	By("the member's admin destroys it")
	run(ctx, member, "kubectl", "patch", "pv", leaf, "--type=merge", "-p", `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
	Eventually(func() ([]string, error) { return onKind.Disks(ctx) }).WithContext(ctx).Should(BeEmpty())
	removeNamespace(ctx, namespace)
}

// offersDisks creates a class for the second member's driver in the host, and lets the host's
// users run commands in that member.
func offersDisks(ctx context.Context) {
	GinkgoHelper()
	if onKind == nil {
		Skip("Pods do not write on this provider: test/integration covers it")
	}
	apply(ctx, world.Host(), sample("storageclass.yaml", "name: openebs-hostpath", "name: "+fleet.Disks))
	run(ctx, world.Member(fleet.Second), "helm", "upgrade", "xylem-member", "charts/xylem-member", "--namespace", system,
		"--reset-then-reuse-values", "--set", "exec.enabled=true")
}

// onDisks returns a workload with a disk of the second member's driver.
func onDisks(manifest string) string {
	return strings.ReplaceAll(manifest, "storageClassName: "+fleet.Class, "storageClassName: "+fleet.Disks)
}

// halves splits a sample into its first two documents and the rest.
func halves(manifest string) (first, others string) {
	GinkgoHelper()
	documents := strings.SplitN(manifest, "\n---\n", 3)
	Expect(documents).To(HaveLen(3))
	return documents[0] + "\n---\n" + documents[1], documents[2]
}

// inPod runs a command of the tests' program in a Pod in the host, and returns its output.
func inPod(ctx context.Context, namespace, pod string, args ...string) string {
	GinkgoHelper()
	return run(ctx, world.Host(), "kubectl", append([]string{"-n", namespace, "exec", pod, "--", "/workload"}, args...)...)
}

// onDisk waits until a host Pod is ready in the second member, and returns the data on its disk.
func onDisk(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	run(ctx, world.Host(), "kubectl", "-n", namespace, "wait", "pod/"+name, "--for=condition=Ready", "--timeout", settle.String())
	var pod corev1.Pod
	Expect(world.Host().API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &pod)).To(Succeed())
	Expect(memberOf(&pod).Name).To(Equal(fleet.Second))
	return inPod(ctx, namespace, name, "show")
}

// releasedDisk creates a disk in a member without the host, writes a line to it, and releases it.
// It returns the name of the disk's PersistentVolume.
func releasedDisk(ctx context.Context, member *fleet.Cluster, line string) string {
	GinkgoHelper()
	const namespace = "of-the-member"
	run(ctx, member, "kubectl", "create", "namespace", namespace)
	DeferCleanup(removeFrom, member, namespace, NodeTimeout(settle))
	apply(ctx, member, fmt.Sprintf(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: %[1]s}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: %[2]s
  resources: {requests: {storage: 64Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: app, namespace: %[1]s}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: %[3]s
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`, namespace, fleet.Disks, fleet.WorkloadImage))
	run(ctx, member, "kubectl", "-n", namespace, "wait", "pod/app", "--for=condition=Ready", "--timeout", settle.String())
	run(ctx, member, "kubectl", "-n", namespace, "exec", "app", "--", "/workload", "replace", line)
	volume := run(ctx, member, "kubectl", "-n", namespace, "get", "pvc", "data", "-o", "jsonpath={.spec.volumeName}")
	run(ctx, member, "kubectl", "patch", "pv", volume, "--type=merge", "-p", `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
	run(ctx, member, "kubectl", "-n", namespace, "delete", "pod/app", "pvc/data", "--timeout", settle.String())
	run(ctx, member, "kubectl", "wait", "pv/"+volume, "--for=jsonpath={.status.phase}=Released", "--timeout", settle.String())
	return volume
}

func removeFrom(ctx context.Context, member *fleet.Cluster, namespace string) {
	GinkgoHelper()
	run(ctx, member, "kubectl", "delete", "namespace", namespace, "--timeout", settle.String())
}
