package stories_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"

	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// scraped returns all metrics that the manager serves.
func scraped(ctx context.Context) (string, error) { return harness.Served(ctx, x.Manager.MetricsURL()) }

// metric returns the value of one of the manager's series, or "" if it does not exist.
func metric(ctx context.Context, series string) (string, error) {
	body, err := scraped(ctx)
	for line := range strings.Lines(body) {
		if value, found := strings.CutPrefix(line, series+" "); found {
			return strings.TrimSpace(value), err
		}
	}
	return "", err
}

// measured waits until a member's metric has a matching value.
func measured(ctx context.Context, name, registration string, value gomegatypes.GomegaMatcher) {
	GinkgoHelper()
	Eventually(ctx, func() (string, error) {
		return metric(ctx, fmt.Sprintf("%s{cluster=%q}", name, registration))
	}).WithContext(ctx).Should(value, "%s of %s", name, registration)
}

// unmeasured waits until no series of a member is left.
func unmeasured(ctx context.Context, registration string) {
	GinkgoHelper()
	Eventually(ctx, func() ([]string, error) {
		body, err := scraped(ctx)
		return regexp.MustCompile(fmt.Sprintf(`(?m)^.*cluster=%q.*$`, registration)).FindAllString(body, -1), err
	}).WithContext(ctx).Should(BeEmpty())
}

var sampleName = regexp.MustCompile(`(?m)^(xylem_[a-z0-9_]+)[{ ]`)

var _ = Describe("Metrics", func() {
	const leafBound, hostBound = "xylem_claim_leaf_bound_seconds_count", "xylem_claim_host_bound_seconds_count"

	It("measure the provisioning latency of each claim only once, even after a restart", suite.Slow, func(ctx SpecContext) {
		Expect(x.Manager.Restart(ctx)).To(Succeed()) // counters start at zero in each process
		measured(ctx, "xylem_member_connected", two, Equal("1"))
		measured(ctx, leafBound, two, Equal("0"))

		s := begin(ctx)
		s.claim(ctx, "data")
		s.claim(ctx, "promised", ofClass(classPromise))
		s.pod(ctx, "app", using("data"), using("promised"), on(nodeTwo))
		s.running(ctx, "app", nodeTwo)
		s.fulfilled(ctx, "promised", two)
		measured(ctx, leafBound, two, Equal("2"))
		measured(ctx, hostBound, two, Equal("2"))
		measured(ctx, "xylem_promises_unfulfilled", two, Equal("0"))

		By("restarting the manager, which lists all objects again")
		Expect(x.Manager.Restart(ctx)).To(Succeed())
		measured(ctx, "xylem_member_connected", two, Equal("1"))
		s.claim(ctx, "barrier")
		s.pod(ctx, "next", using("barrier"), on(nodeTwo))
		s.running(ctx, "next", nodeTwo)
		measured(ctx, hostBound, two, Equal("1"))
		measured(ctx, leafBound, two, Equal("1"))
	}, SpecTimeout(storyTime))

	It("are served together with Go profiles if those are enabled", func(ctx SpecContext) {
		profile, err := harness.Served(ctx, x.Manager.ProfilesURL()+"goroutine?debug=1")
		Expect(err).NotTo(HaveOccurred())
		Expect(profile).To(ContainSubstring("goroutine profile: total"))
	}, SpecTimeout(storyTime))

	It("have help texts", suite.Slow, func(ctx SpecContext) {
		body, err := scraped(ctx)
		Expect(err).NotTo(HaveOccurred())
		names := sampleName.FindAllStringSubmatch(body, -1)
		Expect(names).NotTo(BeEmpty())
		for _, name := range names {
			Expect(body).To(MatchRegexp(`(?m)^# HELP %s \S`, regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name[1], "(_count)?")))
		}
	}, SpecTimeout(storyTime))
})
