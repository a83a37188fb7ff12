package charts_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/xylem-io/xylem/internal/check"
	"github.com/xylem-io/xylem/internal/manager"
	"github.com/xylem-io/xylem/test/controlplane"
)

// KWOK simulates the Pods. With these annotations, it completes or fails the hooks' Pods.
const (
	hooksComplete = `--set-string=hooks.podAnnotations.controlplane\.xylem\.io/complete=yes`
	hooksFail     = `--set-string=hooks.podAnnotations.controlplane\.xylem\.io/fail=yes`
)

const registration = `
apiVersion: cluster.xylem.io/v1alpha1
kind: ClusterRegistration
metadata: {name: cluster38}
spec: {kubeconfigSecretRef: {name: cluster38-kubeconfig}}
`

// waiting is a host PV with Xylem's finalizer.
const waiting = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: waiting, finalizers: [xylem.io/leaf-volume]}
spec:
  {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: csi.xylem.io, volumeHandle: a/b},
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: xylem.io/cluster-id, operator: In, values: [a]}]}]}}}
`

func forgetWaiting(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "", "patch", "pv", "waiting", "--type", "json", "--patch", `[{"op": "remove", "path": "/metadata/finalizers"}]`)
	kubectl(ctx, "", "delete", "pv", "waiting")
}

// as returns a checker that uses a hook's service account, with only the permissions that the
// chart grants.
func as(account string, out *bytes.Buffer) *check.Checker {
	GinkgoHelper()
	config, err := fleet.Host.RESTConfig(controlplane.Direct)
	Expect(err).NotTo(HaveOccurred())
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + restricted + ":" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + restricted, "system:authenticated"},
	}
	checker, err := check.New(config, restricted, out)
	Expect(err).NotTo(HaveOccurred())
	return checker
}

// applyHooks creates the objects that the hooks need, except their Pods, as Helm does before it
// runs the hooks.
func applyHooks(ctx context.Context, file string) {
	GinkgoHelper()
	stream, err := run(ctx, "", helmPath, "template", "xylem", path("charts", "xylem"), "--namespace", restricted, "--show-only", "templates/hooks/"+file)
	Expect(err).NotTo(HaveOccurred())
	all := objects(stream)
	for name, o := range all {
		if kind := o.GetKind(); kind == "Pod" || kind == "Job" {
			delete(all, name)
		}
	}
	stream = marshal(all)
	kubectl(ctx, stream, "apply", "-f", "-")
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // ginkgo gives a cleanup its own
		kubectl(ctx, stream, "delete", "--ignore-not-found", "-f", "-")
	}, NodeTimeout(settle))
}

func marshal(all map[string]*unstructured.Unstructured) string {
	GinkgoHelper()
	var out strings.Builder
	for _, o := range all {
		content, err := yaml.Marshal(o.Object)
		Expect(err).NotTo(HaveOccurred())
		out.WriteString("---\n" + string(content))
	}
	return out.String()
}

// renew renews a Lease, as a leader does, until the spec ends or stop() is called.
func renew(ctx context.Context, name string) (stop func()) {
	GinkgoHelper()
	config, err := fleet.Host.RESTConfig(controlplane.Direct)
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: restricted, Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a-manager")},
	}
	Expect(client.IgnoreAlreadyExists(c.Create(ctx, lease))).To(Succeed())
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(300 * time.Millisecond)
		defer ticker.Stop()
		for {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"renewTime":"`+time.Now().UTC().Format(metav1.RFC3339Micro)+`"}}`))
			_ = c.Patch(ctx, lease, patch)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	stop = func() { cancel(); <-done }
	DeferCleanup(stop)
	return stop
}

