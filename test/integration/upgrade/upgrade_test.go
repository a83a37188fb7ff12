package upgrade_test

import (
	"context"
	"fmt"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

const (
	class     = "upgraded"
	namespace = "under-load"
	// between is the number of claims that must be bound, used and deleted on each node with every
	// combination of versions.
	between = 8
	// storyTime is the timeout of the whole test.
	storyTime = 20 * time.Minute
)

// kept contains claims that exist before the first upgrade and after the last one, and their nodes.
var kept = map[string]string{"kept-here": nodeOne, "kept-there": nodeTwo}

var _ = Describe("Kubernetes", func() {
	It("is upgraded under load in the host and then in each member, and nothing is lost or left behind", func(ctx SpecContext) {
		Expect(x.Host.CreateNamespace(ctx, namespace)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			if CurrentSpecReport().Failed() {
				x.Dump(ctx, GinkgoWriter, namespace)
			}
		}, NodeTimeout(suite.Settle))
		from := os.Getenv(fromEnv)
		reports(ctx, x.Host, from)

		pods, disks := map[string]types.UID{}, map[string]string{}
		for name, node := range kept {
			Expect(use(ctx, namespace, name, node)).To(Succeed())
			pods[name] = podOf(ctx, name).UID
			member, id := diskOf(name)
			disks[name] = id
			Expect(member.WriteData(id, "written before the upgrade by "+name)).To(Succeed())
		}
		manager := x.Manager.PID()

		l := start(ctx, namespace, nodeOne, nodeTwo)
		loaded := func(what string) {
			GinkgoHelper()
			before, err := l.least(nodeOne, nodeTwo)
			Expect(err).NotTo(HaveOccurred())
			By(what)
			Eventually(ctx, func() (int, error) { return l.least(nodeOne, nodeTwo) }).WithTimeout(storyTime).Should(BeNumerically(">=", before+between))
		}
		loaded("all clusters at " + from)
		for _, version := range later(from) {
			for _, c := range []*harness.Cluster{x.Host, x.Member(one), x.Member(two)} {
				By(fmt.Sprintf("upgrading %s to %s", c.Name(), version))
				Expect(c.Upgrade(ctx, version)).To(Succeed())
				reports(ctx, c, version)
				loaded(fmt.Sprintf("%s at %s", c.Name(), version))
			}
		}
		Expect(l.stop()).To(Succeed())

		By("checking that the existing objects are kept")
		for name := range kept {
			Expect(podOf(ctx, name).UID).To(Equal(pods[name]), "Pod %s must not be replaced", name)
			member, id := diskOf(name)
			Expect(id).To(Equal(disks[name]))
			Expect(member.ReadData(id)).To(Equal("written before the upgrade by "+name), "the data of %s must be kept", name)
		}
		Expect(x.Manager.PID()).To(Equal(manager), "the manager must not be restarted")

		By("checking that each claim had one disk, which was deleted with the claim")
		for _, name := range l.names {
			created := 0
			for _, m := range x.Members() {
				created += bookOf(m).ForClaim(namespace, name).Count(ledger.CreateVolume)
			}
			Expect(created).To(Equal(1), "claim %s must have had one disk", name)
		}
		Eventually(live).Should(ConsistOf(disks["kept-here"], disks["kept-there"]))
		GinkgoWriter.Printf("%d claims were created, bound, used and deleted\n", len(l.names))

		By("deleting the other objects: nothing is left behind")
		for name := range kept {
			Expect(remove(ctx, namespace, name)).To(Succeed())
		}
		Eventually(live).Should(BeEmpty())
		Eventually(ctx, left).Should(BeEmpty())
	}, SpecTimeout(storyTime))
})

// reports expects a cluster's API server to serve the release that is pinned for a minor version.
// For a member, it waits until Xylem reports this release.
func reports(ctx context.Context, c *harness.Cluster, version string) {
	GinkgoHelper()
	release, err := kubebin.Release(x.Root(), version)
	Expect(err).NotTo(HaveOccurred())
	served, err := c.Client().Discovery().ServerVersion()
	Expect(err).NotTo(HaveOccurred())
	Expect(served.GitVersion).To(Equal(release))
	if c != x.Host {
		suite.Until[v1alpha1.ClusterRegistration](ctx, x.Host, "", c.Name(), HaveField("Status.KubernetesVersion", release))
	}
}

func podOf(ctx context.Context, name string) *corev1.Pod {
	GinkgoHelper()
	pod, err := suite.Read[corev1.Pod](ctx, x.Host, namespace, name)
	Expect(err).NotTo(HaveOccurred())
	return pod
}

func bookOf(m *harness.Cluster) *ledger.Ledger {
	GinkgoHelper()
	book, err := m.Ledger()
	Expect(err).NotTo(HaveOccurred())
	return book
}

// diskOf returns the only disk of a claim, and its member.
func diskOf(claim string) (member *harness.Cluster, id string) {
	GinkgoHelper()
	for _, m := range x.Members() {
		for found, entry := range bookOf(m).Live() {
			if entry.ClaimNamespace == namespace && entry.ClaimName == claim {
				Expect(id).To(BeEmpty(), "claim %s must have only one disk", claim)
				member, id = m, found
			}
		}
	}
	Expect(member).NotTo(BeNil(), "claim %s must have a disk", claim)
	return member, id
}

// live returns the disks of all members.
func live() []string {
	GinkgoHelper()
	var all []string
	for _, m := range x.Members() {
		all = append(all, bookOf(m).LiveIDs()...)
	}
	return all
}

// left returns the claims, volumes and Pods of the test in all clusters.
func left(ctx context.Context) ([]string, error) {
	var names []string
	for _, c := range x.Clusters() {
		var volumes corev1.PersistentVolumeList
		var claims corev1.PersistentVolumeClaimList
		var pods corev1.PodList
		for _, list := range []client.ObjectList{&volumes, &claims, &pods} {
			if err := c.API.List(ctx, list); err != nil {
				return nil, err
			}
		}
		for i := range volumes.Items {
			names = append(names, "volume "+volumes.Items[i].Name+" in "+c.Name())
		}
		for i := range claims.Items {
			names = append(names, "claim "+claims.Items[i].Name+" in "+c.Name())
		}
		for i := range pods.Items {
			names = append(names, "Pod "+pods.Items[i].Name+" in "+c.Name())
		}
	}
	return names, nil
}
