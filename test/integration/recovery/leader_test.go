package recovery_test

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// quiet is how long no write of a frozen manager may end before the test assumes that none is in
// progress.
const quiet = time.Second

// written returns the managers' writes to a cluster that ended after a mark.
func written(ctx context.Context, c *harness.Cluster, since controlplane.Mark) (controlplane.Requests, error) {
	requests, err := c.Audit().Since(ctx, since)
	if err != nil {
		return nil, fmt.Errorf("read the audit log of %s: %w", c.Name(), err)
	}
	return requests.By(x.User(c)).Writes(), nil
}

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
		// An API server may still be handling requests that the new leader sent before.
		marks := map[string]controlplane.Mark{}
		Eventually(ctx, func(g Gomega) {
			for _, c := range x.Clusters() {
				mark, err := c.Audit().Mark(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				marks[c.Name()] = mark
			}
			g.Consistently(ctx, func(g Gomega) {
				for _, c := range x.Clusters() {
					g.Expect(written(ctx, c, marks[c.Name()])).To(BeEmpty(), c.Name())
				}
			}).WithContext(ctx).WithTimeout(quiet).Should(Succeed())
		}).WithContext(ctx).Should(Succeed())
		Expect(old.Signal(syscall.SIGCONT)).To(Succeed())
		Eventually(ctx, old.Done()).Should(BeClosed(), "the old leader must exit because it has lost its Lease")
		for _, c := range x.Clusters() {
			// In the host, it renews the nodes' Leases, as every replica does, and tries to acquire
			// the Lease that it lost. It may emit an event about the attempt.
			writes, err := written(ctx, c, marks[c.Name()])
			Expect(err).NotTo(HaveOccurred())
			// In a member, it may try to renew its fence, which the new leader has changed.
			Expect(writes.Where(func(r controlplane.Request) bool {
				lease := r.Group == coordinationv1.GroupName
				if c.Name() != x.Host.Name() {
					return !lease || r.Code != http.StatusConflict
				}
				return r.Resource != "events" && !lease
			})).To(BeEmpty(), "%s:\n%s", c.Name(), writes)
		}
		Expect(next.Signal(syscall.SIGCONT)).To(Succeed())
	}, SpecTimeout(storyTime))
}
