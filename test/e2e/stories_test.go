package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/e2e/fleet"
)

// The stories follow a user's first days. Later stories depend on what earlier ones install.
var _ = Describe("Xylem", Ordered, ContinueOnFailure, func() {
	var before map[string][]string

	It("is installed with its charts, and members are registered", func(ctx SpecContext) {
		if onKind == nil {
			Skip("on this provider, the manager is a process; make test covers it")
		}
		before = map[string][]string{}
		for _, c := range everywhere() {
			list, err := fleet.Inventory(ctx, c)
			Expect(err).NotTo(HaveOccurred())
			before[c.Name] = list
		}
		install(ctx)
		registerByPlugin(ctx, fleet.First, "--with-logs", "--with-exec", "--with-debug")
		registerByHand(ctx, fleet.Second)
		run(ctx, world.Host(), "kubectl", "get", "clusterregistrations,nodes")
	}, SpecTimeout(storyTime))

	It("passes helm test", func(ctx SpecContext) {
		if onKind == nil {
			Skip("this provider does not use the charts")
		}
		works(ctx)
	}, SpecTimeout(storyTime))

	It("runs seed 001's example, with a Pod that really writes", func(ctx SpecContext) {
		apply(ctx, world.Host(), sample("storageclass.yaml"))
		apply(ctx, world.Host(), sample("nginx.yaml"))
		available(ctx, "test-new", "nginx-new")
		claim := boundClaim(ctx, "test-new", "nginx-pvc")
		pod, member := runningPod(ctx, world.Host(), "test-new", "nginx"), world.Member(fleet.First)
		Expect(pod.Spec.NodeName).To(Equal(nodeName(fleet.First)))

		By("the host's volume shows the location of the disk")
		pv := volume(ctx, world.Host(), claim.Spec.VolumeName)
		Expect(pv.Spec.CSI.Driver).To(Equal(v1alpha1.ProvisionerName))
		leaf := runningPod(ctx, member, "test-new", "nginx")
		Expect(leaf.Name).To(Equal(pod.Name))
		Expect(pod.Status.PodIP).To(Equal(leaf.Status.PodIP))
		Expect(volumesOf(ctx, member, "test-new")).To(HaveLen(1))

		By("the Pod's data is on the disk")
		write(ctx, member, "test-new", pod.Name, "written in the first story")
		holds(ctx, member, "test-new", pod.Name, "started "+pod.Name, "written in the first story")
		show(ctx, member, "test-new", pod.Name)
		run(ctx, world.Host(), "kubectl", "-n", "test-new", "get", "pods,pvc", "-o", "wide")
		run(ctx, world.Host(), "kubectl", "-n", "test-new", "describe", "pvc", "nginx-pvc")
		tree(ctx, "test-new", "nginx-pvc")
	}, SpecTimeout(storyTime))

	It("shows a Pod's logs, and runs commands in it", func(ctx SpecContext) {
		if onKind == nil {
			Skip("test/integration/nodeapi covers it on this provider")
		}
		pod := runningPod(ctx, world.Host(), "test-new", "nginx").Name
		kubectl := func(input string, args ...string) (string, error) {
			return user(ctx, world.Host(), input, "kubectl", append([]string{"-n", "test-new"}, args...)...)
		}
		Expect(kubectl("", "logs", pod)).To(ContainSubstring("serving " + pod))
		Expect(kubectl("", "logs", pod, "--tail=1", "--timestamps")).To(MatchRegexp(`^\d{4}-\d{2}-\d{2}T\S+Z .*appending`))
		out, err := kubectl("", "exec", pod, "--", "/workload", "say", "hello", "a b")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("hello a b"))
		Expect(out).To(ContainSubstring("exit code 7"))
		input := strings.Repeat("a line\n", 50_000)
		out, err = kubectl(input, "exec", "-i", pod, "--", "/workload", "copy")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(Equal(input), "%d of %d bytes were received", len(out), len(input))

		By("in a member whose admin has not granted the permission, exec is rejected")
		makeNamespace(ctx, "unreached")
		DeferCleanup(removeNamespace, "unreached", NodeTimeout(settle))
		apply(ctx, world.Host(), workload("unreached", "app", fleet.Second))
		other := runningPod(ctx, world.Host(), "unreached", "app").Name
		out, err = user(ctx, world.Host(), "", "kubectl", "-n", "unreached", "exec", other, "--", "/workload", "say", "hello")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("--member-kubeconfig FILE --with-exec"))
	}, SpecTimeout(storyTime))

	It("reaches a Pod with a terminal, attach, port-forward, cp and debug", func(ctx SpecContext) {
		if onKind == nil {
			Skip("test/integration/nodeapi covers it on this provider")
		}
		makeNamespace(ctx, "reached")
		DeferCleanup(removeNamespace, "reached", NodeTimeout(settle))
		apply(ctx, world.Host(), workload("reached", "app", fleet.First))
		pod := runningPod(ctx, world.Host(), "reached", "app").Name

		By("a terminal has the size of the user's terminal")
		Expect(user(ctx, world.Host(), "", "kubectl", "-n", "reached", "exec", "-i", pod, "--", "/workload", "terminal")).To(ContainSubstring("no terminal"))
		Expect(user(ctx, world.Host(), "", "script", "-qefc", "stty cols 77 rows 33; exec kubectl -n reached exec -it "+pod+" -- /workload terminal", "/dev/null")).
			To(ContainSubstring("terminal of 77x33"))

		By("attach shows the Pod's output while a port is forwarded to it")
		attached := background(ctx, world.Host(), "kubectl", "-n", "reached", "attach", pod)
		following := background(ctx, world.Host(), "kubectl", "-n", "reached", "logs", "-f", pod)
		forwarded := background(ctx, world.Host(), "kubectl", "-n", "reached", "port-forward", "pod/"+pod, ":80")
		Eventually(forwarded).WithContext(ctx).Should(gbytes.Say(`Forwarding from (127\.0\.0\.1:\d+)`))
		address := "http://" + regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(string(forwarded.Contents()))
		Eventually(attached).WithContext(ctx).Should(gbytes.Say("If you don't see a command prompt|serving"))
		posted, err := post(ctx, address, "by port-forward")
		Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(posted.Body)
		Expect(errors.Join(err, posted.Body.Close())).To(Succeed())
		Expect(string(content)).To(ContainSubstring("by port-forward"))
		Eventually(attached).WithContext(ctx).Should(gbytes.Say(`appending "by port-forward"`))
		Eventually(following).WithContext(ctx).Should(gbytes.Say(`appending "by port-forward"`))

		By("a file can be copied into the Pod and back")
		file, copied := filepath.Join(GinkgoT().TempDir(), "file"), filepath.Join(GinkgoT().TempDir(), "copied")
		data := []byte(strings.Repeat("a line of a file\n", 20_000))
		Expect(os.WriteFile(file, data, 0o600)).To(Succeed())
		run(ctx, world.Host(), "kubectl", "-n", "reached", "cp", file, pod+":/data/file")
		run(ctx, world.Host(), "kubectl", "-n", "reached", "cp", pod+":/data/file", copied)
		Expect(os.ReadFile(copied)).To(Equal(data))

		By("an ephemeral container returns its exit code and output")
		run(ctx, world.Host(), "kubectl", "-n", "reached", "debug", pod, "--image="+fleet.WorkloadImage, "--container=debugger", "--profile=baseline", "--attach=false", "--", "/workload", "say", "debugged")
		Eventually(func(g Gomega) {
			var shown corev1.Pod
			g.Expect(world.Host().API.Get(ctx, client.ObjectKey{Namespace: "reached", Name: pod}, &shown)).To(Succeed())
			g.Expect(shown.Status.EphemeralContainerStatuses).To(ContainElement(HaveField("State.Terminated.ExitCode", BeEquivalentTo(7))))
		}).WithContext(ctx).Should(Succeed())
		Expect(run(ctx, world.Host(), "kubectl", "-n", "reached", "logs", pod, "-c", "debugger")).To(ContainSubstring("debugged"))

		By("the log of the previous container is available once it has ended")
		if ended, err := post(ctx, address+"/end", ""); err == nil {
			Expect(ended.Body.Close()).To(Succeed())
		}
		Eventually(func() (string, error) {
			return user(ctx, world.Host(), "", "kubectl", "-n", "reached", "logs", pod, "-c", "app", "--previous")
		}).WithContext(ctx).Should(ContainSubstring("ending, as requested"))
	}, SpecTimeout(storyTime))

	It("keeps the data of a Pod that is deleted and re-created", func(ctx SpecContext) {
		member := world.Member(fleet.First)
		first, claim := runningPod(ctx, world.Host(), "test-new", "nginx"), boundClaim(ctx, "test-new", "nginx-pvc")
		run(ctx, world.Host(), "kubectl", "-n", "test-new", "delete", "pod", first.Name)
		second := runningPod(ctx, world.Host(), "test-new", "nginx")
		Expect(second.UID).NotTo(Equal(first.UID))
		holds(ctx, member, "test-new", second.Name, "started "+first.Name, "written in the first story", "started "+second.Name)
		Expect(boundClaim(ctx, "test-new", "nginx-pvc").Spec.VolumeName).To(Equal(claim.Spec.VolumeName))
		Expect(volumesOf(ctx, member, "test-new")).To(HaveLen(1))
	}, SpecTimeout(storyTime))

	It("gives each replica of a StatefulSet its own disk, and keeps it when scaling", func(ctx SpecContext) {
		apply(ctx, world.Host(), sample("statefulset.yaml"))
		replicas := []string{"ledger-0", "ledger-1"}
		for _, name := range replicas {
			write(ctx, memberOf(replica(ctx, name)), "test-new", name, "only in "+name)
		}
		scale(ctx, "test-new", "statefulset", "ledger", 0)
		for _, name := range replicas {
			Eventually(func() error {
				return client.IgnoreNotFound(gone(ctx, world.Host(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "test-new", Name: name}}))
			}).WithContext(ctx).Should(Succeed())
		}
		scale(ctx, "test-new", "statefulset", "ledger", 2)
		for i, name := range replicas {
			member := memberOf(replica(ctx, name))
			holds(ctx, member, "test-new", name, "only in "+name)
			if world.Kubelets() {
				Expect(written(ctx, member, "test-new", name)).NotTo(ContainElement("only in " + replicas[1-i]))
			}
		}
	}, SpecTimeout(storyTime))

	It("runs a database whose budget holds while the member's nodes are drained", drainsDatabase, SpecTimeout(storyTime))

	It("fulfills a promise only when a Pod uses it", func(ctx SpecContext) {
		// The same sample, with zero replicas for now, and with the available image.
		apply(ctx, world.Host(), sample("promise.yaml", "replicas: 1", "replicas: 0", "nginx:latest", fleet.WorkloadImage))
		claim := boundClaim(ctx, "test-promise", "data")
		Expect(volume(ctx, world.Host(), claim.Spec.VolumeName).Spec.CSI.Driver).To(Equal(v1alpha1.PromiseDriverName))
		for _, m := range world.Members() {
			Expect(volumesOf(ctx, m, "test-promise")).To(BeEmpty(), "a claim without a Pod must have no disk in %s", m.Name)
		}
		scale(ctx, "test-promise", "deployment", "app", 1)
		first := runningPod(ctx, world.Host(), "test-promise", "app")
		member := memberOf(first)
		write(ctx, member, "test-promise", first.Name, "promised and kept")
		Expect(volumesOf(ctx, member, "test-promise")).To(HaveLen(1))

		run(ctx, world.Host(), "kubectl", "-n", "test-promise", "delete", "pod", first.Name)
		second := runningPod(ctx, world.Host(), "test-promise", "app")
		Expect(memberOf(second).Name).To(Equal(member.Name), "the disk must exist only in the Pod's member")
		holds(ctx, member, "test-promise", second.Name, "promised and kept")
		removeNamespace(ctx, "test-promise")
		emptied(ctx, member, "test-promise")
	}, SpecTimeout(storyTime))

	It("takes a snapshot of a disk, restores it after data loss, and clones the disk", takesSnapshots, SpecTimeout(storyTime))

	It("lets the host adopt an existing disk of a member, with its data", adopts, SpecTimeout(storyTime))

	It("lets Pods in two members read and write one shared volume", sharesVolume, SpecTimeout(storyTime))

	It("moves a claim's data to another member and back, even if each run of the command is killed", moves, SpecTimeout(moveTime))

	It("keeps the host's DaemonSets off virtual nodes, without changing anything else about them", func(ctx SpecContext) {
		if onKind == nil {
			Skip("the host has no DaemonSets on this provider")
		}
		const namespace, name = "kube-system", "kube-proxy"
		By("the Pods of a DaemonSet that tolerates every taint stay Pending on virtual nodes, and report why")
		var pods []corev1.Pod
		Eventually(func() ([]string, error) {
			pods = nil
			return nodesOf(ctx, namespace, name, &pods)
		}).WithContext(ctx).Should(ContainElements(nodeName(fleet.First), nodeName(fleet.Second)))
		for _, p := range pods {
			if strings.HasPrefix(p.Spec.NodeName, v1alpha1.DefaultNodeNamePrefix) {
				Expect(p.Status.Phase).To(Equal(corev1.PodPending))
				Eventually(func() (string, error) {
					return user(ctx, world.Host(), "", "kubectl", "-n", namespace, "get", "events", "--field-selector", "involvedObject.name="+p.Name)
				}).WithContext(ctx).Should(ContainSubstring(v1alpha1.ReasonDaemonSet))
			}
		}
		By("the documented command excludes virtual nodes")
		block := documented("config/samples/README.md", "patch daemonset")
		shell(ctx, world.Host(), strings.NewReplacer("-n agents", "-n "+namespace, "node-agent", name).Replace(block))
		run(ctx, world.Host(), "kubectl", "-n", namespace, "rollout", "status", "daemonset/"+name, "--timeout", settle.String())
		Eventually(func() ([]string, error) { return nodesOf(ctx, namespace, name, nil) }).WithContext(ctx).
			Should(HaveEach(Not(HavePrefix(v1alpha1.DefaultNodeNamePrefix))))
		run(ctx, world.Host(), "kubectl", "-n", namespace, "get", "daemonset", name)
	}, SpecTimeout(storyTime))

	It("neither loses nor duplicates anything when the manager is killed", func(ctx SpecContext) {
		const namespace, count = "killed", 6
		makeNamespace(ctx, namespace)
		all, members := "", []string{fleet.First, fleet.Second}
		for i := range count {
			all += workload(namespace, fmt.Sprintf("app-%d", i), members[i%len(members)])
		}
		apply(ctx, world.Host(), all)
		By("waiting until the first leaf claims exist")
		Eventually(func() (int, error) { return leafClaims(ctx, namespace) }).WithContext(ctx).WithPolling(poll / 10).Should(BeNumerically(">", 0))
		Expect(world.KillManager(ctx)).To(Succeed())
		for i := range count {
			name := fmt.Sprintf("app-%d", i)
			pod := runningPod(ctx, world.Host(), namespace, name)
			holds(ctx, memberOf(pod), namespace, pod.Name, "started "+pod.Name)
		}
		total := 0
		for _, m := range world.Members() {
			volumes, err := volumesOf(ctx, m, namespace)
			Expect(err).NotTo(HaveOccurred())
			total += len(volumes)
		}
		Expect(total).To(Equal(count), "each claim must have one disk")
		Expect(volumesOf(ctx, world.Host(), namespace)).To(HaveLen(count))
		removeNamespace(ctx, namespace)
		for _, m := range world.Members() {
			emptied(ctx, m, namespace)
		}
	}, SpecTimeout(storyTime))

	It("applies changes that users made while a member was disconnected", func(ctx SpecContext) {
		const namespace = "cut"
		member := world.Member(fleet.First)
		makeNamespace(ctx, namespace)
		apply(ctx, world.Host(), workload(namespace, "stays", fleet.First)+workload(namespace, "goes", fleet.First)+workload(namespace, "other", fleet.Second))
		stays, goes := runningPod(ctx, world.Host(), namespace, "stays"), runningPod(ctx, world.Host(), namespace, "goes")
		leaf := runningPod(ctx, member, namespace, "stays")
		write(ctx, member, namespace, stays.Name, "before the cut")

		Expect(world.Cut(ctx, fleet.First)).To(Succeed())
		mended := false
		defer func() {
			if !mended {
				Expect(world.Mend(context.WithoutCancel(ctx), fleet.First)).To(Succeed())
			}
		}()
		Eventually(func() (bool, error) { return reachable(ctx, fleet.First) }).WithContext(ctx).Should(BeFalse())
		By("the other member continues to work")
		apply(ctx, world.Host(), workload(namespace, "late", fleet.Second))
		runningPod(ctx, world.Host(), namespace, "late")
		By("the Pod in the disconnected member keeps writing, and the host keeps its objects")
		write(ctx, member, namespace, leaf.Name, "during the cut")
		run(ctx, world.Host(), "kubectl", "-n", namespace, "delete", "--wait=false", "deployment/goes", "pvc/goes")
		Expect(volumesOf(ctx, member, namespace)).To(HaveLen(2), "the member must not destroy a disk")

		mended = true
		Expect(world.Mend(ctx, fleet.First)).To(Succeed())
		Eventually(func() (bool, error) { return reachable(ctx, fleet.First) }).WithContext(ctx).Should(BeTrue())
		Eventually(func() ([]string, error) { return volumesOf(ctx, member, namespace) }).WithContext(ctx).Should(HaveLen(1), "the disk of %s must be destroyed once the member is connected again", goes.Name)
		after := runningPod(ctx, member, namespace, "stays")
		Expect(after.UID).To(Equal(leaf.UID), "the remaining Pod must not change")
		Expect(restarts(after)).To(BeZero())
		Expect(runningPod(ctx, world.Host(), namespace, "stays").UID).To(Equal(stays.UID))
		holds(ctx, member, namespace, leaf.Name, "before the cut", "during the cut")
		removeNamespace(ctx, namespace)
	}, SpecTimeout(storyTime))

	It("continues to work when one of a member's nodes is killed", func(ctx SpecContext) {
		if onKind == nil {
			Skip("nodes are simulated on this provider")
		}
		const namespace = "worker"
		member := world.Member(fleet.First)
		makeNamespace(ctx, namespace)
		By("two Pods that must not share a node run on two nodes of the member")
		apply(ctx, world.Host(), apart(namespace, "struck", fleet.First)+apart(namespace, "spared", fleet.First))
		var leaves, roots [2]*corev1.Pod
		var volumes [2]string
		for i, app := range []string{"struck", "spared"} {
			volumes[i] = boundClaim(ctx, namespace, app).Spec.VolumeName
			roots[i], leaves[i] = runningPod(ctx, world.Host(), namespace, app), runningPod(ctx, member, namespace, app)
			write(ctx, member, namespace, leaves[i].Name, "before the kill")
		}
		struck, spared := leaves[0], leaves[1]
		Expect(struck.Spec.NodeName).NotTo(Equal(spared.Spec.NodeName))
		room := roomOf(ctx, fleet.First)

		Expect(onKind.KillNode(ctx, struck.Spec.NodeName)).To(Succeed())
		started := false
		defer func() {
			if !started {
				Expect(onKind.StartNode(context.WithoutCancel(ctx), struck.Spec.NodeName)).To(Succeed())
			}
		}()
		By("the host shows the member's failure: the Pod on the killed node is not Ready, and the capacity is lower")
		Eventually(func() error {
			_, err := onlyPod(ctx, world.Host(), namespace, "struck")
			return err
		}).WithContext(ctx).Should(MatchError(ContainSubstring(roots[0].Name)))
		Eventually(func() int64 { return roomOf(ctx, fleet.First) }).WithContext(ctx).Should(BeNumerically("<", room*3/4))
		By("the virtual node stays Ready, the other Pod keeps writing, and a new Pod gets its disk")
		Expect(reachable(ctx, fleet.First)).To(BeTrue())
		write(ctx, member, namespace, spared.Name, "during the outage")
		apply(ctx, world.Host(), workload(namespace, "late", fleet.First))
		runningPod(ctx, world.Host(), namespace, "late")
		Expect(runningPod(ctx, member, namespace, "late").Spec.NodeName).NotTo(Equal(struck.Spec.NodeName))
		run(ctx, world.Host(), "kubectl", "-n", namespace, "get", "pods,pvc")

		started = true
		Expect(onKind.StartNode(ctx, struck.Spec.NodeName)).To(Succeed())
		By("the node returns with the same Pod, disk and data")
		Eventually(func() error {
			leaf, err := onlyPod(ctx, member, namespace, "struck")
			if err != nil {
				return err
			}
			if restarts(leaf) == 0 {
				return fmt.Errorf("the container of %s has not restarted since the kill", leaf.Name)
			}
			_, err = onlyPod(ctx, world.Host(), namespace, "struck")
			return err
		}).WithContext(ctx).Should(Succeed())
		for i, app := range []string{"struck", "spared"} {
			Expect(runningPod(ctx, world.Host(), namespace, app).UID).To(Equal(roots[i].UID), "it must be the same Pod")
			Expect(runningPod(ctx, member, namespace, app).UID).To(Equal(leaves[i].UID), "it must be the same Pod")
			holds(ctx, member, namespace, leaves[i].Name, "before the kill")
			Expect(boundClaim(ctx, namespace, app).Spec.VolumeName).To(Equal(volumes[i]))
		}
		holds(ctx, member, namespace, spared.Name, "during the outage")
		Expect(restarts(runningPod(ctx, member, namespace, "spared"))).To(BeZero())
		Eventually(func() int64 { return roomOf(ctx, fleet.First) }).WithContext(ctx).Should(BeNumerically(">", room*3/4))
		removeNamespace(ctx, namespace)
		emptied(ctx, member, namespace)
	}, SpecTimeout(storyTime))

	It("finds all objects after a member's only node was killed and restarted", func(ctx SpecContext) {
		const namespace = "node"
		member := world.Member(fleet.Second)
		makeNamespace(ctx, namespace)
		apply(ctx, world.Host(), workload(namespace, "app", fleet.Second))
		pod, claim := runningPod(ctx, world.Host(), namespace, "app"), boundClaim(ctx, namespace, "app")
		write(ctx, member, namespace, pod.Name, "before the kill")

		Expect(world.Kill(ctx, fleet.Second)).To(Succeed())
		Eventually(func() (bool, error) { return reachable(ctx, fleet.Second) }).WithContext(ctx).Should(BeFalse())
		Expect(boundClaim(ctx, namespace, "app").Spec.VolumeName).To(Equal(claim.Spec.VolumeName))
		Expect(world.Start(ctx, fleet.Second)).To(Succeed())
		Eventually(func() (bool, error) { return reachable(ctx, fleet.Second) }).WithContext(ctx).Should(BeTrue())
		By("the kubelet has restarted the container, and the host shows the Pod's current state")
		var leaf *corev1.Pod
		Eventually(func() error {
			var err error
			if leaf, err = onlyPod(ctx, member, namespace, "app"); err != nil {
				return err
			}
			if world.Kubelets() && restarts(leaf) == 0 {
				return fmt.Errorf("the container of %s has not restarted since the kill", leaf.Name)
			}
			shown, err := onlyPod(ctx, world.Host(), namespace, "app")
			if err != nil {
				return err
			}
			if shown.Name != leaf.Name || shown.Status.PodIP != leaf.Status.PodIP || restarts(shown) != restarts(leaf) {
				return fmt.Errorf("the host shows Pod %s with IP %s after %d restarts; in the member, it is %s with IP %s after %d",
					shown.Name, shown.Status.PodIP, restarts(shown), leaf.Name, leaf.Status.PodIP, restarts(leaf))
			}
			return nil
		}).WithContext(ctx).Should(Succeed())
		Expect(leaf.Name).To(Equal(pod.Name), "it must be the same Pod")
		holds(ctx, member, namespace, leaf.Name, "before the kill")
		write(ctx, member, namespace, leaf.Name, "after the kill")
		Expect(boundClaim(ctx, namespace, "app").Spec.VolumeName).To(Equal(claim.Spec.VolumeName))
		removeNamespace(ctx, namespace)
		emptied(ctx, member, namespace)
	}, SpecTimeout(storyTime))

	It("is upgraded without disturbing a workload", func(ctx SpecContext) {
		if onKind == nil {
			Skip("this provider does not use the charts")
		}
		was := snapshot(ctx, "test-new")
		upgrade(ctx)
		Expect(snapshot(ctx, "test-new")).To(Equal(was), "Pods, claims and volumes must not change in any cluster")
		for _, name := range []string{fleet.First, fleet.Second} {
			registered(ctx, name)
			Expect(reachable(ctx, name)).To(BeTrue())
		}
		By("a new workload runs")
		makeNamespace(ctx, "upgraded")
		apply(ctx, world.Host(), workload("upgraded", "app", fleet.Second))
		runningPod(ctx, world.Host(), "upgraded", "app")
		removeNamespace(ctx, "upgraded")
	}, SpecTimeout(storyTime))

	It("renews a member's token without disturbing a Pod", func(ctx SpecContext) {
		if onKind == nil {
			Skip("test/integration/register covers it on this provider")
		}
		By("registering again rotates the token, here to a short-lived one")
		registerByPlugin(ctx, fleet.First, "--token-lifetime", "10m")
		first, was := registered(ctx, fleet.First).Status.TokenExpires, snapshot(ctx, "test-new")
		By("the manager renews it through the member's own API")
		Eventually(func() (bool, error) {
			var cr v1alpha1.ClusterRegistration
			err := world.Host().API.Get(ctx, client.ObjectKey{Name: fleet.First}, &cr)
			return cr.Status.TokenExpires != nil && first.Before(cr.Status.TokenExpires), err
		}).WithContext(ctx).Should(BeTrue())
		Expect(snapshot(ctx, "test-new")).To(Equal(was), "Pods, claims and volumes must not change in any cluster")
		Expect(reachable(ctx, fleet.First)).To(BeTrue())
		run(ctx, world.Host(), "kubectl", "get", "events", "-A", "--field-selector", "involvedObject.kind=ClusterRegistration,involvedObject.name="+fleet.First)
		By("a new workload runs")
		makeNamespace(ctx, "renewed")
		apply(ctx, world.Host(), workload("renewed", "app", fleet.First))
		runningPod(ctx, world.Host(), "renewed", "app")
		removeNamespace(ctx, "renewed")
	}, SpecTimeout(storyTime))

	It("lets Pods read themselves from the host's API server", readsItself, SpecTimeout(storyTime))

	It("resizes a running Pod without a restart", resizesInPlace, SpecTimeout(storyTime))

	It("gives a Pod the priority that the member's admin grants", hasPriority, SpecTimeout(storyTime))

	It("runs a database whose replicas are in two members", spansMembers, SpecTimeout(storyTime))

	It("renews the Pods' tokens before they expire", renewsTokens, SpecTimeout(storyTime))

	It("keeps claims and disks in a deregistered member, and adopts them when it is registered again", func(ctx SpecContext) {
		const namespace = "left"
		member := world.Member(fleet.Second)
		makeNamespace(ctx, namespace)
		apply(ctx, world.Host(), workload(namespace, "app", fleet.Second))
		pod := runningPod(ctx, world.Host(), namespace, "app")
		write(ctx, member, namespace, pod.Name, "before it left")
		volumes, err := volumesOf(ctx, member, namespace)
		Expect(err).NotTo(HaveOccurred())

		deregister(ctx, fleet.Second)
		Eventually(func() error { return absent(ctx, world.Host(), nodeName(fleet.Second), &corev1.Node{}) }).WithContext(ctx).Should(Succeed())
		Expect(volumesOf(ctx, member, namespace)).To(Equal(volumes), "the disks must be kept")
		Eventually(func() error {
			_, err := onlyPod(ctx, member, namespace, "app")
			return err
		}).WithContext(ctx).ShouldNot(Succeed(), "the Pods must be evicted")

		By("after the member is registered again, all disks are in use")
		registerAgain(ctx, fleet.Second)
		again := runningPod(ctx, world.Host(), namespace, "app")
		holds(ctx, member, namespace, again.Name, "before it left")
		Expect(volumesOf(ctx, member, namespace)).To(Equal(volumes))
		removeNamespace(ctx, namespace)
		emptied(ctx, member, namespace)
	}, SpecTimeout(storyTime))

	It("cannot be uninstalled while members are registered, and continues to work", func(ctx SpecContext) {
		if onKind == nil {
			Skip("this provider does not use the charts")
		}
		claim := boundClaim(ctx, "test-new", "nginx-pvc")
		for _, m := range world.Members() { // wait until the namespaces of earlier stories are gone
			Eventually(func() ([]string, error) { return namespacesOf(ctx, m) }).WithContext(ctx).Should(Or(BeEmpty(), HaveEach("test-new")))
		}
		objects, was := map[string][]string{}, snapshot(ctx, "test-new")
		for _, c := range everywhere() {
			list, err := fleet.Inventory(ctx, c)
			Expect(err).NotTo(HaveOccurred())
			objects[c.Name] = list
		}
		out, err := user(ctx, world.Host(), "", "helm", "uninstall", "xylem", "--namespace", system, "--wait", "--timeout", settle.String())
		Expect(err).To(HaveOccurred())
		By("the hook reports what blocks it, and how to continue")
		Expect(out).To(And(ContainSubstring("no cluster is registered: found "+fleet.First+", "+fleet.Second), ContainSubstring("kubectl xylem deregister"),
			ContainSubstring(claim.Spec.VolumeName), ContainSubstring("helm rollback")))
		By("nothing is lost")
		Expect(snapshot(ctx, "test-new")).To(Equal(was), "Pods, claims and volumes must not change in any cluster")
		for _, c := range everywhere() {
			after, err := fleet.Inventory(ctx, c)
			Expect(err).NotTo(HaveOccurred())
			Expect(after).To(ContainElements(objects[c.Name]), "objects of %s", c.Name)
		}
		By("the release can be rolled back to its revision, as documented")
		shell(ctx, world.Host(), documented("charts/xylem/README.md", "helm rollback"))
		Expect(run(ctx, world.Host(), "helm", "status", "xylem", "--namespace", system)).To(ContainSubstring("STATUS: deployed"))
		Expect(snapshot(ctx, "test-new")).To(Equal(was))
		works(ctx)
		upgrade(ctx)
	}, SpecTimeout(storyTime))

	It("leaves only the documented objects when it is uninstalled", func(ctx SpecContext) {
		if onKind == nil {
			Skip("this provider does not use the charts")
		}
		// Includes namespaces of failed stories.
		for _, namespace := range []string{"test-new", "test-promise", "kept", "adopted", "killed", "cut", "worker", "node", "upgraded", "renewed", "left", "database", "spanning", tokensNamespace, "resized", "priority"} {
			removeNamespace(ctx, namespace)
		}
		for _, m := range world.Members() {
			emptied(ctx, m, "")
			Eventually(func() ([]string, error) { return namespacesOf(ctx, m) }).WithContext(ctx).Should(BeEmpty(), "namespaces that Xylem created must be gone in %s", m.Name)
		}
		deregisterByPlugin(ctx, fleet.First)
		deregister(ctx, fleet.Second)
		uninstall(ctx)
		for _, c := range everywhere() {
			Eventually(func() ([]string, error) { return added(ctx, c, before[c.Name]) }).WithContext(ctx).
				Should(Or(BeEmpty(), HaveEach(Satisfy(func(o string) bool { return asked(c, o) }))), "objects that are left in %s", c.Name)
		}
		removeSystem(ctx)
		for _, c := range everywhere() {
			want := BeEmpty()
			if c == world.Host() {
				want = ConsistOf(crd)
			}
			Eventually(func() ([]string, error) { return added(ctx, c, before[c.Name]) }).WithContext(ctx).Should(want, "objects that are left in %s", c.Name)
			after, err := fleet.Inventory(ctx, c)
			Expect(err).NotTo(HaveOccurred())
			Expect(after).To(ContainElements(before[c.Name]), "objects that existed in %s before the installation must not be removed", c.Name)
		}
	}, SpecTimeout(storyTime))
})

