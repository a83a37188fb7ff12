package stories_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// StorageClasses in the host that use promises.
const (
	classPromise          = "promise"
	classPromiseImmediate = "promise-immediate"
	classPromiseRetain    = "promise-retain"
	classPromiseLimited   = "promise-limited"
	classPromiseMissing   = "promise-missing"
	classPromiseUnused    = "promise-when-unused"
	// releaseGrace is how long a disk of classPromiseUnused outlives its last Pod.
	releaseGrace = "2s"
)

func promiseClasses() []*storagev1.StorageClass {
	promising := func(parameters ...string) func(*storagev1.StorageClass) {
		return func(c *storagev1.StorageClass) {
			c.Parameters[v1alpha1.ParameterProvisioning] = v1alpha1.ProvisioningPromise
			for i := 0; i < len(parameters); i += 2 {
				c.Parameters[parameters[i]] = parameters[i+1]
			}
		}
	}
	immediate := func(c *storagev1.StorageClass) { *c.VolumeBindingMode = storagev1.VolumeBindingImmediate }
	retain := func(c *storagev1.StorageClass) { *c.ReclaimPolicy = corev1.PersistentVolumeReclaimRetain }
	return []*storagev1.StorageClass{
		hostClass(classPromise, classMirror, promising()),
		hostClass(classPromiseImmediate, controlplane.ClassFast, promising(), immediate),
		hostClass(classPromiseRetain, classMirror, promising(), retain),
		hostClass(classPromiseLimited, classLimited, promising()),
		hostClass(classPromiseMissing, "not-there-yet", promising()),
		hostClass(classPromiseUnused, classMirror, promising(v1alpha1.ParameterRelease, v1alpha1.ReleaseWhenUnused, v1alpha1.ParameterReleaseGrace, releaseGrace)),
	}
}

// promised waits until a claim is Bound to its promise, and returns the promise.
func (s *story) promised(ctx context.Context, name string) *corev1.PersistentVolume {
	GinkgoHelper()
	claim := s.bound(ctx, name)
	Expect(claim.Spec.VolumeName).To(Equal("pvc-mock-" + string(claim.UID)))
	return until[corev1.PersistentVolume](ctx, s, x.Host, claim.Spec.VolumeName, phase(corev1.VolumeBound))
}

// promise matches a claim by its Promise condition.
func promise(status corev1.ConditionStatus, reason string, parts ...string) gomegatypes.GomegaMatcher {
	matchers := []gomegatypes.GomegaMatcher{HaveField("Type", v1alpha1.ClaimPromise), HaveField("Status", status), HaveField("Reason", reason)}
	for _, part := range parts {
		matchers = append(matchers, HaveField("Message", ContainSubstring(part)))
	}
	return HaveField("Status.Conditions", ContainElement(And(matchers...)))
}

// fulfilled waits until a claim's promise is fulfilled, and returns its PV and the leaf PV.
func (s *story) fulfilled(ctx context.Context, name, member string) (host, leaf *corev1.PersistentVolume) {
	GinkgoHelper()
	claim := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, name, promise(corev1.ConditionTrue, v1alpha1.ReasonFulfilled, member))
	host = until[corev1.PersistentVolume](ctx, s, x.Host, claim.Spec.VolumeName, HaveField("Annotations", HaveKey(v1alpha1.AnnotationVolume)))
	cluster, volume, _ := strings.Cut(host.Annotations[v1alpha1.AnnotationVolume], "/")
	Expect(cluster).To(Equal(idOf(ctx, x.Member(member))))
	return host, until[corev1.PersistentVolume](ctx, s, x.Member(member), volume, phase(corev1.VolumeBound))
}

// nowhere verifies that no member has a leaf claim or a disk for a root claim.
func (s *story) nowhere(ctx context.Context, name string) {
	GinkgoHelper()
	for _, m := range x.Members() {
		var claims corev1.PersistentVolumeClaimList
		Expect(m.API.List(ctx, &claims, client.InNamespace(s.namespace))).To(Succeed())
		for i := range claims.Items {
			Expect(claims.Items[i].Name).NotTo(Equal(name), "in %s", m.Name())
		}
		Expect(s.book(m.Name(), name).Calls(ledger.CreateVolume)).To(BeZero(), "in %s", m.Name())
	}
}

