package charts_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// makeAs runs a Makefile target against the host, as users do, with the given kubectl command. It
// does not generate files, because `make verify` checks them.
func makeAs(ctx context.Context, kubectl, target string) (string, error) {
	return run(ctx, "", "make", "--silent", "-C", root, "--assume-old=manifests", target,
		"IMG=registry.example:5000/xylem:v9", "KUBECTL="+kubectl)
}

// versions returns the resourceVersions of the installed objects, which change with every write.
// For kinds whose status Kubernetes writes at any time, it returns what only other writes change.
func versions(ctx context.Context) string {
	GinkgoHelper()
	of := func(kinds, fields string) string {
		GinkgoHelper()
		return kubectl(ctx, "", "get", kinds, "--all-namespaces", "--selector", "app.kubernetes.io/name=xylem", "--sort-by", "metadata.uid",
			"--output", "jsonpath={range .items[*]}{.kind}/{.metadata.name} "+fields+"\n{end}")
	}
	return of("namespaces,clusterroles,clusterrolebindings,csidrivers,validatingadmissionpolicybindings,roles,rolebindings,serviceaccounts,services", "{.metadata.resourceVersion}") +
		of("crds,poddisruptionbudgets", "{.metadata.generation} {.metadata.labels} {.metadata.annotations}")
}

var _ = Describe("make", Ordered, func() {
	// Delete the policy that only the chart has, and re-create the namespace, because undeploy deletes it.
	AfterAll(func(ctx SpecContext) {
		kubectl(ctx, "", "delete", "--kustomize", path("config", "keys"))
		makeNamespace(ctx)
	}, NodeTimeout(settle))

	It("build-installer writes objects that the API server accepts", func(ctx SpecContext) {
		_, err := makeAs(ctx, fleet.Kubectl(), "build-installer")
		Expect(err).NotTo(HaveOccurred())
		out := kubectl(ctx, "", "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", path("dist", "install.yaml"))
		Expect(out).To(ContainSubstring("deployment.apps/xylem-controller-manager"))
	}, SpecTimeout(2*settle))

	It("deploy installs the image; a second deploy changes nothing", func(ctx SpecContext) {
		for range 2 {
			before := versions(ctx)
			_, err := makeAs(ctx, fleet.Kubectl(), "deploy")
			Expect(err).NotTo(HaveOccurred())
			if strings.Contains(before, "ServiceAccount/xylem-controller-manager") {
				Expect(versions(ctx)).To(Equal(before))
			}
		}
		Expect(versions(ctx)).To(And(ContainSubstring("ServiceAccount/xylem-controller-manager"), ContainSubstring("PodDisruptionBudget/xylem-controller-manager")))
		Expect(kubectl(ctx, "", "--namespace", restricted, "get", "deployment", "xylem-controller-manager", "--output", "jsonpath={.spec.template.spec.containers[0].image}")).
			To(Equal("registry.example:5000/xylem:v9"))
	}, SpecTimeout(2*settle))

	DescribeTable("undeploy and uninstall fail", func(ctx SpecContext, target string) {
		kubectl(ctx, registration, "apply", "-f", "-")
		By("while a registration exists")
		_, err := makeAs(ctx, fleet.Kubectl(), target)
		Expect(err).To(MatchError(ContainSubstring("cluster38")))

		By("if the user cannot list the registrations")
		_, err = makeAs(ctx, fleet.Kubectl()+" --as nobody-in-particular", target)
		Expect(err).To(MatchError(ContainSubstring("cannot get resource")))

		By("if the API server does not respond")
		_, err = makeAs(ctx, fleet.Kubectl()+" --server https://127.0.0.1:1", target)
		Expect(err).To(MatchError(ContainSubstring("127.0.0.1:1")))
		kubectl(ctx, "", "delete", "clusterregistration", "cluster38")

		By("while a volume waits for Xylem")
		kubectl(ctx, waiting, "apply", "-f", "-", "--as", "system:serviceaccount:"+restricted+":xylem-controller-manager", "--as-group", "system:masters")
		_, err = makeAs(ctx, fleet.Kubectl(), target)
		Expect(err).To(MatchError(ContainSubstring("waiting")))
		forgetWaiting(ctx)
		Expect(kubectl(ctx, "", "--namespace", restricted, "get", "deployments", "--output", "name")).To(ContainSubstring("xylem-controller-manager"))
	},
		Entry("undeploy", SpecTimeout(2*settle), "undeploy"),
		Entry("uninstall", SpecTimeout(2*settle), "uninstall"),
	)

	It("deploy can be followed by helm upgrade, as the chart's README describes", func(ctx SpecContext) {
		_, err := helm(ctx, "upgrade", "--install", "xylem", path("charts", "xylem"), "--namespace", restricted, "--take-ownership", "--force-conflicts", "--wait", "--timeout", "60s")
		Expect(err).NotTo(HaveOccurred())
		Expect(kubectl(ctx, "", "--namespace", restricted, "get", "deployment", "xylem-controller-manager", "--output", `jsonpath={.metadata.labels.app\.kubernetes\.io/managed-by}`)).To(Equal("Helm"))
	}, SpecTimeout(2*settle))

	It("undeploy deletes everything; a second undeploy changes nothing", func(ctx SpecContext) {
		for range 2 {
			_, err := makeAs(ctx, fleet.Kubectl(), "undeploy")
			Expect(err).NotTo(HaveOccurred())
			Expect(versions(ctx)).To(BeEmpty())
		}
	}, SpecTimeout(4*settle))
})