func post(ctx context.Context, url, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "text/plain")
	return http.DefaultClient.Do(request)
}

func everywhere() []*fleet.Cluster { return append([]*fleet.Cluster{world.Host()}, world.Members()...) }

// added lists the objects in a cluster that did not exist before.
func added(ctx context.Context, c *fleet.Cluster, before []string) ([]string, error) {
	after, err := fleet.Inventory(ctx, c)
	return slices.DeleteFunc(after, func(o string) bool { return slices.Contains(before, o) }), err
}

// namespacesOf lists the namespaces that Xylem created in a member.
func namespacesOf(ctx context.Context, member *fleet.Cluster) ([]string, error) {
	var list corev1.NamespaceList
	if err := member.API.List(ctx, &list, client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}); err != nil {
		return nil, err
	}
	var names []string
	for _, n := range list.Items {
		if n.Name != system {
			names = append(names, n.Name)
		}
	}
	return names, nil
}

// replica waits until a StatefulSet's Pod runs in the host.
func replica(ctx context.Context, name string) *corev1.Pod {
	GinkgoHelper()
	var p corev1.Pod
	Eventually(func() error {
		if err := world.Host().API.Get(ctx, client.ObjectKey{Namespace: "test-new", Name: name}, &p); err != nil {
			return err
		}
		if !ready(p) || p.DeletionTimestamp != nil {
			return fmt.Errorf("%s on %q: %+v", name, p.Spec.NodeName, p.Status.Conditions)
		}
		return nil
	}).WithContext(ctx).Should(Succeed())
	return &p
}

