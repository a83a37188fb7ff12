package controlplane_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

// impatient is the timeout for requests to which no response is expected.
const impatient = 500 * time.Millisecond

// clientOf creates a client from a kubeconfig.
func clientOf(kubeconfig []byte, err error) kubernetes.Interface {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	return clientFor(config)
}

func clientFor(config *rest.Config) kubernetes.Interface {
	GinkgoHelper()
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return client
}

func version(client kubernetes.Interface) func() error {
	return func() error {
		_, err := client.Discovery().ServerVersion()
		return err
	}
}

var _ = Describe("A fleet", func() {
	It("starts real, separate clusters", func(ctx SpecContext) {
		ids := map[string]bool{}
		for _, c := range fleet.Clusters() {
			id, err := c.ID(ctx)
			Expect(err).NotTo(HaveOccurred())
			ids[id] = true
			v, err := c.Client().Discovery().ServerVersion()
			Expect(err).NotTo(HaveOccurred())
			Expect(v.GitVersion).To(HavePrefix("v1."))
		}
		Expect(ids).To(HaveLen(len(fleet.Clusters())))
		Expect(fleet.Host.NodeNames()).To(HaveExactElements("host-node-1"))
		Expect(fleet.Host.Process(controlplane.Provisioner)).To(BeNil())
		Expect(member().NodeNames()).To(HaveLen(2))
		_, err := fleet.AddMember(ctx, controlplane.ClusterOptions{Name: "member"})
		Expect(err).To(MatchError(ContainSubstring("two clusters")))
	})

	It("grants users and service accounts exactly the permissions in RBAC", func(ctx SpecContext) {
		s := in(ctx, member())
		list := func(client kubernetes.Interface) error {
			_, err := client.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{})
			return err
		}
		user := clientOf(s.UserKubeconfig(controlplane.Direct, "jane", "team"))
		account := clientOf(s.ServiceAccountKubeconfig(ctx, controlplane.ViaProxy, s.namespace, "default"))
		Expect(list(user)).To(Satisfy(apierrors.IsForbidden))
		Expect(list(account)).To(Satisfy(apierrors.IsForbidden))

		_, err := s.Client().RbacV1().RoleBindings(s.namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "view"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{
				{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "team"},
				{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: s.namespace},
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error { return list(user) }).Should(Succeed())
		Eventually(func() error { return list(account) }).Should(Succeed())
	})

	It("completes or fails Pods as their annotations request", func(ctx SpecContext) {
		s := in(ctx, member())
		s.pod(ctx, "done", "", annotated(controlplane.AnnotationComplete, "true"))
		s.pod(ctx, "failed", "", annotated(controlplane.AnnotationFail, "true"),
			annotated(controlplane.AnnotationRunFor, "10ms"))
		s.pod(ctx, "lingers", "", annotated(controlplane.AnnotationStopAfter, "1h"))

		Expect(s.phase(ctx, "done", corev1.PodSucceeded).Status.ContainerStatuses[0].State.Terminated.ExitCode).To(BeZero())
		Expect(s.phase(ctx, "failed", corev1.PodFailed).Status.ContainerStatuses[0].State.Terminated.ExitCode).To(BeEquivalentTo(1))
		s.phase(ctx, "lingers", corev1.PodRunning)
		s.deletePod(ctx, "lingers")

		// Barrier: once KWOK has handled a later deletion, it has also handled this one.
		s.deletePod(ctx, "done")
		s.gone(ctx, "done")
		p, err := s.getPod("lingers")(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Status.Phase).To(Equal(corev1.PodRunning))
		Expect(p.DeletionTimestamp).NotTo(BeNil())
	})

	It("ignores nodes that KWOK does not run, and the Pods on them", func(ctx SpecContext) {
		s := in(ctx, fleet.Host)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-foreign"}}
		_, err := s.Client().CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(s.Client().CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{})).To(Succeed())
		})
		mark, err := s.Audit().Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		s.pod(ctx, "foreign", "", func(p *corev1.Pod) { p.Spec.NodeName = node.Name })
		s.pod(ctx, "ours", "", func(p *corev1.Pod) { p.Spec.NodeName = s.NodeNames()[0] })
		s.phase(ctx, "ours", corev1.PodRunning)
		s.deletePod(ctx, "foreign")
		s.deletePod(ctx, "ours")
		s.gone(ctx, "ours")

		p, err := s.getPod("foreign")(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Status.Phase).To(Equal(corev1.PodPending))
		Expect(p.Status.ContainerStatuses).To(BeEmpty())
		requests, err := s.Audit().Since(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		writes := requests.By("kwok").Writes()
		Expect(writes).To(ContainElement(HaveField("Name", "ours")), "barrier: KWOK was active")
		Expect(writes).NotTo(ContainElement(HaveField("Name", BeElementOf("foreign", node.Name))))
	})

	It("counts requests", func(ctx SpecContext) {
		s := in(ctx, member())
		client := clientOf(s.UserKubeconfig(controlplane.Direct, "counted", "system:masters"))
		mark, err := s.Audit().Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"one", "two"} {
			_, err := client.CoreV1().ConfigMaps(s.namespace).Create(ctx,
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(client.CoreV1().ConfigMaps(s.namespace).Delete(ctx, "one", metav1.DeleteOptions{})).To(Succeed())
		_, err = client.CoreV1().ConfigMaps(s.namespace).Get(ctx, "one", metav1.GetOptions{})
		Expect(err).To(Satisfy(apierrors.IsNotFound))

		requests, err := s.Audit().Since(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		own := requests.By("counted")
		Expect(own.Count()).To(Equal(map[controlplane.Key]int{
			{User: "counted", Verb: "create", Resource: "configmaps"}: 2,
			{User: "counted", Verb: "delete", Resource: "configmaps"}: 1,
			{User: "counted", Verb: "get", Resource: "configmaps"}:    1,
		}))
		Expect(own.Writes()).To(HaveLen(3))
		Expect(own[3].Code).To(Equal(404))
	})

	It("counts rejected requests, including watches", func(ctx SpecContext) {
		s := in(ctx, member())
		client := clientOf(s.UserKubeconfig(controlplane.Direct, "nobody-in-particular"))
		mark, err := s.Audit().Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		_, err = client.CoreV1().Secrets(s.namespace).Watch(ctx, metav1.ListOptions{})
		Expect(err).To(Satisfy(apierrors.IsForbidden))
		_, err = client.CoreV1().Secrets(s.namespace).List(ctx, metav1.ListOptions{})
		Expect(err).To(Satisfy(apierrors.IsForbidden))

		requests, err := s.Audit().Since(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		own := requests.By("nobody-in-particular")
		Expect(own.Count()).To(Equal(map[controlplane.Key]int{
			{User: "nobody-in-particular", Verb: "watch", Resource: "secrets"}: 1,
			{User: "nobody-in-particular", Verb: "list", Resource: "secrets"}:  1,
		}))
		Expect(own).To(HaveEach(And(HaveField("Code", 403), HaveField("Unauthorized", true))))
	})

	It("runs the Pods that the controller manager creates", func(ctx SpecContext) {
		s := in(ctx, fleet.Host)
		s.pod(ctx, "app", "")
		p := s.phase(ctx, "app", corev1.PodRunning)
		Expect(p.Spec.NodeName).To(Equal("host-node-1"))
		Expect(p.Spec.Volumes).To(ContainElement(HaveField("Projected", Not(BeNil()))), "ServiceAccount admission")
	})
})

var _ = Describe("A cluster that fails", func() {
	It("restarts its apiserver at the same address", func(ctx SpecContext) {
		s := in(ctx, member())
		id, err := s.ID(ctx)
		Expect(err).NotTo(HaveOccurred())
		api := s.Process(controlplane.APIServer)
		pid := api.PID()
		Expect(api.Restart(ctx)).To(Succeed())
		Expect(api.PID()).NotTo(Equal(pid))
		Expect(s.ID(ctx)).To(Equal(id))
		s.claim(ctx, "data", controlplane.ClassFast, "1Gi")
		s.bound(ctx, "data")
	})

	It("does not respond while its apiserver is frozen", func() {
		config, err := member().RESTConfig(controlplane.ViaProxy)
		Expect(err).NotTo(HaveOccurred())
		config.Timeout = impatient
		client := clientFor(config)
		api := member().Process(controlplane.APIServer)
		Expect(api.Freeze()).To(Succeed())
		DeferCleanup(api.Thaw)
		err = version(client)()
		Expect(err).To(Satisfy(os.IsTimeout), "%v", err)
		Expect(api.Thaw()).To(Succeed())
		Eventually(version(client)).Should(Succeed())
	})

	It("can be disconnected, turned into a black hole, and reconnected", func(ctx SpecContext) {
		config, err := member().RESTConfig(controlplane.ViaProxy)
		Expect(err).NotTo(HaveOccurred())
		config.Timeout = impatient
		client := clientFor(config)
		proxy := member().Proxy()
		DeferCleanup(func() { Expect(proxy.SetMode(controlplane.Pass)).To(Succeed()) })
		Eventually(version(client)).Should(Succeed())

		Expect(proxy.SetMode(controlplane.Cut)).To(Succeed())
		Expect(version(client)()).NotTo(Succeed())
		_, err = net.Dial("tcp", proxy.Address())
		Expect(err).To(MatchError(syscall.ECONNREFUSED))
		_, err = member().ID(ctx)
		Expect(err).NotTo(HaveOccurred(), "it responds without the proxy")

		Expect(proxy.SetMode(controlplane.Blackhole)).To(Succeed())
		err = version(client)()
		Expect(err).To(Satisfy(os.IsTimeout), "%v", err)

		Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
		Eventually(version(client)).Should(Succeed())
	})

	It("recovers after all its processes were stopped", func(ctx SpecContext) {
		id, err := member().ID(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(member().Stop(ctx)).To(Succeed())
		for _, p := range member().Processes() {
			Expect(p.Running()).To(BeFalse(), string(p.Name()))
		}
		Expect(member().Start(ctx)).To(Succeed())
		Expect(member().ID(ctx)).To(Equal(id))
	})

	It("becomes a new cluster with the same address and disks when it is wiped", func(ctx SpecContext) {
		s := in(ctx, member())
		s.claim(ctx, "before", controlplane.ClassFast, "1Gi")
		s.bound(ctx, "before")
		live, err := s.Ledger()
		Expect(err).NotTo(HaveOccurred())
		id, err := s.ID(ctx)
		Expect(err).NotTo(HaveOccurred())
		user := clientOf(s.Kubeconfig(controlplane.ViaProxy))

		Expect(s.Wipe(ctx)).To(Succeed())
		Expect(s.ID(ctx)).NotTo(Equal(id))
		Expect(version(user)()).To(Succeed())
		volumes, err := user.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(volumes.Items).To(BeEmpty())
		after, err := s.Ledger()
		Expect(err).NotTo(HaveOccurred())
		Expect(after.LiveIDs()).To(Equal(live.LiveIDs()))

		anew := in(ctx, member())
		anew.claim(ctx, "data", controlplane.ClassHostpath, "1Gi")
		anew.pod(ctx, "app", "data")
		anew.bound(ctx, "data")
		anew.phase(ctx, "app", corev1.PodRunning)
	})

	It("returns to a snapshot, but keeps its disks", func(ctx SpecContext) {
		s := in(ctx, member())
		s.claim(ctx, "old", controlplane.ClassFast, "1Gi")
		s.bound(ctx, "old")
		id, err := s.ID(ctx)
		Expect(err).NotTo(HaveOccurred())
		snapshot, err := s.Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		s.claim(ctx, "new", controlplane.ClassFast, "1Gi")
		s.bound(ctx, "new")

		Expect(s.Restore(ctx, snapshot)).To(Succeed())
		Expect(s.ID(ctx)).To(Equal(id))
		s.bound(ctx, "old")
		_, err = s.getClaim("new")(ctx)
		Expect(err).To(Satisfy(apierrors.IsNotFound))
		book, err := s.Ledger()
		Expect(err).NotTo(HaveOccurred())
		Expect(book.ForClaim(s.namespace, "new").Live()).To(HaveLen(1))
		// A snapshot can be restored more than once, and the cluster works.
		s.claim(ctx, "newer", controlplane.ClassFast, "1Gi")
		s.bound(ctx, "newer")
		Expect(s.Restore(ctx, snapshot)).To(Succeed())
		_, err = s.getClaim("newer")(ctx)
		Expect(err).To(Satisfy(apierrors.IsNotFound))
	})

	It("can be cloned with the same identity", func(ctx SpecContext) {
		s := in(ctx, fleet.Host)
		id, err := s.ID(ctx)
		Expect(err).NotTo(HaveOccurred())
		token, err := s.ServiceAccountToken(ctx, s.namespace, "default")
		Expect(err).NotTo(HaveOccurred())

		clone, err := fleet.CloneHost(ctx, "clone")
		Expect(err).NotTo(HaveOccurred())
		Expect(clone.ID(ctx)).To(Equal(id))
		copied := story{clone, s.namespace}
		// Pods on a Node that the clone's KWOK does not run would never be removed.
		nodes, err := clone.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, node := range nodes.Items {
			Expect(clone.NodeNames()).To(ContainElement(node.Name))
		}
		Expect(copied.ServiceAccountToken(ctx, s.namespace, "default")).NotTo(BeEmpty())
		review, err := clone.Client().AuthenticationV1().TokenReviews().Create(ctx,
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(review.Status.Authenticated).To(BeTrue(), review.Status.Error)
		// From here on, there are two hosts.
		copied.pod(ctx, "app", "")
		copied.phase(ctx, "app", corev1.PodRunning)
		_, err = s.getPod("app")(ctx)
		Expect(err).To(Satisfy(apierrors.IsNotFound))
		Expect(clone.Stop(ctx)).To(Succeed())
	})
})

var _ = Describe("Starting", func() {
	It("reports what to do when programs are missing", func(ctx SpecContext) {
		_, err := controlplane.Start(ctx, controlplane.Options{BinDir: GinkgoT().TempDir()})
		Expect(err).To(MatchError(kubebin.ErrMissing))
		Expect(err).To(MatchError(ContainSubstring("make kube")))
	})

	It("lists the known versions if an unknown version is requested", func(ctx SpecContext) {
		_, err := controlplane.Start(ctx, controlplane.Options{Host: controlplane.ClusterOptions{Version: "1.2"}})
		Expect(err).To(MatchError(kubebin.ErrNoVersion))
		Expect(err).To(MatchError(ContainSubstring("1.36")))
	})

	It("quotes the log of a process that does not start, and cleans up", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		_, err := controlplane.Start(ctx, controlplane.Options{
			Dir: dir,
			Host: controlplane.ClusterOptions{
				ExtraArgs: map[controlplane.ProcessName][]string{controlplane.APIServer: {"--no-such-flag"}},
			},
		})
		Expect(err).To(MatchError(And(ContainSubstring("kube-apiserver of host"), ContainSubstring("no-such-flag"))))
		Expect(processesOf(dir)).To(BeEmpty())
	})

	It("leaves no process after Stop", func(ctx SpecContext) {
		own, err := controlplane.Start(ctx, controlplane.Options{
			Host: controlplane.ClusterOptions{Nodes: -1}, Progress: progress,
		})
		Expect(err).NotTo(HaveOccurred())
		late, err := own.AddMember(ctx, controlplane.ClusterOptions{Name: "late", Nodes: 1})
		Expect(err).NotTo(HaveOccurred())
		Expect(late.Process(controlplane.KWOK).Freeze()).To(Succeed())
		Expect(processesOf(own.Dir())).NotTo(BeEmpty())
		Expect(own.Stop(ctx)).To(Succeed())
		Expect(processesOf(own.Dir())).To(BeEmpty())
		Expect(own.Dir()).NotTo(BeADirectory())
		Expect(late.Process(controlplane.KWOK).Start(ctx)).To(MatchError(ContainSubstring("the cluster was removed")))
	})

	It("leaves no process when its parent, or the make that runs it, is killed", func(ctx SpecContext) {
		for _, command := range [][]string{nil, asMake()} {
			dir := GinkgoT().TempDir()
			child := startOrphan(dir, command...)
			Eventually(ctx, func(context.Context) []string { return processesOf(dir) }).Should(HaveLen(5), "etcd to kwok")
			Expect(child.Process.Kill()).To(Succeed())
			Eventually(ctx, func(context.Context) []string { return processesOf(dir) }).Should(BeEmpty())
		}
	})

	It("reports what to do when the machine lacks disk space", func(ctx SpecContext) {
		members := make([]controlplane.ClusterOptions, 0, 10_000) // no disk has enough space
		for i := range cap(members) {
			members = append(members, controlplane.ClusterOptions{Name: fmt.Sprintf("m%d", i)})
		}
		_, err := controlplane.Start(ctx, controlplane.Options{Members: members})
		Expect(err).To(MatchError(MatchRegexp(`^no space left in \S+ \(\d+ MiB free, the clusters need \d+ MiB\): free some, or set TMPDIR$`)))
	})
})