var _ = Describe("A release", Ordered, func() {
	// Delete the CRD that the chart keeps, so that it does not affect other specs.
	AfterAll(func(ctx SpecContext) {
		kubectl(ctx, "", "delete", "crd", "clusterregistrations.cluster.xylem.io")
	}, NodeTimeout(settle))

	install := func(ctx context.Context, chart string, arguments ...string) {
		GinkgoHelper()
		_, err := helm(ctx, append([]string{"upgrade", "--install", "xylem", chart, "--namespace", restricted, "--wait", "--timeout", "60s"}, arguments...)...)
		Expect(err).NotTo(HaveOccurred())
	}
	held := func(ctx context.Context, timeout time.Duration, ask func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return ask(ctx)
	}

	It("upgrades its CRD", func(ctx SpecContext) {
		By("installing a chart whose CRD lacks a column")
		old := filepath.Join(GinkgoT().TempDir(), "xylem")
		Expect(os.CopyFS(old, os.DirFS(path("charts", "xylem")))).To(Succeed())
		file := filepath.Join(old, "templates", "crds.yaml")
		crd, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		column := "    - jsonPath: .status.nodeName\n      name: Node\n      type: string\n"
		Expect(strings.Count(string(crd), column)).To(Equal(1))
		Expect(os.WriteFile(file, []byte(strings.Replace(string(crd), column, "", 1)), 0o600)).To(Succeed())
		install(ctx, old)
		columns := []string{"get", "crd", "clusterregistrations.cluster.xylem.io", "--output", "jsonpath={.spec.versions[0].additionalPrinterColumns[*].name}"}
		Expect(kubectl(ctx, "", columns...)).NotTo(ContainSubstring("Node"))
		By("upgrading")
		install(ctx, path("charts", "xylem"), hooksComplete)
		Expect(kubectl(ctx, "", columns...)).To(ContainSubstring("Node"))
	}, SpecTimeout(2*settle))

	It("is rejected if another one exists", func(ctx SpecContext) {
		kubectl(ctx, "", "create", "namespace", "another")
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "", "delete", "namespace", "another") }, NodeTimeout(settle))
		_, err := helm(ctx, "install", "another", path("charts", "xylem"), "--namespace", "another")
		Expect(err).To(MatchError(ContainSubstring("cannot be imported into the current release")))
	}, SpecTimeout(settle))

	Describe("that the test hook checks", func() {
		var (
			out          *bytes.Buffer
			checker      *check.Checker
			installation check.Installation
		)
		BeforeEach(func(ctx SpecContext) {
			applyHooks(ctx, "test.yaml")
			out = &bytes.Buffer{}
			checker = as("xylem-test", out)
			installation = check.Installation{
				Deployment: "xylem-controller-manager", ServiceAccount: "xylem-controller-manager",
				Lease: manager.LeaderElectionID, Policy: "xylem-reserved-keys",
			}
			rights := kubectl(ctx, "", "--namespace", restricted, "get", "configmap", "xylem-test", "--output", `jsonpath={.data.rights\.yaml}`)
			Expect(yaml.UnmarshalStrict([]byte(rights), &installation.RequiredRules)).To(Succeed())
			Expect(len(installation.RequiredRules)).To(BeNumerically(">=", 4))
		}, NodeTimeout(settle))

		It("passes the checks, with only the permissions of the test's service account", func(ctx SpecContext) {
			renew(ctx, installation.Lease)
			Expect(held(ctx, settle, func(ctx context.Context) error { return checker.CheckInstalled(ctx, installation) })).To(Succeed(), out.String)
			Expect(strings.Count(out.String(), "ok ")).To(Equal(7), out.String())
		}, SpecTimeout(2*settle))

		DescribeTable("fails the checks, with a message that names the problem", func(ctx SpecContext, complaint string, leads bool, breaking ...string) {
			stop := renew(ctx, installation.Lease)
			if !leads {
				stop()
			}
			kubectl(ctx, "", breaking...)
			DeferCleanup(func(ctx SpecContext) { install(ctx, path("charts", "xylem"), hooksComplete, "--force-conflicts") }, NodeTimeout(2*settle))
			Eventually(ctx, func(ctx context.Context) error {
				return held(ctx, 2*time.Second, func(ctx context.Context) error { return checker.CheckInstalled(ctx, installation) })
			}).Should(MatchError(ContainSubstring(complaint)))
		},
			Entry("no manager renews the leader Lease", SpecTimeout(3*settle), "has not been renewed since", false, "version"),
			Entry("the policy was deleted", SpecTimeout(3*settle), "accepted a claim", true, "delete", "validatingadmissionpolicybinding", "xylem-reserved-keys"),
			Entry("a permission is missing", SpecTimeout(3*settle), "may not create leases.coordination.k8s.io in kube-node-lease", true,
				"delete", "rolebinding", "xylem-manager-rolebinding", "--namespace", "kube-node-lease"),
			Entry("the driver was deleted", SpecTimeout(3*settle), `"csi.xylem.io" not found`, true, "delete", "csidriver", "csi.xylem.io"),
			Entry("no manager runs", SpecTimeout(3*settle), "scaled to 0", true, "scale", "deployment/xylem-controller-manager", "--replicas=0", "--namespace", restricted),
			Entry("a manager does not start", SpecTimeout(3*settle), `serviceaccount "nobody" not found`, true, "patch", "deployment/xylem-controller-manager", "--namespace", restricted, "--patch",
				`{"spec": {"template": {"spec": {"serviceAccountName": "nobody"}}}}`),
		)

		It("can be tested with helm test, which leaves no objects behind", func(ctx SpecContext) {
			_, err := helm(ctx, "test", "xylem", "--namespace", restricted)
			Expect(err).NotTo(HaveOccurred())
			Expect(kubectl(ctx, "", "get", "pods,serviceaccounts,roles,configmaps", "--namespace", restricted, "--output", "name")).NotTo(ContainSubstring("xylem-test"))
		}, SpecTimeout(2*settle))
	})

	Describe("that the uninstall hook checks", func() {
		BeforeEach(func(ctx SpecContext) { applyHooks(ctx, "uninstall.yaml") }, NodeTimeout(settle))

		It("cannot be removed while registrations or volumes exist, and the message names them", func(ctx SpecContext) {
			var out bytes.Buffer
			checker := as("xylem-uninstall", &out)
			removable := func() error { return held(ctx, 2*time.Second, checker.CheckRemovable) }
			Eventually(ctx, removable).Should(Succeed(), out.String)

			kubectl(ctx, registration, "apply", "-f", "-")
			Expect(removable()).To(MatchError(And(ContainSubstring("cluster38"), ContainSubstring("kubectl xylem deregister"))))
			Expect(out.String()).To(ContainSubstring("Nothing was removed"))
			kubectl(ctx, "", "delete", "clusterregistration", "cluster38")
			Expect(removable()).To(Succeed())

			// Only the manager may add the finalizer.
			kubectl(ctx, waiting, "apply", "-f", "-", "--as", "system:serviceaccount:"+restricted+":xylem-controller-manager", "--as-group", "system:masters")
			Expect(removable()).To(MatchError(And(ContainSubstring("waiting"), ContainSubstring("xylem.io/abandon"))))
			forgetWaiting(ctx)
			Expect(removable()).To(Succeed())
		}, SpecTimeout(2*settle))
	})

	It("stays installed and continues to work if its uninstall hook fails", func(ctx SpecContext) {
		kubectl(ctx, registration, "apply", "-f", "-")
		install(ctx, path("charts", "xylem"), hooksFail)
		_, err := helm(ctx, "uninstall", "xylem", "--namespace", restricted)
		Expect(err).To(MatchError(ContainSubstring("xylem-uninstall")))
		Expect(kubectl(ctx, "", "get", "deployment", "--namespace", restricted, "--output", "name")).To(ContainSubstring("xylem-controller-manager"))
		_, err = helm(ctx, "upgrade", "xylem", path("charts", "xylem"), "--namespace", restricted)
		Expect(err).To(MatchError(ContainSubstring("has no deployed releases")))
		By("rolling back to the installed revision, as the README describes")
		shown, err := helm(ctx, "history", "xylem", "--namespace", restricted, "--max", "1", "--output", "json")
		Expect(err).NotTo(HaveOccurred())
		var history []struct{ Revision int }
		Expect(yaml.Unmarshal([]byte(shown), &history)).To(Succeed())
		Expect(history).To(HaveLen(1))
		values := func() string {
			GinkgoHelper()
			values, err := helm(ctx, "get", "values", "xylem", "--namespace", restricted)
			Expect(err).NotTo(HaveOccurred())
			return values
		}
		was := values()
		_, err = helm(ctx, "rollback", "xylem", strconv.Itoa(history[0].Revision), "--namespace", restricted)
		Expect(err).NotTo(HaveOccurred())
		Expect(values()).To(Equal(was))
		install(ctx, path("charts", "xylem"), hooksComplete)
	}, SpecTimeout(3*settle))

	It("can be removed with --no-hooks if the hook's Pod does not complete", func(ctx SpecContext) {
		const seconds = 3
		install(ctx, path("charts", "xylem"), "--set", "uninstall.timeoutSeconds="+strconv.Itoa(seconds))
		_, err := helm(ctx, "uninstall", "xylem", "--namespace", restricted)
		Expect(err).To(MatchError(ContainSubstring("Job/xylem-system/xylem-uninstall not ready. status: Failed")))
		Expect(kubectl(ctx, "", "describe", "job", "xylem-uninstall", "--namespace", restricted)).To(ContainSubstring("DeadlineExceeded"))
		_, err = helm(ctx, "uninstall", "xylem", "--namespace", restricted, "--no-hooks")
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, "", "delete", "job", "xylem-uninstall", "--namespace", restricted)
		install(ctx, path("charts", "xylem"), hooksComplete)
	}, SpecTimeout(3*settle))

	It("is uninstalled, except for the CRD and the registrations", func(ctx SpecContext) {
		_, err := helm(ctx, "uninstall", "xylem", "--namespace", restricted, "--wait", "--timeout", "60s")
		Expect(err).NotTo(HaveOccurred())
		kinds := "clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,services,deployments,jobs,poddisruptionbudgets,csidrivers,validatingadmissionpolicies,validatingadmissionpolicybindings,configmaps,secrets"
		Expect(kubectl(ctx, "", "get", kinds, "--all-namespaces", "--selector", "app.kubernetes.io/name=xylem", "--output", "name")).To(BeEmpty())
		Expect(kubectl(ctx, "", "get", "clusterregistrations", "--output", "name")).To(ContainSubstring("cluster38"))
		By("installing the chart again")
		install(ctx, path("charts", "xylem"), hooksComplete)
		kubectl(ctx, "", "delete", "clusterregistration", "cluster38")
		_, err = helm(ctx, "uninstall", "xylem", "--namespace", restricted, "--wait", "--timeout", "60s")
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(4*settle))

	It("of the member's chart can be installed and uninstalled", func(ctx SpecContext) {
		_, err := helm(ctx, "install", "xylem-member", path("charts", "xylem-member"), "--namespace", restricted, "--wait")
		Expect(err).NotTo(HaveOccurred())
		// The API server observes new roles with a delay.
		Eventually(ctx, func() (string, error) {
			return run(ctx, "", fleet.Kubectl(), "auth", "can-i", "create", "pods", "--all-namespaces", "--as", "system:serviceaccount:"+restricted+":xylem")
		}).Should(HavePrefix("yes"))
		_, err = helm(ctx, "uninstall", "xylem-member", "--namespace", restricted)
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(2*settle))
})
