package stories_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// attributes creates a VolumeAttributesClass in a cluster, and deletes it at the end of the story.
func attributes(ctx context.Context, c *harness.Cluster, name, driver string, parameters map[string]string) {
	GinkgoHelper()
	class := &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: name}, DriverName: driver, Parameters: parameters}
	Expect(c.API.Create(ctx, class)).To(Succeed())
	DeferCleanup(deleted(c, class), NodeTimeout(settle)) //nolint:contextcheck // A cleanup has a context of its own.
}

// deleted returns a cleanup that deletes an object in a cluster.
func deleted(c *harness.Cluster, obj client.Object) func(SpecContext) {
	return func(ctx SpecContext) { Expect(client.IgnoreNotFound(c.API.Delete(ctx, obj))).To(Succeed()) }
}

// hostAttributes creates a VolumeAttributesClass in the host, with a parameter that maps it to a
// member's class.
func hostAttributes(ctx context.Context, name, member string) {
	GinkgoHelper()
	attributes(ctx, x.Host, name, v1alpha1.ProvisionerName, map[string]string{v1alpha1.ParameterMemberAttributesClass: member})
}

// ofAttributes sets a claim's VolumeAttributesClass.
func ofAttributes(name string) claimOption {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &name }
}

// applied matches a claim whose status shows a class as applied and no change in progress.
func applied(name string) gomegatypes.GomegaMatcher {
	return And(HaveField("Status.CurrentVolumeAttributesClassName", HaveValue(Equal(name))), HaveField("Status.ModifyVolumeStatus", BeNil()))
}

// modifying matches a claim whose status shows a change to a class.
func modifying(class string, status corev1.PersistentVolumeClaimModifyVolumeStatus) gomegatypes.GomegaMatcher {
	return HaveField("Status.ModifyVolumeStatus", HaveValue(And(HaveField("TargetVolumeAttributesClassName", class), HaveField("Status", status))))
}