func gone(ctx context.Context, c *fleet.Cluster, o client.Object) error {
	if err := c.API.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	return fmt.Errorf("%s exists", o.GetName())
}

func leafClaims(ctx context.Context, namespace string) (int, error) {
	total := 0
	for _, m := range world.Members() {
		var list corev1.PersistentVolumeClaimList
		if err := m.API.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return 0, err
		}
		total += len(list.Items)
	}
	return total, nil
}

func restarts(p *corev1.Pod) (n int32) {
	for _, s := range p.Status.ContainerStatuses {
		n += s.RestartCount
	}
	return n
}

// emptied waits until a member's nodes have no directories for the claims in a namespace. An empty
// namespace means all claims.
func emptied(ctx context.Context, member *fleet.Cluster, namespace string) {
	GinkgoHelper()
	if onKind == nil {
		return
	}
	part := "_"
	if namespace != "" {
		part = "_" + namespace + "_"
	}
	Eventually(func() ([]string, error) { return onKind.Files(ctx, member.Name) }).WithContext(ctx).
		ShouldNot(ContainElement(ContainSubstring(part)), "directories in %s", member.Name)
}

// nodesOf lists the host's nodes to which a DaemonSet's Pods are bound. If pods is not nil, nodesOf
// also appends the Pods to it.
func nodesOf(ctx context.Context, namespace, daemonSet string, pods *[]corev1.Pod) ([]string, error) {
	var list corev1.PodList
	if err := world.Host().API.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var on []string
	for _, p := range list.Items {
		if owner := metav1.GetControllerOf(&p); owner == nil || owner.Kind != "DaemonSet" || owner.Name != daemonSet {
			continue
		}
		on = append(on, p.Spec.NodeName)
		if pods != nil {
			*pods = append(*pods, p)
		}
	}
	return on, nil
}