// writesAbout returns Xylem's writes to objects in members whose names contain the given name.
func writesAbout(ctx context.Context, books account, name string) controlplane.Requests {
	GinkgoHelper()
	var all controlplane.Requests
	for _, m := range x.Members() {
		all = append(all, books.requests(ctx, m).Writes().Where(func(r controlplane.Request) bool { return strings.Contains(r.Name, name) })...)
	}
	return all
}

var _ = Describe("A promise", func() {
	DescribeTable("binds its claim immediately, and provisions no disk until a Pod is bound to a node (I1)", func(ctx SpecContext, class string, policy corev1.PersistentVolumeReclaimPolicy) {
		s := begin(ctx)
		books := opened(ctx)
		claim := s.claim(ctx, "data", ofClass(class))
		pv := s.promised(ctx, "data")
		Expect(pv.Spec.CSI.Driver).To(Equal("mock.csi.virtual-kubelet.io"))
		Expect(pv.Spec.CSI.VolumeHandle).To(Equal("mock-vol-" + string(claim.UID)))
		Expect(pv.Annotations).To(HaveKeyWithValue("virtual-kubelet.io/mock-pv", "true"))
		Expect(pv.Spec.Capacity).To(Equal(claim.Spec.Resources.Requests))
		Expect(pv.Spec.AccessModes).To(Equal(claim.Spec.AccessModes))
		Expect(pv.Spec.NodeAffinity).To(BeNil())
		Expect(pv.Spec.PersistentVolumeReclaimPolicy).To(Equal(policy))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", promise(corev1.ConditionFalse, v1alpha1.ReasonPromised))
		s.barrier(ctx, nodeOne)
		s.nowhere(ctx, "data")

		By("deleting the claim: the promise is deleted without a write to any member")
		s.deleteClaim(ctx, "data")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data")
		gone[corev1.PersistentVolume](ctx, s, x.Host, pv.Name)
		s.barrier(ctx, nodeOne)
		Expect(writesAbout(ctx, books, "data")).To(BeEmpty())
		s.nowhere(ctx, "data")
	},
		Entry("if its class waits for a consumer", suite.Slow, SpecTimeout(storyTime), classPromise, corev1.PersistentVolumeReclaimDelete),
		Entry("if its class binds immediately", suite.Slow, SpecTimeout(storyTime), classPromiseImmediate, corev1.PersistentVolumeReclaimDelete),
		Entry("if its class has policy Retain", suite.Slow, SpecTimeout(storyTime), classPromiseRetain, corev1.PersistentVolumeReclaimRetain),
	)

	DescribeTable("is fulfilled in the member of its first Pod, and is deleted with its claim (I1, I2, I3)", func(ctx SpecContext, class string) {
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		host, leaf := s.fulfilled(ctx, "data", one)
		Expect(s.book(one, "data").LiveIDs()).To(HaveLen(1))
		Expect(host.Labels).To(HaveKeyWithValue(v1alpha1.LabelCluster, one))
		Expect(host.Annotations).To(HaveKeyWithValue(v1alpha1.AttributeLeafUID, string(leaf.UID)))
		Expect(host.Annotations).To(HaveKeyWithValue(v1alpha1.AttributeDriver, leaf.Spec.CSI.Driver))
		Expect(host.Annotations).To(HaveKeyWithValue(v1alpha1.AttributeHandle, leaf.Spec.CSI.VolumeHandle))
		Expect(host.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationConsumer, HavePrefix(s.namespace+"/app/")))
		Expect(host.Spec.Capacity).To(Equal(leaf.Spec.Capacity))
		Expect(leaf.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
		s.noted(ctx, "PersistentVolumeClaim", "data", "PromiseFulfilled", leaf.Name)
		s.noted(ctx, "Pod", "app", "PromiseFulfilled", leaf.Name)
		Expect(strangers("promise", host)).To(BeEmpty())
		Expect(strangers("root PersistentVolumeClaim", s.bound(ctx, "data"))).To(BeEmpty())

		By("checking that later Pods also run in that member")
		s.pod(ctx, "next", using("data"))
		s.running(ctx, "next", nodeOne)
		s.pod(ctx, "stray", using("data"), on(nodeTwo))
		until[corev1.Pod](ctx, s, x.Host, "stray", HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", corev1.PodScheduled), HaveField("Reason", corev1.PodReasonUnschedulable)))))
		Expect(s.book(two, "data").Calls(ledger.CreateVolume)).To(BeZero())

		for _, pod := range []string{"app", "next", "stray"} {
			s.deletePod(ctx, pod)
		}
		s.deleteClaim(ctx, "data")
		gone[corev1.PersistentVolume](ctx, s, x.Host, host.Name)
		gone[corev1.PersistentVolume](ctx, s, x.Member(one), leaf.Name)
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data")
		Expect(s.book(one, "data").LiveIDs()).To(BeEmpty())
		Expect(s.book(one, "data").Count(ledger.DeleteVolume)).To(Equal(1))
	},
		Entry("the member's class waits for a consumer", SpecTimeout(storyTime), classPromise),
		Entry("the member's class binds immediately", SpecTimeout(storyTime), classPromiseImmediate),
	)

	It("keeps its disk for another claim if its class has policy Retain (I2)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(classPromiseRetain))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		host, leaf := s.fulfilled(ctx, "data", one)
		disks := s.book(one, "data").LiveIDs()
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data")
		host = until[corev1.PersistentVolume](ctx, s, x.Host, host.Name, phase(corev1.VolumeReleased))
		until[corev1.PersistentVolume](ctx, s, x.Member(one), leaf.Name, phase(corev1.VolumeReleased))

		By("clearing the claimRef as an admin, after which another claim can use the promise")
		patch(ctx, x.Host, host, `{"spec":{"claimRef":null}}`)
		until[corev1.PersistentVolume](ctx, s, x.Host, host.Name, phase(corev1.VolumeAvailable))
		s.claim(ctx, "again", ofClass(classPromiseRetain), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = host.Name })
		s.pod(ctx, "again", using("again"))
		s.running(ctx, "again", nodeOne)
		until[corev1.PersistentVolume](ctx, s, x.Member(one), leaf.Name, HaveField("Spec.ClaimRef.Name", "again"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "again", promise(corev1.ConditionTrue, v1alpha1.ReasonFulfilled))
		Expect(s.book(one, "data").LiveIDs()).To(Equal(disks))
		Expect(s.book(one, "again").Calls(ledger.CreateVolume)).To(BeZero())

		By("losing the host's promise: Xylem re-creates it with the same name")
		Expect(x.Host.API.Delete(ctx, host)).To(Succeed())
		patch(ctx, x.Host, host, `{"metadata":{"finalizers":null}}`)
		until[corev1.PersistentVolume](ctx, s, x.Host, host.Name, And(
			HaveField("UID", Not(Equal(host.UID))), phase(corev1.VolumeBound), HaveField("Annotations", HaveKeyWithValue(v1alpha1.AttributeLeafUID, string(leaf.UID)))))
		s.bound(ctx, "again")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "again", promise(corev1.ConditionTrue, v1alpha1.ReasonFulfilled))
		Expect(s.book(one, "data").LiveIDs()).To(Equal(disks))
	}, SpecTimeout(storyTime))

	It("is re-created with policy Retain when the host has lost it (I1, I2, I3)", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(classPromise))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		host, leaf := s.fulfilled(ctx, "data", one)
		Expect(x.Host.API.Delete(ctx, host)).To(Succeed())
		patch(ctx, x.Host, host, `{"metadata":{"finalizers":null}}`)
		again := until[corev1.PersistentVolume](ctx, s, x.Host, host.Name, And(
			HaveField("UID", Not(Equal(host.UID))), phase(corev1.VolumeBound), HaveField("Annotations", HaveKeyWithValue(v1alpha1.AttributeLeafUID, string(leaf.UID)))))
		Expect(again.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
		s.bound(ctx, "data")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", promise(corev1.ConditionTrue, v1alpha1.ReasonFulfilled))
		Expect(s.book(one, "data").Count(ledger.CreateVolume)).To(Equal(1))
		patch(ctx, x.Host, again, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
	}, SpecTimeout(storyTime))

	It("is re-created once its class exists again if the host lost it before it had a disk", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := hostClass("promise-comes-back", classMirror, func(c *storagev1.StorageClass) {
			c.Parameters[v1alpha1.ParameterProvisioning] = v1alpha1.ProvisioningPromise
		})
		inHost(ctx, class)
		s.claim(ctx, "data", ofClass(class.Name))
		host := s.promised(ctx, "data")
		Expect(x.Host.API.Delete(ctx, class.DeepCopy())).To(Succeed())
		gone[storagev1.StorageClass](ctx, s, x.Host, class.Name)
		Expect(x.Host.API.Delete(ctx, host)).To(Succeed())
		patch(ctx, x.Host, host, `{"metadata":{"finalizers":null}}`)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(phase(corev1.ClaimLost), HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", v1alpha1.ClaimPromise), HaveField("Reason", v1alpha1.ReasonBroken), HaveField("Message", ContainSubstring(class.Name)))))))
		s.barrier(ctx, nodeOne)
		Expect(x.Host.API.Create(ctx, hostClass(class.Name, classMirror, func(c *storagev1.StorageClass) { c.Parameters = class.Parameters }))).To(Succeed())
		s.promised(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))

	It("can be expanded before and after its disk is provisioned", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(classPromise))
		s.promised(ctx, "data")
		s.grow(ctx, "data", "2Gi")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		has := func(size string) gomegatypes.GomegaMatcher {
			return WithTransform(func(r corev1.ResourceList) string { return r.Storage().String() }, Equal(size))
		}
		host, _ := s.fulfilled(ctx, "data", one)
		Expect(host.Spec.Capacity).To(has("2Gi"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", HaveField("Status.Capacity", has("2Gi")))
		s.grow(ctx, "data", "3Gi")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", HaveField("Status.Capacity", has("3Gi")))
		until[corev1.PersistentVolume](ctx, s, x.Host, host.Name, HaveField("Spec.Capacity", has("3Gi")))
	}, SpecTimeout(storyTime))

	It("reports on its claim and Pod why the member does not create the disk", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "big", ofClass(classPromiseLimited), ofSize("2Gi"))
		s.promised(ctx, "big")
		s.pod(ctx, "app", using("big"), on(nodeOne))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "big", And(phase(corev1.ClaimBound), promise(corev1.ConditionFalse, v1alpha1.ReasonBroken, "ProvisioningFailed", one, "OutOfRange")))
		s.noted(ctx, "PersistentVolumeClaim", "big", "PromiseBroken")
		s.noted(ctx, "Pod", "app", "PromiseBroken", "OutOfRange")

		By("deleting the Pod, so that the claim is removed from the member")
		s.deletePod(ctx, "app")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "big")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "big", And(promise(corev1.ConditionFalse, v1alpha1.ReasonPromised),
			HaveField("Annotations", Not(HaveKey(v1alpha1.AnnotationPlacedIn)))))
	}, SpecTimeout(storyTime))

	It("waits for a class that the member lacks", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(classPromiseMissing))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", promise(corev1.ConditionFalse, v1alpha1.ReasonBroken, v1alpha1.ReasonClassNotFound+": ", "not-there-yet", v1alpha1.ParameterMemberClass, classMirror))
		s.why(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonClassNotFound, one, "not-there-yet", "Create that class in the member")
		s.why(ctx, "Pod", "app", v1alpha1.ReasonClassNotFound, one, "not-there-yet", "Create that class in the member")
		measured(ctx, "xylem_promises_unfulfilled", one, Equal("1"))
		class := controlplane.Class("not-there-yet", storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
		class.Provisioner = controlplane.DefaultDriverName
		Expect(x.Member(one).API.Create(ctx, &class)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Member(one).API.Delete(ctx, &class)).To(Succeed()) })
		s.running(ctx, "app", nodeOne)
		s.fulfilled(ctx, "data", one)
		measured(ctx, "xylem_promises_unfulfilled", one, Equal("0"))
	}, SpecTimeout(storyTime))

	DescribeTable("is not created for a claim with requirements that cannot be promised", func(ctx SpecContext, reason string, change claimOption) {
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(classPromise), change)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(phase(corev1.ClaimPending), tells(reason)))
		s.noted(ctx, "PersistentVolumeClaim", "data", reason)
	},
		Entry("a selector", SpecTimeout(storyTime), "SelectorUnsupported", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "fast"}}
		}),
		Entry("a populator's data source", SpecTimeout(storyTime), "DataSourceUnsupported", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: ptr.To("example.com"), Kind: "Image", Name: "other"}
		}),
		Entry("a volume name", SpecTimeout(storyTime), "VolumeNameUnsupported", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "another" }),
	)

	It("makes a Pod on one of the host's own nodes report that its disk cannot be used on that node", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(classPromise))
		s.promised(ctx, "data")
		s.pod(ctx, "app", using("data"), boundTo(plainNode)) // since Kubernetes 1.37, the scheduler would not select this node
		s.noted(ctx, "Pod", "app", "VolumeUnreachable", plainNode, v1alpha1.LabelVirtualNode, v1alpha1.ReleaseWhenUnused)
		s.nowhere(ctx, "data")

		By("checking that the scheduler does not select one of the host's own nodes for a promise that is released when unused")
		s.claim(ctx, "held", ofClass(classPromiseUnused))
		s.promised(ctx, "held")
		s.pod(ctx, "held", using("held"), on(plainNode))
		until[corev1.Pod](ctx, s, x.Host, "held", HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", corev1.PodScheduled), HaveField("Reason", corev1.PodReasonUnschedulable)))))
	}, SpecTimeout(storyTime))

	It("is fulfilled only once if Pods are bound to nodes of two members (I3)", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(classPromise))
		s.promised(ctx, "data")
		for i, node := range []string{nodeOne, nodeTwo} {
			s.pod(ctx, fmt.Sprintf("app-%d", i), using("data"), on(node))
		}
		var won, lost string
		Eventually(ctx, func(g Gomega) {
			phases := map[corev1.PodPhase]string{}
			for _, name := range []string{"app-0", "app-1"} {
				pod, err := read[corev1.Pod](ctx, s, x.Host, name)
				g.Expect(err).NotTo(HaveOccurred())
				phases[pod.Status.Phase] = name
			}
			won, lost = phases[corev1.PodRunning], phases[corev1.PodFailed]
			g.Expect(won).NotTo(BeEmpty())
			// The other Pod has failed or, if it was late, was never bound to a node.
			g.Expect(lost != "" || phases[corev1.PodPending] != "").To(BeTrue())
		}).WithContext(ctx).Should(Succeed())
		if lost != "" {
			s.noted(ctx, "Pod", lost, "VolumeMadeElsewhere")
		}
		Expect(len(s.book(one, "data").LiveIDs()) + len(s.book(two, "data").LiveIDs())).To(Equal(1))
	}, SpecTimeout(storyTime))

	It("can be used with mirrored claims in one Pod", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "promised", ofClass(classPromise))
		s.claim(ctx, "mirrored")
		s.pod(ctx, "app", using("promised"), using("mirrored"), on(nodeTwo))
		s.running(ctx, "app", nodeTwo)
		s.fulfilled(ctx, "promised", two)
	}, SpecTimeout(storyTime))

	It("is released with its last Pod, and fulfilled again in the next Pod's member (I2)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "scratch", ofClass(classPromiseUnused))
		promised := s.promised(ctx, "scratch")
		Expect(promised.Spec.NodeAffinity).NotTo(BeNil())
		s.pod(ctx, "first", using("scratch"), on(nodeOne))
		s.running(ctx, "first", nodeOne)
		host, leaf := s.fulfilled(ctx, "scratch", one)
		Expect(host.Spec.NodeAffinity).To(Equal(promised.Spec.NodeAffinity))

		By("creating a Pod on another member's node: it waits while the first Pod uses the disk")
		s.pod(ctx, "second", using("scratch"), on(nodeTwo))
		until[corev1.Pod](ctx, s, x.Host, "second", tells("PlacedElsewhere", "scratch"))
		Expect(s.book(one, "scratch").LiveIDs()).To(HaveLen(1))

		s.deletePod(ctx, "first")
		s.running(ctx, "second", nodeTwo)
		s.fulfilled(ctx, "scratch", two)
		gone[corev1.PersistentVolume](ctx, s, x.Member(one), leaf.Name)
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "scratch")
		Expect(s.book(one, "scratch").LiveIDs()).To(BeEmpty())
		Expect(s.book(two, "scratch").LiveIDs()).To(HaveLen(1))
		s.noted(ctx, "PersistentVolumeClaim", "scratch", "VolumeReleased", leaf.Name)

		By("checking that it is released even while a finished Pod still exists")
		s.deletePod(ctx, "second")
		s.pod(ctx, "job", using("scratch"), on(nodeTwo), annotated(controlplane.AnnotationComplete, "true"))
		until[corev1.Pod](ctx, s, x.Host, "job", phase(corev1.PodSucceeded))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "scratch", And(phase(corev1.ClaimBound), promise(corev1.ConditionFalse, v1alpha1.ReasonPromised),
			HaveField("Annotations", Not(HaveKey(v1alpha1.AnnotationPlacedIn)))))
		Eventually(ctx, func() []string { return s.book(two, "scratch").LiveIDs() }).Should(BeEmpty())
		until[corev1.Pod](ctx, s, x.Host, "job", phase(corev1.PodSucceeded))
	}, SpecTimeout(storyTime))

	It("keeps its disk for the next Pod if an admin sets policy Retain while the disk is being released (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "scratch", ofClass(classPromiseUnused))
		s.pod(ctx, "first", using("scratch"), on(nodeOne))
		s.running(ctx, "first", nodeOne)
		host, leaf := s.fulfilled(ctx, "scratch", one)
		disks := s.book(one, "scratch").LiveIDs()

		By("blocking the deletion of the leaf claim with a foreign Pod")
		first := until[corev1.Pod](ctx, s, x.Member(one), "first", phase(corev1.PodRunning))
		holder := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "holder"},
			Spec: corev1.PodSpec{
				NodeName: first.Spec.NodeName, Containers: []corev1.Container{{Name: "c", Image: "registry.k8s.io/pause:3.10"}},
				Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "scratch"}}}},
			},
		}
		Expect(x.Member(one).API.Create(ctx, holder)).To(Succeed())
		s.deletePod(ctx, "first")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "scratch", HaveField("DeletionTimestamp", Not(BeNil())))
		until[corev1.PersistentVolume](ctx, s, x.Member(one), leaf.Name, HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimDelete))

		By("setting policy Retain as the admin")
		patch(ctx, x.Host, host, `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
		until[corev1.PersistentVolume](ctx, s, x.Member(one), leaf.Name, HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain))
		Expect(x.Member(one).API.Delete(ctx, holder, client.GracePeriodSeconds(0))).To(Succeed())
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "scratch")
		s.noted(ctx, "PersistentVolume", host.Name, "ReleaseRefused", "Retain")

		s.pod(ctx, "second", using("scratch"), on(nodeOne))
		s.running(ctx, "second", nodeOne)
		Expect(s.book(one, "scratch").LiveIDs()).To(Equal(disks))
		Expect(s.book(one, "scratch").Count(ledger.CreateVolume)).To(Equal(1))
	}, SpecTimeout(storyTime))

	It("can be abandoned by an admin while its member is away, and is then fulfilled in another member (I1, I3)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "scratch", ofClass(classPromiseUnused))
		s.pod(ctx, "first", using("scratch"), on(nodeTwo))
		s.running(ctx, "first", nodeTwo)
		host, leaf := s.fulfilled(ctx, "scratch", two)

		back := cutOff(ctx, two, controlplane.Blackhole)
		patch(ctx, x.Host, host, `{"metadata":{"annotations":{"`+v1alpha1.AnnotationAbandon+`":"true"}}}`)
		until[corev1.PersistentVolume](ctx, s, x.Host, host.Name, And(
			HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationAbandon, idOf(ctx, x.Member(two)))), HaveField("Labels", Not(HaveKey(v1alpha1.LabelClusterID)))))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "scratch", HaveField("Annotations", Not(HaveKey(v1alpha1.AnnotationPlacedIn))))
		s.recorded(ctx, idOf(ctx, x.Member(two)), v1alpha1.AnnotationAbandon, host.Name)
		s.pod(ctx, "second", using("scratch"), on(nodeOne))
		s.running(ctx, "second", nodeOne)
		s.fulfilled(ctx, "scratch", one)

		By("reconnecting the member: its disk is kept, and Xylem reports it")
		back()
		Expect(x.AwaitReady(ctx, two)).To(Succeed())
		registration(ctx, two, HaveField("Status.Volumes.Orphaned", BeNumerically(">=", 1)))
		until[corev1.PersistentVolume](ctx, s, x.Member(two), leaf.Name, HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain))
		s.noted(ctx, "PersistentVolumeClaim", "scratch", v1alpha1.ReasonSurplusVolume, leaf.Name)
		Expect(s.book(two, "scratch").LiveIDs()).To(HaveLen(1))
		s.fulfilled(ctx, "scratch", one)

		By("deleting the claim, and then the disk as the member's admin")
		s.deletePod(ctx, "first")
		s.deletePod(ctx, "second")
		s.deleteClaim(ctx, "scratch")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(two), "scratch")
		orphan := until[corev1.PersistentVolume](ctx, s, x.Member(two), leaf.Name, And(
			phase(corev1.VolumeReleased), HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)))
		patch(ctx, x.Member(two), orphan, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		gone[corev1.PersistentVolume](ctx, s, x.Member(two), leaf.Name)
	}, SpecTimeout(storyTime))

	It("works as the sample promise.yaml shows", func(ctx SpecContext) {
		s := sample(ctx, "promise.yaml", one)
		s.bound(ctx, "data")
		until[appsv1.Deployment](ctx, s, x.Host, "app", HaveField("Status.ReadyReplicas", BeEquivalentTo(1)))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", promise(corev1.ConditionTrue, v1alpha1.ReasonFulfilled))
	}, SpecTimeout(storyTime))

	It("works as the sample when-unused.yaml shows", suite.Slow, suite.Core, func(ctx SpecContext) {
		s := sample(ctx, "when-unused.yaml", one)
		claim := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "scratch", promise(corev1.ConditionTrue, v1alpha1.ReasonFulfilled))
		pv := until[corev1.PersistentVolume](ctx, s, x.Host, claim.Spec.VolumeName, phase(corev1.VolumeBound))
		member := pv.Labels[v1alpha1.LabelCluster]
		Expect(s.book(member, "scratch").LiveIDs()).To(HaveLen(1))

		By("completing the Pod of the sample's Job")
		var pods corev1.PodList
		Expect(x.Member(member).API.List(ctx, &pods, client.InNamespace(s.namespace))).To(Succeed())
		Expect(pods.Items).To(HaveLen(1))
		patch(ctx, x.Member(member), &pods.Items[0], fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, controlplane.AnnotationComplete))
		until[batchv1.Job](ctx, s, x.Host, "job", HaveField("Status.Succeeded", BeEquivalentTo(1)))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "scratch", And(phase(corev1.ClaimBound), promise(corev1.ConditionFalse, v1alpha1.ReasonPromised)))
		Eventually(ctx, func() []string { return s.book(member, "scratch").LiveIDs() }).Should(BeEmpty())
	}, SpecTimeout(storyTime))
})
