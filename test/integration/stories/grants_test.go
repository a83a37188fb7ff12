package stories_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
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
		"create events in xylem-system":                                      "leader election emits events about the leader",
		"patch events in xylem-system":                                       "leader election emits events about the leader",
		"create events.events.k8s.io in xylem-system":                        "leader election emits events about the leader",
		"patch events.events.k8s.io in xylem-system":                         "leader election emits events about the leader",
		"create tokenreviews.authentication.k8s.io":                          "metrics by HTTPS and the node API authenticate callers: the stories use neither; test/integration/nodeapi does",
		"create subjectaccessreviews.authorization.k8s.io":                   "metrics by HTTPS and the node API authorize callers: the stories use neither; test/integration/nodeapi does",
		"list configmaps extension-apiserver-authentication in kube-system":  "the node API follows the CA of client certificates: test/integration/nodeapi",
		"watch configmaps extension-apiserver-authentication in kube-system": "the node API follows the CA of client certificates: test/integration/nodeapi",
		"update clusterregistrations/finalizers.cluster.xylem.io":            "events and owner references on registrations where the admission plugin OwnerReferencesPermissionEnforcement is on",
		"create csidrivers.storage.k8s.io":                                   "a CSIDriver that somebody deleted is re-created",
		"delete csidrivers.storage.k8s.io mock.csi.virtual-kubelet.io":       "the CSIDriver of promises, after an admin has changed its immutable fields",
		"patch events":                                  "the count of a member's Warning event that occurs again, 10 s later at the earliest",
		"patch secrets in xylem-system":                 "tokens are renewed if kubectl xylem register requested that: test/integration/register",
		"delete csidrivers.storage.k8s.io csi.xylem.io": "a CSIDriver whose immutable fields an admin has changed is re-created",
	}
	reviewedMember = map[string]string{
		"create serviceaccounts/token xylem in xylem-system": "tokens are renewed if kubectl xylem register requested that: test/integration/register",
		"list secrets":   "only Secrets with Xylem's label are listed, which RBAC cannot express",
		"watch secrets":  "only Secrets with Xylem's label are watched, which RBAC cannot express",
		"create secrets": "Secrets that Pods refer to are copied; the policy xylem-account limits this to Xylem's copies",
		"patch secrets":  "Secrets that Pods refer to are kept up to date; the policy xylem-account limits this to Xylem's copies",
		"delete secrets": "copies are deleted with the last Pod that refers to them; the policy xylem-account limits this to Xylem's copies",
	}
	// optionalHost is a permission that a story removes, as an admin does with the chart's
	// rbac.secretNamespaces.
	optionalHost = map[string]string{
		"get secrets": "rbac.secretNamespaces: a Pod whose Secret the manager may not read",
	}
	// optionalMember are the permissions of optional parts, which the stories' members do not
	// grant, with the story that shows a denied request.
	optionalMember = map[string]string{
		"patch pods/ephemeralcontainers": "the part debug: a Pod whose ephemeral containers its member does not run",
	}
)

// grantsEntry is the name of the report entry with what one process has exercised.
const grantsEntry = "permissions exercised"

// exercised is what the stories of one process, with clusters of its own, did with permissions.
type exercised struct {
	Granted, Unused, Refused, Broad []string
}

// add adds what another process exercised. A permission is unused if no process used it.
func (e *exercised) add(other exercised) {
	if len(e.Granted) == 0 {
		*e = other
		return
	}
	union := func(all *[]string, more []string) {
		*all = append(*all, more...)
		slices.Sort(*all)
		*all = slices.Compact(*all)
	}
	e.Unused = slices.DeleteFunc(e.Unused, func(right string) bool { return !slices.Contains(other.Unused, right) })
	union(&e.Granted, other.Granted)
	union(&e.Refused, other.Refused)
	union(&e.Broad, other.Broad)
}

