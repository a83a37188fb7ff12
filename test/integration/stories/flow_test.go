package stories_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/suite"
)

var _ = Describe("The main flow", func() {
	It("runs seed 001's example unchanged, and shows the same volume in the host and in the member", func(ctx SpecContext) {
		s := &story{namespace: "test-new"}
		gone[corev1.Namespace](ctx, s, x.Host, s.namespace)           // the namespace of the sample
		before := s.book(one, "nginx-pvc").Count(ledger.CreateVolume) // other stories that apply samples also create disks
		_, err := x.Kubectl(ctx, x.Fleet.Host, "apply", "-f", x.Root("test", "integration", "stories", "testdata", "seed001.yaml"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(s.end, NodeTimeout(storyTime))

		claim := s.bound(ctx, "nginx-pvc")
		var pods corev1.PodList
		Eventually(ctx, func(g Gomega) {
			g.Expect(x.Host.API.List(ctx, &pods, client.InNamespace(s.namespace))).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(1))
			g.Expect(pods.Items[0].Status.Phase).To(Equal(corev1.PodRunning))
		}).WithContext(ctx).Should(Succeed())
		pod := &pods.Items[0]
		Expect(pod.Spec.NodeName).To(Equal(nodeOne))

		member := x.Member(one)
		host, id := idOf(ctx, x.Host), idOf(ctx, member)

		By("checking that the volume has the same name in both clusters")
		leafClaim, err := read[corev1.PersistentVolumeClaim](ctx, s, member, "nginx-pvc")
		Expect(err).NotTo(HaveOccurred())
		Expect(leafClaim.Spec.VolumeName).To(Equal(claim.Spec.VolumeName))
		Expect(leafClaim.Status.Phase).To(Equal(corev1.ClaimBound))

		By("comparing the host PV with the contract")
		leafVolume, err := read[corev1.PersistentVolume](ctx, s, member, claim.Spec.VolumeName)
		Expect(err).NotTo(HaveOccurred())
		pv, err := read[corev1.PersistentVolume](ctx, s, x.Host, claim.Spec.VolumeName)
		Expect(err).NotTo(HaveOccurred())
		Expect(pv.Labels).To(Equal(map[string]string{v1alpha1.LabelCluster: one, v1alpha1.LabelClusterID: id}))
		Expect(pv.Finalizers).To(ConsistOf(v1alpha1.FinalizerLeafVolume, "kubernetes.io/pv-protection"))
		Expect(pv.Annotations).To(HaveKeyWithValue("pv.kubernetes.io/provisioned-by", "csi.xylem.io"))
		Expect(pv.Spec.CSI.Driver).To(Equal("csi.xylem.io"))
		Expect(pv.Spec.CSI.VolumeHandle).To(Equal(id + "/" + leafVolume.Name))
		Expect(pv.Spec.CSI.VolumeAttributes).To(Equal(map[string]string{
			v1alpha1.AttributeDriver:  controlplane.DefaultDriverName,
			v1alpha1.AttributeHandle:  leafVolume.Spec.CSI.VolumeHandle,
			v1alpha1.AttributeLeafUID: string(leafVolume.UID),
		}))
		Expect(pv.Spec.NodeAffinity.Required.NodeSelectorTerms).To(Equal([]corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.LabelClusterID, Operator: corev1.NodeSelectorOpIn, Values: []string{id}}},
		}}))
		Expect(pv.Spec.ClaimRef.UID).To(Equal(claim.UID))
		Expect(pv.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimDelete))
		Expect(pv.Spec.StorageClassName).To(Equal(classMirror))
		Expect(pv.Spec.Capacity.Storage().Cmp(resource.MustParse("1Gi"))).To(BeZero())

		By("checking that the leaves have the stamp, and the leaf PV has policy Retain")
		stamp := func(obj client.Object, root client.Object) {
			GinkgoHelper()
			Expect(obj.GetLabels()).To(HaveKeyWithValue(v1alpha1.LabelHost, host))
			Expect(obj.GetLabels()).To(HaveKeyWithValue(v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue))
			Expect(obj.GetAnnotations()).To(HaveKeyWithValue(v1alpha1.AnnotationRoot, s.namespace+"/"+root.GetName()))
			Expect(obj.GetAnnotations()).To(HaveKeyWithValue(v1alpha1.AnnotationRootUID, string(root.GetUID())))
		}
		leafPod, err := read[corev1.Pod](ctx, s, member, pod.Name)
		Expect(err).NotTo(HaveOccurred())
		stamp(leafClaim, claim)
		stamp(leafPod, pod)
		stamp(leafVolume, claim)
		Expect(leafVolume.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
		Expect(leafVolume.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationReclaimPolicy, "Delete"))
		Expect(leafPod.Spec.NodeName).To(BeElementOf(member.NodeNames()))
		Expect(pod.Status.PodIP).To(Equal(leafPod.Status.PodIP))
		Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
		Expect(pod.Status.ContainerStatuses[0].ContainerID).To(Equal(leafPod.Status.ContainerStatuses[0].ContainerID))

		By("checking that the user's own objects have none of Xylem's finalizers")
		Expect(claim.Finalizers).To(ConsistOf("kubernetes.io/pvc-protection"))
		Expect(pod.Finalizers).To(BeEmpty())
		Expect(ours(claim.Annotations)).To(Equal(map[string]string{v1alpha1.AnnotationPlacedIn: id}))
		Expect(s.book(one, "nginx-pvc").Count(ledger.CreateVolume) - before).To(Equal(1))

		By("checking that the claim and the Pod report their leaves")
		s.noted(ctx, "PersistentVolumeClaim", "nginx-pvc", v1alpha1.ReasonVolumeMirrored, one)
		Expect(pod.Status.Conditions).To(ContainElement(And(HaveField("Type", v1alpha1.PodPushed), HaveField("Status", corev1.ConditionTrue),
			HaveField("Reason", v1alpha1.ReasonPushed), HaveField("Message", ContainSubstring(string(leafPod.UID))))))
	}, SpecTimeout(storyTime))

	It("expands a volume with its claim", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"tier": "gold"} })
		s.pod(ctx, "app", using("data"))
		s.running(ctx, "app")
		s.bound(ctx, "data")

		s.grow(ctx, "data", "2Gi")
		want := resource.MustParse("2Gi")
		size := func(q *resource.Quantity) int { return q.Cmp(want) }
		claim := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(
			WithTransform(func(c *corev1.PersistentVolumeClaim) int { return size(c.Status.Capacity.Storage()) }, BeZero()),
			suite.Unreported(),
			HaveField("Status.AllocatedResourceStatuses", BeEmpty()),
		))
		until[corev1.PersistentVolume](ctx, s, x.Host, claim.Spec.VolumeName,
			WithTransform(func(pv *corev1.PersistentVolume) int { return size(pv.Spec.Capacity.Storage()) }, BeZero()))

		member := memberOf(ctx, s, "app")
		book := s.book(member, "data")
		Expect(book.Count(ledger.ExpandVolume)).To(Equal(1))
		for _, disk := range book.Live() {
			Expect(disk.CapacityBytes).To(Equal(want.Value()))
		}
		s.noted(ctx, "PersistentVolumeClaim", "data", "ExpansionPushed", "2Gi")

		By("changing the labels and annotations of the claim, after the member's admin has added one")
		patch(ctx, x.Member(member), s.newClaim("data"), `{"metadata":{"labels":{"driver":"own"}}}`)
		patch(ctx, x.Host, s.newClaim("data"), `{"metadata":{"labels":{"recurring-job.longhorn.io/source":"enabled","tier":null},"annotations":{"k8up.io/backup":"true"}}}`)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(member), "data", And(
			HaveField("Labels", And(HaveKeyWithValue("recurring-job.longhorn.io/source", "enabled"), HaveKeyWithValue("driver", "own"), Not(HaveKey("tier")))),
			HaveField("Annotations", HaveKeyWithValue("k8up.io/backup", "true"))))
	}, SpecTimeout(storyTime))

	It("leaves the claims' Unused condition to each cluster's own Kubernetes", func(ctx SpecContext) {
		suite.From(x.Host, "1.37", "it does not set the condition")
		suite.From(x.Member(one), "1.37", "it does not set the condition")
		s := begin(ctx)
		unused := func(status corev1.ConditionStatus) OmegaMatcher {
			return HaveField("Status.Conditions", ContainElement(And(HaveField("Type", corev1.PersistentVolumeClaimUnused), HaveField("Status", status))))
		}
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", unused(corev1.ConditionFalse))
		s.deletePod(ctx, "app")
		before := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", unused(corev1.ConditionTrue))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", unused(corev1.ConditionTrue))

		By("checking that Xylem keeps the condition when it writes the claim's status")
		s.grow(ctx, "data", "2Gi")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(HaveField("Status.Conditions", Equal(before.Status.Conditions)), HaveField("Status.Capacity",
			WithTransform(func(r corev1.ResourceList) string { return r.Storage().String() }, Equal("2Gi")))))

		By("checking that Xylem does not mirror the leaf's condition, with a Pod that uses only the root claim")
		s.pod(ctx, "waiting", using("data"), on(plainNode))
		claim := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", unused(corev1.ConditionFalse))
		s.barrier(ctx, nodeOne)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", unused(corev1.ConditionTrue))
		claim = until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", HaveField("Status.Conditions", Equal(claim.Status.Conditions)))
		for _, entry := range claim.ManagedFields {
			if strings.Contains(string(entry.FieldsV1.GetRawBytes()), "Unused") {
				Expect(entry.Manager).To(Equal("kube-controller-manager"))
			}
		}
	}, SpecTimeout(storyTime))

	DescribeTable("binds claims whose class in the member is Immediate", func(ctx SpecContext, class string) {
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		s.bound(ctx, "data")
		leaf, err := read[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data")
		Expect(err).NotTo(HaveOccurred())
		Expect(*leaf.Spec.StorageClassName).To(Equal(controlplane.ClassFast))
		s.unwarned(ctx, x.Host, x.Member(one))
	},
		Entry("selected by the class's parameter", SpecTimeout(storyTime), classParameter),
		Entry("selected by the registration's mapping", SpecTimeout(storyTime), classMapped),
	)

	It("provisions the disk of a generic ephemeral volume, and removes it with its Pod", func(ctx SpecContext) {
		s := begin(ctx)
		s.pod(ctx, "app", on(nodeTwo), func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: s.newClaim("any").Spec},
			}}}}
		})
		s.running(ctx, "app", nodeTwo)
		volume := s.bound(ctx, "app-scratch").Spec.VolumeName
		leaf, err := read[corev1.Pod](ctx, s, x.Member(two), "app")
		Expect(err).NotTo(HaveOccurred())
		Expect(leaf.Spec.Volumes).To(ContainElement(HaveField("VolumeSource.PersistentVolumeClaim.ClaimName", "app-scratch")))

		s.deletePod(ctx, "app")
		s.destroyed(ctx, two, "app-scratch", volume)
	}, SpecTimeout(storyTime))

	It("preserves volumeMode Block and access mode ReadWriteOncePod", func(ctx SpecContext) {
		s := begin(ctx)
		block := corev1.PersistentVolumeBlock
		s.claim(ctx, "raw", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block })
		s.claim(ctx, "single", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
		})
		s.pod(ctx, "app", using("raw"), using("single"), on(nodeOne), func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "raw", DevicePath: "/dev/raw"}}
		})
		s.running(ctx, "app", nodeOne)

		for _, c := range x.Clusters()[:2] {
			claim, err := read[corev1.PersistentVolumeClaim](ctx, s, c, "raw")
			Expect(err).NotTo(HaveOccurred())
			Expect(claim.Spec.VolumeMode).To(HaveValue(Equal(block)), c.Name())
			pv, err := read[corev1.PersistentVolume](ctx, s, c, claim.Spec.VolumeName)
			Expect(err).NotTo(HaveOccurred())
			Expect(pv.Spec.VolumeMode).To(HaveValue(Equal(block)), c.Name())

			claim, err = read[corev1.PersistentVolumeClaim](ctx, s, c, "single")
			Expect(err).NotTo(HaveOccurred())
			Expect(claim.Spec.AccessModes).To(ConsistOf(corev1.ReadWriteOncePod), c.Name())
			pv, err = read[corev1.PersistentVolume](ctx, s, c, claim.Spec.VolumeName)
			Expect(err).NotTo(HaveOccurred())
			Expect(pv.Spec.AccessModes).To(ConsistOf(corev1.ReadWriteOncePod), c.Name())
		}
	}, SpecTimeout(storyTime))
})

