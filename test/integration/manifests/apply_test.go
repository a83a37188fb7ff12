package manifests_test

import (
	"encoding/json"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

var _ = Describe("config/default", func() {
	It("can be applied again", func(ctx SpecContext) {
		out := kubectl(ctx, fleet.Host, "apply", "--server-side", "-k", path("config", "default"))
		Expect(out).To(ContainSubstring("serverside-applied"))
	}, SpecTimeout(settle))

	It("registers the CSIDriver, although no driver with this name runs", func(ctx SpecContext) {
		var driver storagev1.CSIDriver
		Expect(admin.Get(ctx, client.ObjectKey{Name: v1alpha1.ProvisionerName}, &driver)).To(Succeed())
		Expect(*driver.Spec.AttachRequired).To(BeFalse())
		Expect(*driver.Spec.PodInfoOnMount).To(BeFalse())
		Expect(*driver.Spec.StorageCapacity).To(BeTrue())
	}, SpecTimeout(settle))

	DescribeTable("has policies with valid expressions", func(ctx SpecContext, name string) {
		Eventually(ctx, func(g Gomega) {
			var policy admissionv1.ValidatingAdmissionPolicy
			g.Expect(admin.Get(ctx, client.ObjectKey{Name: name}, &policy)).To(Succeed())
			g.Expect(policy.Status.ObservedGeneration).To(Equal(policy.Generation))
			g.Expect(policy.Status.TypeChecking).NotTo(BeNil())
			g.Expect(policy.Status.TypeChecking.ExpressionWarnings).To(BeEmpty())
		}).Should(Succeed())
	},
		Entry(nil, SpecTimeout(settle), "xylem-reserved-keys"),
		Entry(nil, SpecTimeout(settle), "xylem-reflected-classes"),
		Entry(nil, SpecTimeout(settle), "xylem-static-volumes"),
		Entry(nil, SpecTimeout(settle), "xylem-claim-classes"),
		Entry(nil, SpecTimeout(settle), "xylem-namespaces"),
		Entry(nil, SpecTimeout(settle), "xylem-manager"),
	)

	It("creates Pods that comply with the Pod Security Standard \"restricted\"", func(ctx SpecContext) {
		var deployment appsv1.Deployment
		key := client.ObjectKey{Namespace: v1alpha1.DefaultNamespace, Name: "xylem-controller-manager"}
		Expect(admin.Get(ctx, key, &deployment)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			var pods corev1.PodList
			g.Expect(admin.List(ctx, &pods, client.InNamespace(key.Namespace),
				client.MatchingLabels(deployment.Spec.Selector.MatchLabels))).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(int(*deployment.Spec.Replicas)))
		}).Should(Succeed())
	}, SpecTimeout(settle))

	DescribeTable("binds its roles to existing accounts", func(ctx SpecContext, cluster, account string) {
		cl := fleet.Host
		if cluster != "host" {
			cl = fleet.Member(cluster)
		}
		var list rbacv1.ClusterRoleBindingList
		Expect(json.Unmarshal([]byte(kubectl(ctx, cl, "get", "clusterrolebindings", "-o", "json",
			"-l", "app.kubernetes.io/name=xylem")), &list)).To(Succeed())
		Expect(list.Items).NotTo(BeEmpty())
		for _, b := range list.Items {
			kubectl(ctx, cl, "get", "clusterrole", b.RoleRef.Name)
			Expect(b.Subjects).To(HaveLen(1))
			Expect(b.Subjects[0].Name).To(Equal(account))
			kubectl(ctx, cl, "-n", b.Subjects[0].Namespace, "get", "serviceaccount", account)
		}
	},
		Entry("in the host", SpecTimeout(settle), "host", "xylem-controller-manager"),
		Entry("in a member", SpecTimeout(settle), "member", "xylem"),
	)
})

var _ = Describe("config/member", func() {
	DescribeTable("allows only what the manager needs", func(ctx SpecContext, allowed bool, what string) {
		member := fleet.Member("member")
		args := append([]string{"auth", "can-i", "--as", "system:serviceaccount:xylem-system:xylem"}, strings.Fields(what)...)
		if allowed { // the API server observes new roles with a delay
			Eventually(ctx, func() string { return canI(ctx, member.KubeconfigPath(), args) }).Should(Equal("yes"), what)
			return
		}
		Expect(canI(ctx, member.KubeconfigPath(), args)).To(Equal("no"), what)
	},
		Entry(nil, SpecTimeout(settle), true, "create pods -n any"),
		Entry(nil, SpecTimeout(settle), true, "patch persistentvolumes"),
		Entry(nil, SpecTimeout(settle), true, "patch leases.coordination.k8s.io -n xylem-system"),
		Entry(nil, SpecTimeout(settle), false, "patch leases.coordination.k8s.io -n any"),
		Entry(nil, SpecTimeout(settle), false, "delete leases.coordination.k8s.io -n xylem-system"),
		Entry(nil, SpecTimeout(settle), false, "delete persistentvolumes"),
		Entry(nil, SpecTimeout(settle), false, "create persistentvolumes"),
		Entry(nil, SpecTimeout(settle), false, "update pods -n any --subresource=status"),
		Entry(nil, SpecTimeout(settle), false, "create pods -n any --subresource=exec"),
		Entry(nil, SpecTimeout(settle), false, "update persistentvolumeclaims -n any"),
		Entry(nil, SpecTimeout(settle), false, "patch nodes"),
		Entry(nil, SpecTimeout(settle), false, "create serviceaccounts -n any"),
		Entry(nil, SpecTimeout(settle), false, "create clusterroles.rbac.authorization.k8s.io"),
		Entry(nil, SpecTimeout(settle), false, "impersonate users"),
	)
})

var _ = Describe("config/samples", func() {
	It("can be applied file by file, with strict validation", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, fleet.Host, "delete", "--ignore-not-found", "-k", path("config", "samples"))
		}, NodeTimeout(2*settle))
		var samples struct{ Resources []string }
		content, err := os.ReadFile(path("config", "samples", "kustomization.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(yaml.Unmarshal(content, &samples)).To(Succeed())
		Expect(len(samples.Resources)).To(BeNumerically(">=", 4))
		for _, file := range samples.Resources {
			kubectl(ctx, fleet.Host, "apply", "--validate=strict", "-f", path("config", "samples", file))
		}
		var r v1alpha1.ClusterRegistration
		Expect(admin.Get(ctx, client.ObjectKey{Name: "cluster38"}, &r)).To(Succeed())
		Expect(r.NodeName()).To(Equal("kosmos-cluster38"))

		By("creating the claims, including those of the StatefulSet's replicas")
		Eventually(ctx, func(g Gomega) {
			var claims corev1.PersistentVolumeClaimList
			g.Expect(admin.List(ctx, &claims, client.InNamespace("test-new"))).To(Succeed())
			g.Expect(claims.Items).To(HaveLen(4))
		}).Should(Succeed())

		By("checking that their Pods do not fit on plain nodes")
		Eventually(ctx, func(g Gomega) {
			var pods corev1.PodList
			g.Expect(admin.List(ctx, &pods, client.InNamespace("test-new"))).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(4))
			for _, p := range pods.Items {
				g.Expect(p.Spec.NodeName).To(BeEmpty())
				g.Expect(p.Status.Conditions).To(ContainElement(And(
					HaveField("Type", corev1.PodScheduled), HaveField("Status", corev1.ConditionFalse))))
			}
		}).Should(Succeed())
	}, SpecTimeout(2*settle))
})