// exercisedBy compares the permissions of an account with its requests.
func exercisedBy(granted []grants.Grant, requests controlplane.Requests) exercised {
	GinkgoHelper()
	Expect(granted).NotTo(BeEmpty())
	Expect(requests).NotTo(BeEmpty())
	e := exercised{Refused: grants.Refused(requests), Broad: grants.Broad(granted)}
	for _, g := range granted {
		e.Granted = append(e.Granted, g.String())
	}
	_, ours := grants.Of(granted, "snapshot.storage.k8s.io", "groupsnapshot.storage.k8s.io") // the members of test/integration/snapshots serve these
	e.Unused = grants.Unused(ours, requests)
	return e
}

var _ = AfterSuite(func(ctx SpecContext) {
	if x == nil {
		return
	}
	By("looking for writes of the manager that the policy on its account rejected")
	refusedByOwnPolicy(ctx)
	if suite.Versioned() {
		return // older versions serve fewer kinds
	}

	By("comparing the granted permissions with those that were used")
	granted, err := grants.To(ctx, x.Host.API, v1alpha1.DefaultNamespace, "xylem-controller-manager")
	Expect(err).NotTo(HaveOccurred())
	requests, err := x.Host.Audit().Since(ctx, 0)
	Expect(err).NotTo(HaveOccurred())
	host := exercisedBy(granted, requests.By(harness.HostUser))

	var used controlplane.Requests
	for _, m := range x.Members() {
		of, err := grants.To(ctx, m.API, v1alpha1.DefaultNamespace, "xylem")
		if err != nil {
			continue // stopped by its story
		}
		granted = of
		requests, err := m.Audit().Since(ctx, 0)
		Expect(err).NotTo(HaveOccurred())
		used = append(used, requests.By(harness.MemberUser)...)
	}
	entry, err := json.Marshal([2]exercised{host, exercisedBy(granted, used)})
	Expect(err).NotTo(HaveOccurred())
	AddReportEntry(grantsEntry, string(entry), ReportEntryVisibilityNever)
}, NodeTimeout(settle))

// A part of the stories, or stories of which one failed, do not exercise every permission.
var _ = ReportAfterSuite("permissions", func(report Report) {
	if !report.SuiteSucceeded || !suite.Whole(report.SuiteConfig) || report.SuiteConfig.LabelFilter != "" {
		return
	}
	var host, members exercised
	for _, process := range report.SpecReports.WithLeafNodeType(types.NodeTypeAfterSuite) {
		for _, entry := range process.ReportEntries {
			if entry.Name != grantsEntry {
				continue
			}
			var of [2]exercised
			Expect(json.Unmarshal([]byte(entry.StringRepresentation()), &of)).To(Succeed())
			host.add(of[0])
			members.add(of[1])
		}
	}
	Expect(errors.Join(compare("the host", host, reviewedHost, optionalHost), compare("members", members, reviewedMember, optionalMember))).To(Succeed())
})

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

// compare returns what is wrong with the permissions of an account.
func compare(where string, e exercised, reviewed, optional map[string]string) error {
	GinkgoHelper()
	Expect(e.Granted).NotTo(BeEmpty())
	var wrong []error
	tell := func(what string, rights []string) {
		if rights = slices.DeleteFunc(slices.Clone(rights), func(right string) bool { return reviewed[right] != "" }); len(rights) > 0 {
			wrong = append(wrong, fmt.Errorf("%s: %s:\n  %s", where, what, strings.Join(rights, "\n  ")))
		}
	}
	tell("granted and never used: remove it, or have it reviewed", e.Unused)
	for _, right := range slices.Sorted(maps.Keys(optional)) {
		if !slices.Contains(e.Refused, right) {
			wrong = append(wrong, fmt.Errorf("%s: optional, and never refused: %s", where, right))
		}
	}
	tell("asked for and refused", slices.DeleteFunc(e.Refused, func(right string) bool { return optional[right] != "" }))
	tell("too much", e.Broad)
	for _, right := range slices.Sorted(maps.Keys(reviewed)) {
		if !slices.Contains(e.Granted, right) {
			wrong = append(wrong, fmt.Errorf("%s: reviewed, but no longer granted: %s", where, right))
		}
	}
	return errors.Join(wrong...)
}
