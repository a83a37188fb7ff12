package manifests_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func claim(namespace string) *corev1.PersistentVolumeClaim {
	class := "some-class"
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "claim"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
}

func volume(name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              "some-class",
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: v1alpha1.ProvisionerName, VolumeHandle: "member/" + name,
			}},
			NodeAffinity: inCluster("member"),
		},
	}
}

// inCluster returns the nodeAffinity of a member's volume.
func inCluster(id string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.LabelClusterID, Operator: corev1.NodeSelectorOpIn, Values: []string{id}}},
	}}}}
}

func pod(namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example/main"}}},
	}
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// annotate and label set or, with an empty value, remove a key.
func annotate(key, value string) func(client.Object) {
	return func(o client.Object) { o.SetAnnotations(with(o.GetAnnotations(), key, value)) }
}

func label(key, value string) func(client.Object) {
	return func(o client.Object) { o.SetLabels(with(o.GetLabels(), key, value)) }
}

func with(m map[string]string, key, value string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = v
	}
	if out[key] = value; value == "" {
		delete(out, key)
	}
	return out
}

// changed patches a changed copy of an object, either the main resource or the status.
func changed(ctx context.Context, c client.Client, status bool, o client.Object, change func(client.Object)) error {
	next := o.DeepCopyObject().(client.Object)
	change(next)
	if status {
		return c.Status().Patch(ctx, next, client.MergeFrom(o))
	}
	return c.Patch(ctx, next, client.MergeFrom(o))
}