var _ = Describe("A burst of claims", suite.Slow, func() {
	It("is placed as fast as the host binds volumes, and delayed claims report why", func(ctx SpecContext) {
		s := begin(ctx)
		const inProgress, more = 3, 7
		ordinary := x.Manager
		Expect(ordinary.Stop()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			x.Manager = ordinary
			Expect(x.Manager.Start(ctx)).To(Succeed())
			Expect(x.AwaitReady(ctx, one)).To(Succeed())
		}, NodeTimeout(settle))
		gated, err := x.AnotherManager(ctx, "gated", x.Fleet.Host, fmt.Sprint("--claims-in-progress=", inProgress))
		Expect(err).NotTo(HaveOccurred())
		Expect(gated.Start(ctx)).To(Succeed())
		DeferCleanup(func() { Expect(gated.Stop()).To(Succeed()) })
		x.Manager = gated
		s.barrier(ctx, nodeOne)

		By("stopping the host's PV controller, and provisioning as many volumes as Xylem lets wait for it")
		binder := x.Fleet.Host.Process(controlplane.ControllerManager)
		Expect(binder.Stop(ctx)).To(Succeed())
		DeferCleanup(binder.Start, NodeTimeout(storyTime))
		claims := func(name string, n int) (options []podOption) {
			for i := range n {
				s.claim(ctx, fmt.Sprintf("%s-%d", name, i))
				options = append(options, using(fmt.Sprintf("%s-%d", name, i)))
			}
			return append(options, on(nodeOne))
		}
		s.pod(ctx, "crowd", claims("crowd", inProgress)...)
		Eventually(ctx, func(ctx context.Context) (int, error) {
			var volumes corev1.PersistentVolumeList
			err := x.Host.API.List(ctx, &volumes)
			return len(slices.DeleteFunc(volumes.Items, func(pv corev1.PersistentVolume) bool {
				return pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.Namespace != s.namespace || pv.Status.Phase == corev1.VolumeBound
			})), err
		}).Should(Equal(inProgress))

		By("creating more claims, which Xylem delays")
		s.pod(ctx, "app", claims("data", more)...)
		measured(ctx, "xylem_claims_held_back", one, Equal(fmt.Sprint(more)))
		Eventually(ctx, func(ctx context.Context) ([]corev1.Event, error) {
			var told corev1.EventList
			err := x.Host.API.List(ctx, &told, client.InNamespace(s.namespace))
			return told.Items, err
		}).Should(ContainElement(And(
			HaveField("InvolvedObject.Kind", "PersistentVolumeClaim"), HaveField("Reason", v1alpha1.ReasonHeldBack),
			HaveField("Message", And(ContainSubstring(one), ContainSubstring("still has %d volumes to bind", inProgress))),
		)))

		By("starting the PV controller, after which all Pods run")
		Expect(binder.Start(ctx)).To(Succeed())
		s.running(ctx, "crowd", nodeOne)
		s.running(ctx, "app", nodeOne)
		measured(ctx, "xylem_claims_held_back", one, Equal("0"))
	}, SpecTimeout(2*storyTime))
})

// memberOf returns the name of the member in which a host Pod runs.
func memberOf(ctx context.Context, s *story, pod string) string {
	GinkgoHelper()
	p, err := read[corev1.Pod](ctx, s, x.Host, pod)
	Expect(err).NotTo(HaveOccurred())
	node, err := read[corev1.Node](ctx, s, x.Host, p.Spec.NodeName)
	Expect(err).NotTo(HaveOccurred())
	return node.Labels[v1alpha1.LabelCluster]
}

// destroyed waits until neither cluster has an object or a disk of a claim.
func (s *story) destroyed(ctx context.Context, member, claim, volume string) {
	GinkgoHelper()
	gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, claim)
	gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
	gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(member), claim)
	gone[corev1.PersistentVolume](ctx, s, x.Member(member), volume)
	Eventually(ctx, func() []string { return s.book(member, claim).LiveIDs() }).Should(BeEmpty())
}