// roomOf returns the number of Pods that a member's virtual node shows as allocatable.
func roomOf(ctx context.Context, registration string) int64 {
	GinkgoHelper()
	var n corev1.Node
	Expect(world.Host().API.Get(ctx, client.ObjectKey{Name: nodeName(registration)}, &n)).To(Succeed())
	return n.Status.Allocatable.Pods().Value()
}

// snapshot returns the state that must survive a disturbance: Pods, claims and volumes, and the
// restart counts of containers.
func snapshot(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	state := map[string]string{}
	for _, c := range everywhere() {
		var pods corev1.PodList
		Expect(c.API.List(ctx, &pods, client.InNamespace(namespace))).To(Succeed())
		for _, p := range pods.Items {
			state[c.Name+" pod "+p.Name] = fmt.Sprintf("%s %s restarts=%d ready=%t", p.UID, p.Status.Phase, restarts(&p), ready(p))
		}
		var claims corev1.PersistentVolumeClaimList
		Expect(c.API.List(ctx, &claims, client.InNamespace(namespace))).To(Succeed())
		for _, o := range claims.Items {
			state[c.Name+" claim "+o.Name] = fmt.Sprintf("%s %s", o.UID, o.ResourceVersion)
		}
		var volumes corev1.PersistentVolumeList
		Expect(c.API.List(ctx, &volumes)).To(Succeed())
		for _, o := range volumes.Items {
			state[c.Name+" volume "+o.Name] = fmt.Sprintf("%s %s", o.UID, o.ResourceVersion)
		}
	}
	return state
}
