package manifests_test

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

var _ = Describe("config/keys", Ordered, func() {
	var (
		namespace       string
		manager, tenant client.Client
	)
	// exported returns an object with keys that an object of this host or another one may have.
	exported := func(o client.Object) client.Object {
		o.SetAnnotations(map[string]string{v1alpha1.AnnotationPlacedIn: "another", v1alpha1.AttributeLeafUID: "x", "example.com/note": "a"})
		o.SetLabels(map[string]string{"example.com/note": "a"})
		switch o.(type) {
		case *snapshotv1.VolumeSnapshotContent:
			o.SetLabels(map[string]string{v1alpha1.LabelHost: "another", "example.com/note": "a"})
		case *corev1.PersistentVolume:
			o.SetLabels(map[string]string{v1alpha1.LabelClusterID: "another", v1alpha1.LabelBackendPrefix + "nfs": "", "example.com/note": "a"})
			o.SetFinalizers([]string{"kubernetes.io/pv-protection", v1alpha1.FinalizerLeafVolume, v1alpha1.FinalizerCopyPrefix + "another"})
		}
		return o
	}

	BeforeAll(func(ctx SpecContext) {
		manager, tenant = as(managerAccount), as("tenant")
		Expect(fleet.Host.InstallSnapshotCRDs(ctx)).To(Succeed())
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: unique("keys")}}
		Expect(admin.Create(ctx, ns)).To(Succeed())
		namespace = ns.Name
		Eventually(ctx, func(ctx context.Context) error {
			return admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
		}).Should(Succeed())
		kubectl(ctx, fleet.Host, "apply", "--server-side", "-k", path("config", "keys"))
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, fleet.Host, "delete", "-k", path("config", "keys"))
			Expect(admin.Delete(ctx, ns)).To(Succeed())
		}, NodeTimeout(settle))
		Eventually(ctx, func(ctx context.Context) error {
			return tenant.Create(ctx, exported(claim(namespace)), client.DryRunAll)
		}).Should(Succeed())
		Eventually(ctx, func(ctx context.Context) error {
			return tenant.Create(ctx, exported(hostContent()), client.DryRunAll)
		}).Should(Succeed())
	}, NodeTimeout(settle))

	It("removes Xylem's keys from a new claim, Pod, volume or VolumeSnapshotContent, so that they have no effect (I8)", func(ctx SpecContext) {
		for _, o := range []client.Object{exported(claim(namespace)), exported(pod(namespace)), exported(volume(unique("exported"))), exported(hostContent())} {
			Expect(tenant.Create(ctx, o, client.DryRunAll)).To(Succeed())
			Expect(o.GetAnnotations()).To(Equal(map[string]string{"example.com/note": "a"}), "%T", o)
			Expect(o.GetLabels()).To(Equal(map[string]string{"example.com/note": "a"}), "%T", o)
			Expect(o.GetFinalizers()).NotTo(ContainElement(ContainSubstring("xylem.io/")), "%T", o)
		}
	}, SpecTimeout(settle))

	DescribeTable("leaves all other keys to the policy in config/policy, which rejects them", func(ctx SpecContext, who string, object func() client.Object) {
		Expect(as(who).Create(ctx, object(), client.DryRunAll)).To(MatchError(ContainSubstring("only Xylem may")))
	},
		Entry("of a node", SpecTimeout(settle), "tenant", func() client.Object { return exported(node("new")) }),
		Entry("a label of a Pod, which its ReplicaSet may select", SpecTimeout(settle), "tenant", func() client.Object {
			o := pod(namespace)
			o.SetLabels(map[string]string{v1alpha1.LabelClusterID: "another"})
			return o
		}),
		Entry("of a promise", SpecTimeout(settle), "tenant", func() client.Object {
			o := exported(volume("new"))
			annotate(v1alpha1.AnnotationMockPV, "true")(o)
			return o
		}),
		Entry("a finalizer of a claim", SpecTimeout(settle), "tenant", func() client.Object {
			o := claim(namespace)
			o.SetFinalizers([]string{v1alpha1.FinalizerLeafVolume})
			return o
		}),
		Entry("of a leaf that Xylem creates in a cluster that is also a member", SpecTimeout(settle), "system:serviceaccount:xylem-system:xylem",
			func() client.Object { return exported(pod(namespace)) }),
	)

	It("keeps the keys that a PUT omits, even if Xylem wrote them after the user had read the object", func(ctx SpecContext) {
		waiting := pod(namespace)
		waiting.Spec.SchedulerName = "nobody"
		for _, o := range []client.Object{claim(namespace), waiting, hostContent()} {
			o.SetName("kept")
			Expect(tenant.Create(ctx, o)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				Expect(admin.Delete(ctx, o, client.GracePeriodSeconds(0))).To(Succeed())
			}, NodeTimeout(settle))
			placed := o.DeepCopyObject().(client.Object)
			annotate(v1alpha1.AnnotationPlacedIn, "member")(placed)
			Expect(manager.Patch(ctx, placed, client.MergeFrom(o))).To(Succeed())

			_, custom := o.(*snapshotv1.VolumeSnapshotContent)
			for _, keys := range []map[string]string{nil, {"example.com/note": "a"}} {
				put := o.DeepCopyObject().(client.Object)
				put.SetResourceVersion("")
				if custom { // the API server requires it
					put.SetResourceVersion(placed.GetResourceVersion())
				}
				put.SetAnnotations(keys)
				Expect(tenant.Update(ctx, put)).To(Succeed(), "%T", o)
				Expect(put.GetAnnotations()).To(Equal(with(keys, v1alpha1.AnnotationPlacedIn, "member")), "%T", o)
				placed = put
			}
			Expect(changed(ctx, tenant, false, placed, annotate(v1alpha1.AnnotationPlacedIn, "another"))).To(MatchError(ContainSubstring("only Xylem may write")))
			if !custom { // the API server ignores metadata in writes to its status
				Expect(changed(ctx, tenant, true, placed, annotate(v1alpha1.AnnotationPlacedIn, ""))).To(MatchError(ContainSubstring("only Xylem may write")))
			}
			Expect(changed(ctx, manager, false, placed, annotate(v1alpha1.AnnotationPlacedIn, ""))).To(Succeed())
		}
	}, SpecTimeout(settle))

	It("lets an admin set and remove xylem.io/abandon", func(ctx SpecContext) {
		content := hostContent()
		Expect(tenant.Create(ctx, content)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, content)).To(Succeed()) }, NodeTimeout(settle))
		for _, value := range []string{"true", ""} {
			next := content.DeepCopyObject().(client.Object)
			annotate(v1alpha1.AnnotationAbandon, value)(next)
			Expect(tenant.Patch(ctx, next, client.MergeFrom(content))).To(Succeed())
			Expect(next.GetAnnotations()[v1alpha1.AnnotationAbandon]).To(Equal(value))
			content = next
		}
	}, SpecTimeout(settle))
})
