package recovery_test

import (
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

func leaderWalks() {
	It("has a leader that was frozen until its Lease expired, and that writes nothing when it thaws (I3, I6)", func(ctx SpecContext) {
		s := begin(ctx)
		Expect(x.Manager.Stop()).To(Succeed())
		managers := map[string]*harness.Manager{}
		for _, name := range []string{"a", "b"} {
			m, err := x.AnotherManager(ctx, "manager-"+name, x.Fleet.Host, "--leader-elect")
			Expect(err).NotTo(HaveOccurred())
			Expect(m.Start(ctx)).To(Succeed())
			managers[name] = m
		}
		DeferCleanup(func(ctx SpecContext) {
			for _, m := range managers {
				Expect(m.Kill()).To(Succeed())
			}
			Expect(x.Manager.Start(ctx)).To(Succeed())
			well(ctx, one)
			well(ctx, two)
		}, NodeTimeout(settle))
		// Manager a leads first, and then manager b takes over.
		s.use(ctx, "before", nodeOne)
		old, next := managers["a"], managers["b"]
		fence := *suite.Fence(ctx, x, one).Spec.HolderIdentity
		Expect(old.Signal(syscall.SIGSTOP)).To(Succeed())
		Eventually(ctx, func() string { return *suite.Fence(ctx, x, one).Spec.HolderIdentity }).Should(And(Not(BeEmpty()), Not(Equal(fence))))
		s.goesOn(ctx, nodeOne)
		s.goesOn(ctx, nodeTwo)

		By("resuming the old leader while the new one is frozen, so that all writes come from the old leader")
		Expect(next.Signal(syscall.SIGSTOP)).To(Succeed())
		marks := map[string]controlplane.Mark{}
		for _, c := range x.Clusters() {
			mark, err := c.Audit().Mark(ctx)
			Expect(err).NotTo(HaveOccurred())
			marks[c.Name()] = mark
		}
		Expect(old.Signal(syscall.SIGCONT)).To(Succeed())
		Eventually(ctx, old.Done()).Should(BeClosed(), "the old leader must exit because it has lost its Lease")
		for _, c := range x.Clusters() {
			requests, err := c.Audit().Since(ctx, marks[c.Name()])
			Expect(err).NotTo(HaveOccurred())
			user := harness.MemberUser
			if c.Name() == x.Host.Name() {
				user = harness.HostUser
			}
			// In the host, it renews the nodes' Leases, as every replica does, and tries to acquire
			// the Lease that it lost. It may emit an event about the attempt.
			Expect(requests.By(user).Writes().Where(func(r controlplane.Request) bool {
				return c.Name() != x.Host.Name() || r.Resource != "events" && r.Group != coordinationv1.GroupName
			})).To(BeEmpty(), "%s:\n%s", c.Name(), requests.By(user))
		}
		Expect(next.Signal(syscall.SIGCONT)).To(Succeed())
	}, SpecTimeout(storyTime))
}
