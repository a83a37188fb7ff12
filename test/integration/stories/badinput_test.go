package stories_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// inMember creates an object in a member as the member's admin, and deletes it at the end of the
// story if it still exists.
func inMember(ctx context.Context, m *harness.Cluster, obj client.Object) {
	GinkgoHelper()
	Expect(m.API.Create(ctx, obj)).To(Succeed())
	DeferCleanup(remove, m, obj, NodeTimeout(settle))
}

func remove(ctx SpecContext, c *harness.Cluster, obj client.Object) {
	Expect(client.IgnoreNotFound(c.API.Delete(ctx, obj, client.GracePeriodSeconds(0)))).To(Succeed())
}

// strange creates a foreign namespace with the story's name in a member.
func (s *story) strange(ctx context.Context, m *harness.Cluster, labels map[string]string) *corev1.Namespace {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace, Labels: labels}}
	inMember(ctx, m, ns)
	Expect(m.AwaitNamespace(ctx, s.namespace)).To(Succeed())
	return ns
}

// handedOver returns the labels with which a member's admin hands over a namespace to the host.
func handedOver(ctx context.Context) map[string]string {
	return map[string]string{v1alpha1.LabelHost: idOf(ctx, x.Host)}
}

var _ = Describe("A claim that no member can provision", func() {
	It("has a class that the members lack: it reports which members, and is provisioned when the class exists", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(classMissing))
		s.pod(ctx, "app", using("data"))
		s.noted(ctx, "PersistentVolumeClaim", "data", "ClassNotOffered", classMissing, one, two, "spec.storage.classes")

		class := controlplane.Class(classMissing, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
		class.Provisioner = controlplane.DefaultDriverName
		inMember(ctx, x.Member(two), &class)
		s.running(ctx, "app", nodeTwo)
	}, SpecTimeout(storyTime))

	It("is too large: it quotes the member's provisioner, and does not delay other claims", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(classLimited), ofSize("5Gi"))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.noted(ctx, "PersistentVolumeClaim", "data", "ProvisioningFailed", one, "OutOfRange")
		s.barrier(ctx, nodeOne)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", phase(corev1.ClaimPending))
	}, SpecTimeout(storyTime))

	It("is bound to a volume that only the host can use: a Pod in a member reports that it cannot use the volume", func(ctx SpecContext) {
		s := begin(ctx)
		class := "by-hand"
		pv := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: class,
				Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "host.example.com", VolumeHandle: "1"}},
			},
		}
		Expect(x.Host.API.Create(ctx, pv)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, pv)).To(Succeed()) }, NodeTimeout(settle))
		s.claim(ctx, "data", ofClass(class), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = pv.Name })
		s.bound(ctx, "data")
		s.pod(ctx, "app", using("data"), boundTo(nodeOne))
		until[corev1.Pod](ctx, s, x.Host, "app", tells("VolumeUnreachable", "data", pv.Name, one))
		s.noted(ctx, "Pod", "app", "VolumeUnreachable")
		Expect(s.left(ctx, x.Member(one))).To(BeEmpty())
		By("creating a Pod that also uses an unbound claim, so that the scheduler chooses its node")
		s.claim(ctx, "more")
		s.pod(ctx, "mixed", using("data"), using("more"), on(nodeOne))
		until[corev1.Pod](ctx, s, x.Host, "mixed", tells("VolumeUnreachable", "data", pv.Name, one))
		s.why(ctx, "Pod", "mixed", "VolumeUnreachable", pv.Name)
		pv = until[corev1.PersistentVolume](ctx, s, x.Host, pv.Name, phase(corev1.VolumeBound))
		Expect(ours(pv.Labels)).To(BeEmpty())
		Expect(ours(pv.Annotations)).To(BeEmpty())
	}, SpecTimeout(storyTime))
})

var _ = Describe("A conflicting foreign object", func() {
	It("is not changed, and the Pod reports the conflict and waits: a claim and a Pod (I4)", func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		s.strange(ctx, member, handedOver(ctx))
		theirs := s.newClaim("data", ofClass(controlplane.ClassFast))
		inMember(ctx, member, theirs)
		theirPod := s.newPod("app")
		inMember(ctx, member, theirPod)
		before := until[corev1.PersistentVolumeClaim](ctx, s, member, "data", phase(corev1.ClaimBound))
		podBefore := until[corev1.Pod](ctx, s, member, "app", phase(corev1.PodRunning))

		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells("NameTaken", one, s.namespace+"/data"))
		s.noted(ctx, "PersistentVolumeClaim", "data", "NameTaken")
		s.barrier(ctx, nodeOne)
		after := until[corev1.PersistentVolumeClaim](ctx, s, member, "data", Not(BeNil()))
		Expect(after.UID).To(Equal(before.UID))
		Expect(writes(after)).To(BeEmpty())

		By("deleting the foreign claim, after which only the foreign Pod is in conflict")
		Expect(member.API.Delete(ctx, theirs)).To(Succeed())
		until[corev1.Pod](ctx, s, x.Host, "app", tells("NameTaken", one, s.namespace+"/app"))
		s.noted(ctx, "Pod", "app", "NameTaken")
		podAfter := until[corev1.Pod](ctx, s, member, "app", Not(BeNil()))
		Expect(podAfter.UID).To(Equal(podBefore.UID))
		Expect(writes(podAfter)).To(BeEmpty())

		By("deleting the foreign Pod, after which the user's Pod runs")
		Expect(member.API.Delete(ctx, theirPod)).To(Succeed())
		s.running(ctx, "app", nodeOne)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", suite.Unreported())
	}, SpecTimeout(storyTime))

	It("blocks the Pod until it is gone: a terminating namespace, which Xylem then re-creates", func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		ns := s.strange(ctx, member, handedOver(ctx))
		held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "held", Finalizers: []string{"example.com/hold"}}}
		Expect(member.API.Create(ctx, held)).To(Succeed())
		Expect(member.API.Delete(ctx, ns)).To(Succeed())
		until[corev1.Namespace](ctx, s, member, s.namespace, HaveField("Status.Phase", corev1.NamespaceTerminating))
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells("NamespaceTerminating", one))
		patch(ctx, member, held, `{"metadata":{"finalizers":null}}`)
		s.running(ctx, "app", nodeOne)
		Expect(until[corev1.Namespace](ctx, s, member, s.namespace, Not(BeNil())).Labels).To(HaveKeyWithValue(v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue))
	}, SpecTimeout(storyTime))
})
