package stories_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/grants"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// reviewedHost and reviewedMember are the permissions that the stories do not use, with the
// reasons for granting them. A permission that is not listed must be used.
var (
	reviewedHost = map[string]string{
		"update leases.coordination.k8s.io in xylem-system":                  "leader election: the stories run one manager without it",
		"create events in xylem-system":                                      "leader election says who leads",
		"patch events in xylem-system":                                       "leader election says who leads",
		"create events.events.k8s.io in xylem-system":                        "leader election says who leads",
		"patch events.events.k8s.io in xylem-system":                         "leader election says who leads",
		"create tokenreviews.authentication.k8s.io":                          "metrics by HTTPS and the node API ask who calls: the stories use neither; test/integration/nodeapi does",
		"create subjectaccessreviews.authorization.k8s.io":                   "metrics by HTTPS and the node API ask what callers may: the stories use neither; test/integration/nodeapi does",
		"list configmaps extension-apiserver-authentication in kube-system":  "the node API follows the CA of client certificates: test/integration/nodeapi",
		"watch configmaps extension-apiserver-authentication in kube-system": "the node API follows the CA of client certificates: test/integration/nodeapi",
		"update clusterregistrations/finalizers.cluster.xylem.io":            "events and owner references on registrations where the admission plugin OwnerReferencesPermissionEnforcement is on",
		"create csidrivers.storage.k8s.io":                                   "a CSIDriver that somebody deleted is re-created",
		"delete csidrivers.storage.k8s.io mock.csi.virtual-kubelet.io":       "the same for the driver of promises",
		"patch events":                                  "a Warning event of a member that happens again is counted on, at the earliest 10 s later",
		"patch secrets in xylem-system":                 "tokens are renewed where kubectl xylem register asked for that: test/integration/register",
		"delete csidrivers.storage.k8s.io csi.xylem.io": "a CSIDriver whose immutable fields an admin has set otherwise is made anew",
	}
	reviewedMember = map[string]string{
		"create serviceaccounts/token xylem in xylem-system": "tokens are renewed where kubectl xylem register asked for that: test/integration/register",
		"list secrets":   "only Secrets with Xylem's label are listed, which RBAC cannot express",
		"watch secrets":  "only Secrets with Xylem's label are watched, which RBAC cannot express",
		"create secrets": "what Pods refer to is pushed along; the policy xylem-account holds it to Xylem's own",
		"patch secrets":  "what Pods refer to is kept current; the policy xylem-account holds it to Xylem's own",
		"delete secrets": "what Pods refer to goes with the last of them; the policy xylem-account holds it to Xylem's own",
	}
	// optionalMember are the permissions of optional parts, which the stories' members do not
	// grant, with the story that shows a denied request.
	optionalMember = map[string]string{
		"patch pods/ephemeralcontainers": "the part debug: a Pod whose ephemeral containers its member does not run",
	}
)

// oneFailed: if a story failed or was skipped, the suite does not exercise every permission.
var oneFailed bool

var _ = ReportAfterEach(func(report SpecReport) { oneFailed = oneFailed || report.Failed() })

// whole reports whether all stories ran.
func whole() bool {
	suite, _ := GinkgoConfiguration()
	return !oneFailed && len(suite.FocusStrings)+len(suite.SkipStrings)+len(suite.FocusFiles)+len(suite.SkipFiles) == 0 && suite.LabelFilter == ""
}

var _ = AfterSuite(func(ctx SpecContext) {
	if x == nil {
		return
	}
	By("looking for a write of the manager that the policy on its account refused")
	refusedByOwnPolicy(ctx)
	if !whole() || suite.Versioned() {
		return // older versions serve fewer kinds
	}
	By("comparing what RBAC grants with what was asked for, over all stories")
	host, err := grants.To(ctx, x.Host.API, v1alpha1.DefaultNamespace, "xylem-controller-manager")
	Expect(err).NotTo(HaveOccurred())
	requests, err := x.Host.Audit().Since(ctx, 0)
	Expect(err).NotTo(HaveOccurred())
	wrong := compare("the host", host, requests.By(harness.HostUser), reviewedHost, nil)

	var used controlplane.Requests
	var granted []grants.Grant
	for _, m := range x.Members() {
		if granted, err = grants.To(ctx, m.API, v1alpha1.DefaultNamespace, "xylem"); err != nil {
			continue // stopped by its story
		}
		requests, err := m.Audit().Since(ctx, 0)
		Expect(err).NotTo(HaveOccurred())
		used = append(used, requests.By(harness.MemberUser)...)
	}
	Expect(errors.Join(wrong, compare("members", granted, used, reviewedMember, optionalMember))).To(Succeed())
}, NodeTimeout(settle))

// refusedByOwnPolicy fails if the host's policy on the manager's account has rejected any of the
// manager's writes.
func refusedByOwnPolicy(ctx SpecContext) {
	GinkgoHelper()
	requests, err := x.Host.Audit().Since(ctx, 0)
	Expect(err).NotTo(HaveOccurred())
	Expect(requests.By(harness.HostUser).Where(func(r controlplane.Request) bool {
		return strings.Contains(r.Message, "'xylem-manager'")
	})).To(BeEmpty())
}

func compare(where string, granted []grants.Grant, requests controlplane.Requests, reviewed, optional map[string]string) error {
	GinkgoHelper()
	Expect(granted).NotTo(BeEmpty())
	Expect(requests).NotTo(BeEmpty())
	var wrong []error
	tell := func(what string, rights []string) {
		if rights = slices.DeleteFunc(rights, func(right string) bool { return reviewed[right] != "" }); len(rights) > 0 {
			wrong = append(wrong, fmt.Errorf("%s: %s:\n  %s", where, what, strings.Join(rights, "\n  ")))
		}
	}
	_, ours := grants.Of(granted, "snapshot.storage.k8s.io", "groupsnapshot.storage.k8s.io") // the members of test/integration/snapshots serve these
	tell("granted and never used: take it off, or have it reviewed", grants.Unused(ours, requests))
	refused := grants.Refused(requests)
	for _, right := range slices.Sorted(maps.Keys(optional)) {
		if !slices.Contains(refused, right) {
			wrong = append(wrong, fmt.Errorf("%s: optional, and never refused: %s", where, right))
		}
	}
	tell("asked for and refused", slices.DeleteFunc(refused, func(right string) bool { return optional[right] != "" }))
	tell("too much", grants.Broad(granted))
	for _, right := range slices.Sorted(maps.Keys(reviewed)) {
		if !slices.ContainsFunc(granted, func(g grants.Grant) bool { return g.String() == right }) {
			wrong = append(wrong, fmt.Errorf("%s: reviewed, and not granted any more: %s", where, right))
		}
	}
	return errors.Join(wrong...)
}