var _ = Describe("The VolumeAttributesClass of a claim", func() {
	change := func(ctx context.Context, s *story, to string) {
		GinkgoHelper()
		patch(ctx, x.Host, s.newClaim("data"), `{"spec":{"volumeAttributesClassName":"`+to+`"}}`)
	}
	driverOf := func(ctx context.Context) string {
		GinkgoHelper()
		var class storagev1.StorageClass
		Expect(x.Member(one).API.Get(ctx, client.ObjectKey{Name: classMirror}, &class)).To(Succeed())
		return class.Provisioner
	}
	// unmodified creates a class in a member, and a running Pod whose claim does not use the class.
	unmodified := func(ctx context.Context, s *story) (class string) {
		GinkgoHelper()
		class = s.namespace + "-gold"
		attributes(ctx, x.Member(one), class, driverOf(ctx), map[string]string{"iops": "1"})
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app")
		return class
	}

	It("is selected, changed, and shown with the host's names", func(ctx SpecContext) {
		s := begin(ctx)
		gold, silver := s.namespace+"-gold", s.namespace+"-silver"
		for _, name := range []string{"a-" + gold, "a-" + silver} {
			attributes(ctx, x.Member(one), name, driverOf(ctx), map[string]string{"iops": name})
		}
		hostAttributes(ctx, gold, "a-"+gold)
		hostAttributes(ctx, silver, "a-"+silver)
		s.claim(ctx, "data", ofAttributes(gold))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app")
		claim := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", applied(gold))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", applied("a-"+gold))

		change(ctx, s, silver)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", applied(silver))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", applied("a-"+silver))
		until[corev1.PersistentVolume](ctx, s, x.Host, claim.Spec.VolumeName, HaveField("Spec.VolumeAttributesClassName", HaveValue(Equal(silver))))
		s.noted(ctx, "PersistentVolumeClaim", "data", "ModificationPushed", one, "a-"+silver)
		Expect(s.book(one, "data").Calls(ledger.ModifyVolume)).To(Equal(1))
	}, SpecTimeout(storyTime))

	It("can be set on a claim that had none, even if the host lacks the class", func(ctx SpecContext) {
		s := begin(ctx)
		class := unmodified(ctx, s)
		change(ctx, s, class)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", applied(class))
	}, SpecTimeout(storyTime))

	It("is changed although the member rejects an expansion of the claim, which the user cannot undo", func(ctx SpecContext) {
		s := begin(ctx)
		class := unmodified(ctx, s)
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "full"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsStorage: resource.MustParse("1Gi")}},
		}
		inMember(ctx, x.Member(one), quota)
		until[corev1.ResourceQuota](ctx, s, x.Member(one), quota.Name, HaveField("Status.Used", HaveKey(corev1.ResourceRequestsStorage)))
		patch(ctx, x.Host, s.newClaim("data"), `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
		s.shown(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonRefusedByMember, one, "exceeded quota")
		unexpanded := And(
			HaveField("Status.AllocatedResourceStatuses", HaveKeyWithValue(corev1.ResourceStorage, corev1.PersistentVolumeClaimControllerResizeInfeasible)),
			HaveField("Status.Conditions", ContainElement(And(HaveField("Type", corev1.PersistentVolumeClaimControllerResizeError), HaveField("Message", ContainSubstring("exceeded quota"))))))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", unexpanded)
		change(ctx, s, class)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(applied(class), unexpanded))
		s.shown(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonRefusedByMember, one, "exceeded quota")
	}, SpecTimeout(storyTime))

	It("is reported if the driver does not support the change, and the user can cancel the change", func(ctx SpecContext) {
		s := begin(ctx)
		gold, lead := s.namespace+"-gold", s.namespace+"-lead"
		for _, name := range []string{gold, lead} {
			attributes(ctx, x.Member(one), "a-"+name, driverOf(ctx), map[string]string{"iops": name})
			hostAttributes(ctx, name, "a-"+name)
		}
		s.claim(ctx, "data", ofAttributes(gold))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", applied(gold))
		infeasible()
		change(ctx, s, lead)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(
			HaveField("Status.CurrentVolumeAttributesClassName", HaveValue(Equal(gold))),
			modifying(lead, corev1.PersistentVolumeClaimModifyVolumeInfeasible),
			HaveField("Status.Conditions", ContainElement(And(HaveField("Type", corev1.PersistentVolumeClaimVolumeModifyVolumeError), HaveField("Message", ContainSubstring(noSuchAttributes))))),
		))
		Expect(x.Fleet.Member(one).SetFaults()).To(Succeed())
		change(ctx, s, gold)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", HaveField("Spec.VolumeAttributesClassName", HaveValue(Equal("a-"+gold))))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", applied(gold))
	}, SpecTimeout(storyTime))

	It("is reported if the member lacks the class, and is applied when the class exists", func(ctx SpecContext) {
		s := begin(ctx)
		class := s.namespace + "-gold"
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app")
		By("selecting a class that only the host has, which fails, as a class fails that the driver rejects")
		hostAttributes(ctx, s.namespace+"-lead", "a-"+s.namespace+"-lead")
		change(ctx, s, s.namespace+"-lead")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(
			modifying(s.namespace+"-lead", corev1.PersistentVolumeClaimModifyVolumeInfeasible),
			HaveField("Status.Conditions", ContainElement(HaveField("Type", corev1.PersistentVolumeClaimVolumeModifyVolumeError)))))
		By("selecting a class that no cluster has")
		change(ctx, s, class)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(
			modifying(class, corev1.PersistentVolumeClaimModifyVolumePending),
			Not(HaveField("Status.Conditions", ContainElement(HaveField("Type", corev1.PersistentVolumeClaimVolumeModifyVolumeError)))),
			tells("AttributesClassNotFound", class, one, "spec.storage.attributesClasses")))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", HaveField("Spec.VolumeAttributesClassName", BeNil()))
		attributes(ctx, x.Member(one), class, driverOf(ctx), map[string]string{"iops": "1"})
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(applied(class), Not(tells("AttributesClassNotFound"))))
	}, SpecTimeout(2*storyTime))

	It("is reported if it belongs to another driver in either cluster, and no volume is created with it", func(ctx SpecContext) {
		s := begin(ctx)
		foreign, elsewhere := s.namespace+"-foreign", s.namespace+"-elsewhere"
		attributes(ctx, x.Host, foreign, "host.example.com", map[string]string{"iops": "1"})
		attributes(ctx, x.Member(one), elsewhere, "other.example.com", map[string]string{"iops": "1"})
		s.claim(ctx, "data", ofAttributes(foreign))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells("AttributesClassMismatch", foreign, "host.example.com", v1alpha1.ProvisionerName))
		s.claim(ctx, "more", ofAttributes(elsewhere))
		s.pod(ctx, "more", using("more"), on(nodeOne))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "more", tells("AttributesClassMismatch", elsewhere, one, "other.example.com"))
		s.barrier(ctx, nodeOne)
		for _, claim := range []string{"data", "more"} {
			Expect(s.book(one, claim).Calls(ledger.CreateVolume)).To(BeZero())
		}
	}, SpecTimeout(storyTime))

	It("is reported if the claim has none, but the member's admin has set one on the leaf claim", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := unmodified(ctx, s)
		By("stopping the manager, which would cancel a change that the member's resizer has not started")
		Expect(x.Manager.Stop()).To(Succeed())
		DeferCleanup(x.Manager.Start)
		patch(ctx, x.Member(one), s.newClaim("data"), `{"spec":{"volumeAttributesClassName":"`+class+`"}}`)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", applied(class))
		Expect(x.Manager.Start(ctx)).To(Succeed())
		s.shown(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonModifyUnsupported, class, one, "Set volumeAttributesClassName")

		change(ctx, s, class)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(applied(class), Not(tells(v1alpha1.ReasonModifyUnsupported))))
	}, SpecTimeout(storyTime))

	It("counts against a quota for its name in the host", func(ctx SpecContext) {
		s := begin(ctx)
		gold, silver := s.namespace+"-gold", s.namespace+"-silver"
		for _, name := range []string{gold, silver} {
			attributes(ctx, x.Member(one), "a-"+name, driverOf(ctx), map[string]string{"iops": name})
			hostAttributes(ctx, name, "a-"+name)
		}
		s.claim(ctx, "data", ofAttributes(gold))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app")
		change(ctx, s, silver)
		claim := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", applied(silver))
		Expect([]string{ptr.Deref(claim.Spec.VolumeAttributesClassName, ""), *claim.Status.CurrentVolumeAttributesClassName}).To(HaveEach(silver))
		Expect(x.Host.API.Create(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "silver"}, Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("5")},
			ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
				ScopeName: corev1.ResourceQuotaScopeVolumeAttributesClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{silver},
			}}},
		}})).To(Succeed())
		until[corev1.ResourceQuota](ctx, s, x.Host, "silver", WithTransform(func(q *corev1.ResourceQuota) int64 {
			return q.Status.Used.Name(corev1.ResourcePersistentVolumeClaims, resource.DecimalSI).Value()
		}, BeEquivalentTo(1)))
	}, SpecTimeout(storyTime))
})

// noSuchAttributes is the driver's error for unsupported attributes.
const noSuchAttributes = "no such attributes"

// infeasible makes member one's driver permanently reject all changes to attributes.
func infeasible() {
	GinkgoHelper()
	Expect(x.Fleet.Member(one).SetFaults(csidriver.Fault{Method: ledger.ModifyVolume, Code: codes.InvalidArgument, Message: noSuchAttributes})).To(Succeed())
	DeferCleanup(func() { Expect(x.Fleet.Member(one).SetFaults()).To(Succeed()) })
}
