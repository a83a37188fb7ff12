package snapshots_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/grants"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// oneFailed reports whether any story failed. In that case, the suite may not use every permission.
var oneFailed bool

var _ = ReportAfterEach(func(report SpecReport) { oneFailed = oneFailed || report.Failed() })

// Xylem must use every permission for snapshots. This suite cannot check for denials, because a
// restored member denies requests until it has read its roles. test/integration/stories checks for
// denials.
var _ = AfterSuite(func(ctx SpecContext) {
	if config, _ := GinkgoConfiguration(); x == nil || oneFailed || !suite.Whole(config) {
		return
	}
	compare := func(c *harness.Cluster, account, user string) {
		GinkgoHelper()
		all, err := grants.To(ctx, c.API, v1alpha1.DefaultNamespace, account)
		Expect(err).NotTo(HaveOccurred())
		granted, _ := grants.Of(all, "snapshot.storage.k8s.io")
		Expect(granted).NotTo(BeEmpty())
		requests, err := c.Audit().Since(ctx, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(grants.Unused(granted, requests.By(user))).To(BeEmpty(), "granted but never used in %s", c.Name())
	}
	compare(x.Host, "xylem-controller-manager", harness.HostUser)
	compare(x.Member(one), "xylem", harness.MemberUser)
}, NodeTimeout(settle))
