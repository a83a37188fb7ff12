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
	"github.com/xylem-io/xylem/test/run/reports"
)

// reviewedHost and reviewedMember are the permissions that the stories do not use, with the
// reasons for granting them. A permission that is not listed must be used.
var (
	reviewedHost = map[string]string{
		"update leases.coordination.k8s.io in xylem-system":                  "leader election: the stories run a single manager without it",
		"create events in xylem-system":                                      "leader election emits events about the leader",
		"patch events in xylem-system":                                       "leader election emits events about the leader",
		"create events.events.k8s.io in xylem-system":                        "leader election emits events about the leader",
		"patch events.events.k8s.io in xylem-system":                         "leader election emits events about the leader",
		"create tokenreviews.authentication.k8s.io":                          "metrics over HTTPS and the node API authenticate callers; test/integration/nodeapi uses the node API",
		"create subjectaccessreviews.authorization.k8s.io":                   "metrics over HTTPS and the node API authorize callers; test/integration/nodeapi uses the node API",
		"list configmaps extension-apiserver-authentication in kube-system":  "the node API reads the CA of client certificates; test/integration/nodeapi uses it",
		"watch configmaps extension-apiserver-authentication in kube-system": "the node API watches the CA of client certificates; test/integration/nodeapi uses it",
		"update clusterregistrations/finalizers.cluster.xylem.io":            "required for owner references if the admission plugin OwnerReferencesPermissionEnforcement is enabled",
		"create csidrivers.storage.k8s.io":                                   "Xylem re-creates a CSIDriver that somebody deleted",
		"delete csidrivers.storage.k8s.io mock.csi.virtual-kubelet.io":       "Xylem re-creates the CSIDriver for promises if an admin has changed its immutable fields",
		"patch events":                                  "if a member's Warning event recurs after 10 s or more, Xylem updates the count of its copy",
		"patch secrets in xylem-system":                 "Xylem renews tokens if kubectl xylem register requested it; test/integration/register covers this",
		"delete csidrivers.storage.k8s.io csi.xylem.io": "Xylem re-creates its CSIDriver if an admin has changed its immutable fields",
	}
	reviewedMember = map[string]string{
		"create serviceaccounts/token xylem in xylem-system": "Xylem renews tokens if kubectl xylem register requested it; test/integration/register covers this",
		"get endpointslices.discovery.k8s.io":                "Xylem reads an EndpointSlice that has the name of one that it must create",
		"list secrets":                                       "Xylem lists only Secrets with its label, which RBAC cannot express",
		"watch secrets":                                      "Xylem watches only Secrets with its label, which RBAC cannot express",
		"create secrets":                                     "Xylem copies Secrets that Pods refer to; the policy xylem-account limits it to such copies",
		"patch secrets":                                      "Xylem keeps these copies up to date; the policy xylem-account limits it to such copies",
		"delete secrets":                                     "Xylem deletes a copy with the last Pod that refers to it; the policy xylem-account limits it to such copies",
	}
	// optionalHost is a permission that a story removes, as an admin does with the chart's
	// rbac.secretNamespaces.
	optionalHost = map[string]string{
		"get secrets": "rbac.secretNamespaces excludes the namespace: the manager may not read a Pod's Secret",
	}
	// optionalMember lists the optional permissions that the stories' members do not grant, with the
	// story in which a request is denied.
	optionalMember = map[string]string{
		"patch pods/ephemeralcontainers": "config/member/debug is not applied: the member does not run a Pod's ephemeral containers",
		"patch pods/resize":              "an earlier role: a story removes the permission and gives it back",
	}
)

// grantsEntry is the name of the report entry with the permissions that one process has used.
const grantsEntry = "permissions exercised"

// exercised contains the permissions that the stories in one process have used and have not used.
// Each process has its own clusters.
type exercised struct {
	Granted, Unused, Refused, Broad []string
}

// add adds the permissions of another process. A permission is unused only if no process used it.
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
	_, ours := grants.Of(granted, "snapshot.storage.k8s.io", "groupsnapshot.storage.k8s.io") // test/integration/snapshots covers these
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
			continue // a story has stopped this member
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

// Only a complete run without failures uses every permission. The stories of `make test` leave what they
// used to the run of the others.
var _ = ReportAfterSuite("permissions", func(report Report) {
	if !report.SuiteSucceeded || suite.Versioned() {
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
	if !suite.Whole(report.SuiteConfig) {
		Expect(reports.Leave(grantsEntry, [2]exercised{host, members})).To(Succeed())
		return
	}
	if suite.Rest() {
		var earlier [2]exercised
		Expect(reports.Left(grantsEntry, &earlier)).To(Succeed())
		host.add(earlier[0])
		members.add(earlier[1])
	}
	Expect(errors.Join(compare("the host", host, reviewedHost, optionalHost), compare("members", members, reviewedMember, optionalMember))).To(Succeed())
})

// refusedByOwnPolicy expects that the host's policy on the manager's account has rejected none of
// the manager's writes.
func refusedByOwnPolicy(ctx SpecContext) {
	GinkgoHelper()
	requests, err := x.Host.Audit().Since(ctx, 0)
	Expect(err).NotTo(HaveOccurred())
	Expect(requests.By(harness.HostUser).Where(func(r controlplane.Request) bool {
		return strings.Contains(r.Message, "'xylem-manager'")
	})).To(BeEmpty())
}

// compare returns an error that lists the problems with an account's permissions.
func compare(where string, e exercised, reviewed, optional map[string]string) error {
	GinkgoHelper()
	Expect(e.Granted).NotTo(BeEmpty())
	var wrong []error
	tell := func(what string, rights []string) {
		if rights = slices.DeleteFunc(slices.Clone(rights), func(right string) bool { return reviewed[right] != "" }); len(rights) > 0 {
			wrong = append(wrong, fmt.Errorf("%s: %s:\n  %s", where, what, strings.Join(rights, "\n  ")))
		}
	}
	tell("granted but never used: remove it, or add it to the reviewed permissions", e.Unused)
	for _, right := range slices.Sorted(maps.Keys(optional)) {
		if !slices.Contains(e.Refused, right) {
			wrong = append(wrong, fmt.Errorf("%s: optional, but no request was denied: %s", where, right))
		}
	}
	tell("requested but denied", slices.DeleteFunc(e.Refused, func(right string) bool { return optional[right] != "" }))
	tell("granted too broadly", e.Broad)
	for _, right := range slices.Sorted(maps.Keys(reviewed)) {
		if !slices.Contains(e.Granted, right) {
			wrong = append(wrong, fmt.Errorf("%s: reviewed, but no longer granted: %s", where, right))
		}
	}
	return errors.Join(wrong...)
}