var _ = Describe("The policy on reserved keys", Ordered, func() {
	var (
		namespace string
		manager   client.Client
		tenant    client.Client
		// stamped contains objects that the manager created with Xylem's keys, by kind.
		stamped map[string]client.Object
	)

	BeforeAll(func(ctx SpecContext) {
		manager, tenant = as(managerAccount), as("tenant")
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: unique("policy")}}
		Expect(admin.Create(ctx, ns)).To(Succeed())
		namespace = ns.Name
		Eventually(ctx, func(ctx context.Context) error {
			return admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
		}).Should(Succeed())

		By("waiting until the policy is in force")
		probe := claim(namespace)
		annotate(v1alpha1.AnnotationPlacedIn, "x")(probe)
		Eventually(ctx, func(ctx context.Context) error {
			return tenant.Create(ctx, probe.DeepCopy(), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("only Xylem may write")))

		stamped = map[string]client.Object{
			"claim": claim(namespace), "volume": volume(unique("stamped")),
			"pod": pod(namespace), "node": node(unique("stamped")),
		}
		for _, o := range stamped {
			annotate(v1alpha1.AnnotationPlacedIn, "member-id")(o)
			label(v1alpha1.LabelCluster, "member")(o)
			if _, isNode := o.(*corev1.Node); isNode {
				label(v1alpha1.LabelVirtualNode, "true")(o)
				label(v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)(o)
			}
			Expect(manager.Create(ctx, o)).To(Succeed())
		}
		DeferCleanup(func(ctx SpecContext) {
			for _, o := range stamped {
				Expect(client.IgnoreNotFound(admin.Delete(ctx, o, client.GracePeriodSeconds(0)))).To(Succeed())
			}
			Expect(admin.Delete(ctx, ns)).To(Succeed())
		}, NodeTimeout(settle))
	}, NodeTimeout(settle))

	// fresh reads the current state of one of the stamped objects.
	fresh := func(ctx context.Context, kind string) client.Object {
		GinkgoHelper()
		o := stamped[kind].DeepCopyObject().(client.Object)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		return o
	}

	kinds := []string{"claim", "volume", "pod", "node"}

	It("rejects a user's new objects with reserved keys, and names the keys, and for exported claims and volumes how to remove them", func(ctx SpecContext) {
		advice := ContainSubstring("To create an exported object again, remove them from its manifest")
		for o, advised := range map[client.Object]gomegatypes.GomegaMatcher{claim(namespace): advice, volume("new"): advice, pod(namespace): Not(advice), node("new"): Not(advice)} {
			for _, stamp := range []func(client.Object){
				annotate(v1alpha1.AnnotationRootUID, "x"), label(v1alpha1.LabelHost, "x"),
			} {
				next := o.DeepCopyObject().(client.Object)
				stamp(next)
				next.SetName("new")
				err := tenant.Create(ctx, next, client.DryRunAll)
				Expect(err).To(MatchError(And(
					ContainSubstring("only Xylem may write"), advised,
					Or(ContainSubstring(v1alpha1.AnnotationRootUID), ContainSubstring(v1alpha1.LabelHost)))))
			}
		}
	}, SpecTimeout(settle))

	It("allows a user to create a Pod from another Pod's manifest, but not to bind a Pod with reserved keys", func(ctx SpecContext) {
		reported := annotate(v1alpha1.AnnotationReportedBy, "member-id")
		next := pod(namespace)
		next.SetName("again")
		reported(next)
		annotate(v1alpha1.AnnotationLeafUID, "leaf-uid")(next)
		Expect(tenant.Create(ctx, next, client.DryRunAll)).To(Succeed())
		Expect(tenant.Create(ctx, func() client.Object {
			c := claim(namespace)
			reported(c)
			return c
		}(), client.DryRunAll)).To(MatchError(ContainSubstring(v1alpha1.AnnotationReportedBy)), "the policy must reject a claim with this key")
		for _, status := range []bool{false, true} {
			Expect(changed(ctx, tenant, status, fresh(ctx, "pod"), reported)).To(MatchError(ContainSubstring(v1alpha1.AnnotationReportedBy)))
		}
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "some-node"}}
		reported(binding)
		Expect(tenant.SubResource("binding").Create(ctx, fresh(ctx, "pod"), binding)).To(MatchError(ContainSubstring(v1alpha1.AnnotationReportedBy)))
	}, SpecTimeout(settle))

	It("prevents users from adding, changing and removing reserved keys, also through the status", func(ctx SpecContext) {
		for _, kind := range kinds {
			for what, change := range map[string]func(client.Object){
				"adding an annotation":   annotate(v1alpha1.AnnotationRoot, "a/b"),
				"changing an annotation": annotate(v1alpha1.AnnotationPlacedIn, "another"),
				"removing an annotation": annotate(v1alpha1.AnnotationPlacedIn, ""),
				"adding a label":         label(v1alpha1.LabelClusterID, "another"),
				"changing a label":       label(v1alpha1.LabelCluster, "another"),
				"removing a label":       label(v1alpha1.LabelCluster, ""),
			} {
				for _, status := range []bool{false, true} {
					err := changed(ctx, tenant, status, fresh(ctx, kind), change)
					Expect(err).To(MatchError(ContainSubstring("only Xylem may write")), "%s on a %s, status: %t", what, kind, status)
				}
			}
			Expect(changed(ctx, tenant, false, fresh(ctx, kind), func(o client.Object) {
				o.SetAnnotations(nil)
				o.SetLabels(nil)
			})).To(MatchError(ContainSubstring("only Xylem may write")), "removing all keys of a %s", kind)
		}
	}, SpecTimeout(settle))

	It("allows users to make all other changes to the same objects", func(ctx SpecContext) {
		for _, kind := range kinds {
			for _, change := range []func(client.Object){
				annotate("example.com/note", "a"), label("example.com/note", "a"),
				annotate("example.com/note", ""), label("example.com/note", ""),
				label("notxylem.io/cluster", "a"),
			} {
				Expect(changed(ctx, tenant, false, fresh(ctx, kind), change)).To(Succeed(), kind)
			}
		}
		Expect(changed(ctx, tenant, false, fresh(ctx, "node"), func(o client.Object) {
			o.(*corev1.Node).Spec.Unschedulable = true
		})).To(Succeed(), "cordon")
	}, SpecTimeout(settle))

	It("allows the manager to write reserved keys, and an admin to abandon a volume", func(ctx SpecContext) {
		for _, kind := range kinds {
			Expect(changed(ctx, manager, false, fresh(ctx, kind), annotate(v1alpha1.AnnotationRoot, "a/b"))).To(Succeed())
			Expect(changed(ctx, manager, false, fresh(ctx, kind), annotate(v1alpha1.AnnotationRoot, ""))).To(Succeed())
		}
		Expect(changed(ctx, admin, false, fresh(ctx, "volume"), annotate(v1alpha1.AnnotationAbandon, "true"))).To(Succeed())
		Expect(changed(ctx, admin, false, fresh(ctx, "volume"), annotate(v1alpha1.AnnotationAbandon, ""))).To(Succeed())
		for _, kind := range []string{"claim", "pod", "node"} {
			Expect(changed(ctx, admin, false, fresh(ctx, kind), annotate(v1alpha1.AnnotationAbandon, "true"))).
				To(MatchError(ContainSubstring("only Xylem may write")), kind)
		}
	}, SpecTimeout(settle))

	It("reserves Xylem's conditions, the promise annotation and Xylem's finalizers for the manager, but lets an admin remove the finalizers", func(ctx SpecContext) {
		held := func(o client.Object) { o.SetFinalizers(append(o.GetFinalizers(), v1alpha1.Prefix+"another")) }
		bare := func(o client.Object) {
			o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == v1alpha1.FinalizerLeafVolume }))
		}
		Expect(changed(ctx, admin, false, fresh(ctx, "volume"), held)).To(MatchError(ContainSubstring("finalizers under xylem.io/")))
		Expect(changed(ctx, manager, false, fresh(ctx, "volume"), held)).To(Succeed())
		for _, who := range []client.Client{manager, admin} {
			Expect(changed(ctx, who, false, fresh(ctx, "volume"), bare)).To(Succeed())
		}
		Expect(changed(ctx, admin, false, fresh(ctx, "volume"), annotate(v1alpha1.AnnotationMockPV, "true"))).To(MatchError(ContainSubstring("mock-pv")))

		pushed := func(status corev1.ConditionStatus) func(client.Object) {
			return func(o client.Object) {
				p := o.(*corev1.Pod)
				p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1alpha1.PodPushed })
				if status != "" {
					p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: v1alpha1.PodPushed, Status: status})
				}
			}
		}
		refused := MatchError(ContainSubstring("conditions under xylem.io/"))
		Expect(changed(ctx, tenant, true, fresh(ctx, "pod"), pushed(corev1.ConditionTrue))).To(refused)
		Expect(changed(ctx, manager, true, fresh(ctx, "pod"), pushed(corev1.ConditionTrue))).To(Succeed())
		Expect(changed(ctx, tenant, true, fresh(ctx, "pod"), pushed(corev1.ConditionFalse))).To(refused)
		Expect(changed(ctx, tenant, true, fresh(ctx, "pod"), pushed(""))).To(refused)
		placed := func(o client.Object) {
			c := o.(*corev1.PersistentVolumeClaim)
			c.Status.Conditions = append(c.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse})
		}
		Expect(changed(ctx, tenant, true, fresh(ctx, "claim"), placed)).To(refused)
		Expect(changed(ctx, manager, true, fresh(ctx, "claim"), placed)).To(Succeed())
	}, SpecTimeout(settle))

	It("does not block Kubernetes' own controllers", func(ctx SpecContext) {
		By("binding a stamped claim to a stamped volume")
		pv := fresh(ctx, "volume").(*corev1.PersistentVolume)
		pv.Spec.ClaimRef = &corev1.ObjectReference{
			Namespace: namespace, Name: "claim", UID: fresh(ctx, "claim").GetUID(),
		}
		wait := storagev1.VolumeBindingWaitForFirstConsumer
		class := &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: "some-class"}, Provisioner: v1alpha1.ProvisionerName, VolumeBindingMode: &wait,
		}
		Expect(admin.Create(ctx, class)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, class)).To(Succeed()) }, NodeTimeout(settle))
		Expect(admin.Update(ctx, pv)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) corev1.PersistentVolumeClaimPhase {
			return fresh(ctx, "claim").(*corev1.PersistentVolumeClaim).Status.Phase
		}).Should(Equal(corev1.ClaimBound))

		By("scheduling and running a stamped Pod")
		Eventually(ctx, func(ctx context.Context) corev1.PodPhase {
			return fresh(ctx, "pod").(*corev1.Pod).Status.Phase
		}).Should(Equal(corev1.PodRunning))

		By("letting a tenant delete the claim and the Pod")
		for _, kind := range []string{"pod", "claim"} {
			o := fresh(ctx, kind)
			Expect(tenant.Delete(ctx, o)).To(Succeed())
			Eventually(ctx, func(ctx context.Context) error {
				return client.IgnoreNotFound(admin.Get(ctx, client.ObjectKeyFromObject(o), o))
			}).Should(Succeed())
		}
		Eventually(ctx, func(ctx context.Context) corev1.PersistentVolumePhase {
			return fresh(ctx, "volume").(*corev1.PersistentVolume).Status.Phase
		}).Should(Equal(corev1.VolumeReleased))
	}, SpecTimeout(settle))
})

var _ = Describe("The policy on PersistentVolumes that admins create", func() {
	DescribeTable("requires the volumeHandle and the nodeAffinity to name the same member",
		func(ctx SpecContext, change func(*corev1.PersistentVolume), complaint string) {
			pv := volume(unique("static"))
			change(pv)
			create := func(ctx context.Context) error { return admin.Create(ctx, pv.DeepCopy(), client.DryRunAll) }
			if complaint == "" {
				Expect(create(ctx)).To(Succeed())
				return
			}
			Eventually(ctx, create).Should(MatchError(ContainSubstring(complaint))) // once the policy is in force
		},
		Entry("both", SpecTimeout(settle), func(*corev1.PersistentVolume) {}, ""),
		Entry("another driver", SpecTimeout(settle), func(p *corev1.PersistentVolume) { p.Spec.CSI.Driver, p.Spec.NodeAffinity = "disk.example.com", nil }, ""),
		Entry("no nodeAffinity", SpecTimeout(settle), func(p *corev1.PersistentVolume) { p.Spec.NodeAffinity = nil }, "Set spec.nodeAffinity.required"),
		Entry("the nodeAffinity of another member", SpecTimeout(settle), func(p *corev1.PersistentVolume) { p.Spec.NodeAffinity = inCluster("another") }, "values [member]"),
		Entry("a nodeAffinity with another label", SpecTimeout(settle), func(p *corev1.PersistentVolume) {
			p.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Key = "kubernetes.io/hostname"
		}, "key xylem.io/cluster-id"),
		Entry("two alternative terms", SpecTimeout(settle), func(p *corev1.PersistentVolume) {
			terms := &p.Spec.NodeAffinity.Required.NodeSelectorTerms
			*terms = append(*terms, inCluster("another").Required.NodeSelectorTerms...)
		}, "one term with one expression"),
		Entry("a handle without a member", SpecTimeout(settle), func(p *corev1.PersistentVolume) { p.Spec.CSI.VolumeHandle = "disk" }, "the handle of a volume of csi.xylem.io"),
		Entry("a handle with three parts", SpecTimeout(settle), func(p *corev1.PersistentVolume) { p.Spec.CSI.VolumeHandle = "member/a/b" }, "the handle of a volume of csi.xylem.io"),
	)
})
