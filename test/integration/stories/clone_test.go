package stories_test

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// from makes a claim a clone of another claim.
func from(claim string) claimOption {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: claim}
	}
}

// golden creates a claim with known data on its disk in the node's member. No Pod uses the claim
// when golden returns.
func (s *story) golden(ctx context.Context, node string, options ...claimOption) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	s.claim(ctx, "golden", options...)
	s.pod(ctx, "golden", using("golden"), on(node))
	s.running(ctx, "golden", node)
	s.deletePod(ctx, "golden")
	gone[corev1.Pod](ctx, s, x.Host, "golden")
	claim := s.bound(ctx, "golden")
	member := map[string]string{nodeOne: one, nodeTwo: two}[node]
	disks := s.book(member, "golden").LiveIDs()
	Expect(disks).To(HaveLen(1))
	Expect(csidriver.WriteData(x.Fleet.Member(member).DriverDir(), disks[0], s.goldenData())).To(Succeed())
	return claim
}

// goldenData returns the golden claim's data.
func (s *story) goldenData() string { return "golden data of " + s.namespace }

// copied waits until a claim is bound, and checks that it has only one disk, in the given member,
// with the golden claim's data.
func (s *story) copied(ctx context.Context, claim, member string) {
	GinkgoHelper()
	s.bound(ctx, claim)
	for _, m := range []string{one, two} {
		disks := s.book(m, claim).LiveIDs()
		if m != member {
			Expect(s.book(m, claim).Calls(ledger.CreateVolume)).To(BeZero(), "in %s", m)
			continue
		}
		Expect(disks).To(HaveLen(1))
		Expect(csidriver.ReadData(x.Fleet.Member(m).DriverDir(), disks[0])).To(Equal(s.goldenData()))
	}
}

// neverMade verifies that no member's driver received a request to create a disk for a claim.
func (s *story) neverMade(ctx context.Context, claim string) {
	GinkgoHelper()
	s.barrier(ctx, nodeOne)
	s.barrier(ctx, nodeTwo)
	for _, m := range []string{one, two} {
		Expect(s.book(m, claim).Calls(ledger.CreateVolume)).To(BeZero(), "in %s", m)
	}
}

// steered matches a claim for which Xylem selected a node.
func steered(node string) gomegatypes.GomegaMatcher {
	return HaveField("Annotations", And(HaveKeyWithValue(route.AnnSelectedNode, node), HaveKeyWithValue(v1alpha1.AnnotationSteeredTo, node), HaveKey(v1alpha1.AnnotationSource)))
}

var _ = Describe("A clone of a claim", func() {
	It("is created in the member of its source when its Pod is created later", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		source := s.golden(ctx, nodeTwo)
		s.claim(ctx, "copy", from("golden"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", And(phase(corev1.ClaimPending), steered(nodeTwo)))
		s.pod(ctx, "app", using("copy"))
		s.running(ctx, "app", nodeTwo)
		s.copied(ctx, "copy", two)

		By("checking that only the source annotation is left on the claim")
		claim := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", HaveField("Annotations", Not(HaveKey(v1alpha1.AnnotationSteeredTo))))
		Expect(claim.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationSource, idOf(ctx, x.Member(two))+"/"+string(source.UID)))
		Expect(claim).To(suite.Unreported())
		Expect(strangers("root PersistentVolumeClaim", claim)).To(BeEmpty())
		leaf := until[corev1.PersistentVolumeClaim](ctx, s, x.Member(two), "copy", phase(corev1.ClaimBound))
		Expect(leaf.Spec.DataSource).To(Equal(claim.Spec.DataSource))
		Expect(leaf.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationSource, string(source.UID)))

		By("cloning the clone, and deleting the first source: neither clone depends on it")
		s.claim(ctx, "again", from("copy"))
		s.pod(ctx, "again", using("again"))
		s.running(ctx, "again", nodeTwo)
		s.deleteClaim(ctx, "golden")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(two), "golden")
		s.copied(ctx, "again", two)
		s.copied(ctx, "copy", two)
	}, SpecTimeout(storyTime))

	It("is created in the member of its source when its Pod, which prefers another member, is created first or at the same time", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, nodeTwo)
		s.pod(ctx, "first", using("copy"), preferring(nodeOne))
		s.claim(ctx, "copy", from("golden"))
		s.claim(ctx, "other", from("golden"))
		s.pod(ctx, "with", using("other"), preferring(nodeOne))
		s.running(ctx, "first", nodeTwo)
		s.running(ctx, "with", nodeTwo)
		s.copied(ctx, "copy", two)
		s.copied(ctx, "other", two)
	}, SpecTimeout(storyTime))

	It("determines the member in which its Pod's other claims are provisioned", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, nodeTwo)
		s.claim(ctx, "scratch")
		s.claim(ctx, "at-once", ofClass(classParameter))
		s.claim(ctx, "copy", from("golden"))
		s.pod(ctx, "app", using("copy"), using("scratch"), using("at-once"), preferring(nodeOne))
		s.running(ctx, "app", nodeTwo)
		s.copied(ctx, "copy", two)
		for _, name := range []string{"scratch", "at-once"} {
			Expect(s.book(one, name).LiveIDs()).To(BeEmpty())
			Expect(s.book(two, name).LiveIDs()).To(HaveLen(1))
		}
	}, SpecTimeout(storyTime))

	It("waits for its source, as the claim and the Pod report", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "copy", from("golden"))
		s.pod(ctx, "app", using("copy"), preferring(nodeOne))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", tells("SourceNotReady", `claim "golden"`, "does not exist"))
		until[corev1.Pod](ctx, s, x.Host, "app", tells("SourceNotReady", `claim "copy"`))
		s.claim(ctx, "golden")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", tells("SourceNotReady", "is not bound yet"))
		s.pod(ctx, "golden", using("golden"), on(nodeTwo))
		s.running(ctx, "app", nodeTwo)
		s.bound(ctx, "copy")
		Expect(s.sameData(two, "golden", "copy")).To(BeTrue())
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", suite.Unreported())
	}, SpecTimeout(storyTime))

	It("continues after its source's member was away, and after the manager was killed", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, nodeTwo)
		back := cutOff(ctx, two, controlplane.Cut)
		s.claim(ctx, "copy", from("golden"))
		s.pod(ctx, "app", using("copy"), preferring(nodeOne))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", And(tells("MemberAway", two, "golden"), steered(nodeTwo)))
		s.barrier(ctx, nodeOne)
		Expect(s.book(one, "copy").Calls(ledger.CreateVolume)).To(BeZero())
		By("killing the manager")
		Expect(x.Manager.Kill()).To(Succeed())
		Expect(x.Manager.Start(ctx)).To(Succeed())
		back()
		s.running(ctx, "app", nodeTwo)
		s.copied(ctx, "copy", two)
	}, SpecTimeout(storyTime))

	It("is created only once if the manager is killed while the driver is slow", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, nodeOne)
		s.faulty(one, codes.Unavailable, "not yet", "copy")
		s.claim(ctx, "copy", from("golden"))
		s.pod(ctx, "app", using("copy"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "copy", HaveField("Spec.DataSource.Name", "golden"))
		Expect(x.Manager.Kill()).To(Succeed())
		s.repaired(one)
		Expect(x.Manager.Start(ctx)).To(Succeed())
		s.running(ctx, "app", nodeOne)
		s.copied(ctx, "copy", one)
	}, SpecTimeout(storyTime))

	It("gets a promise for the member of its source if its class uses promises", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, nodeTwo)
		s.claim(ctx, "copy", ofClass(classPromise), from("golden"))
		claim := s.bound(ctx, "copy")
		pv := until[corev1.PersistentVolume](ctx, s, x.Host, claim.Spec.VolumeName, phase(corev1.VolumeBound))
		Expect(pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values).To(Equal([]string{idOf(ctx, x.Member(two))}))
		s.pod(ctx, "app", using("copy"), preferring(nodeOne))
		s.running(ctx, "app", nodeTwo)
		s.copied(ctx, "copy", two)

		By("cloning a promise: the clone waits for the promise's disk")
		s.claim(ctx, "empty", ofClass(classPromise))
		s.bound(ctx, "empty")
		s.claim(ctx, "second", from("empty"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "second", tells("SourceNotReady", "no disk yet"))
		s.pod(ctx, "empty", using("empty"), on(nodeOne))
		s.pod(ctx, "second", using("second"), preferring(nodeTwo))
		s.running(ctx, "second", nodeOne)
		Expect(s.sameData(one, "empty", "second")).To(BeTrue())
	}, SpecTimeout(storyTime))

	It("is completed even if its source is deleted, because the deletion waits", func(ctx SpecContext) {
		s := begin(ctx)
		source := s.golden(ctx, nodeOne)
		Expect(x.Fleet.Member(one).SetFaults(csidriver.Fault{Method: ledger.CreateVolume, Claim: s.namespace + "/copy", Stall: true})).To(Succeed())
		DeferCleanup(func() { s.repaired(one) })
		s.claim(ctx, "copy", from("golden"))
		s.pod(ctx, "app", using("copy"))
		const protection = "provisioner.storage.kubernetes.io/cloning-protection"
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "golden", HaveField("Finalizers", ContainElement(protection)))
		s.deleteClaim(ctx, "golden")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "golden", HaveField("DeletionTimestamp", Not(BeNil())))
		Expect(s.book(one, "golden").LiveIDs()).To(HaveLen(1))
		s.repaired(one) // before the call times out, because a retry would fail for a source that is being deleted
		s.running(ctx, "app", nodeOne)
		s.copied(ctx, "copy", one)
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "golden")
		gone[corev1.PersistentVolume](ctx, s, x.Host, source.Spec.VolumeName)
	}, SpecTimeout(storyTime))

	It("is not created from another claim that has taken over the name of its source", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, nodeOne)
		s.claim(ctx, "copy", from("golden"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", steered(nodeOne))
		s.deleteClaim(ctx, "golden")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", tells("SourceGone", "golden"))
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "golden")
		s.claim(ctx, "golden")
		s.pod(ctx, "golden", using("golden"), on(nodeOne))
		s.running(ctx, "golden", nodeOne)
		s.pod(ctx, "app", using("copy"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", tells("SourceGone", "another claim has its name now", "create it again"))
		until[corev1.Pod](ctx, s, x.Host, "app", tells("SourceGone", `claim "copy"`))
		s.neverMade(ctx, "copy")

		By("following the message's advice")
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "copy")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy")
		s.claim(ctx, "copy", from("golden"))
		s.pod(ctx, "app", using("copy"))
		s.running(ctx, "app", nodeOne)
		Expect(s.sameData(one, "golden", "copy")).To(BeTrue())
	}, SpecTimeout(storyTime))

	It("is withdrawn if its source is deleted before the member begins to copy it, and never copies another claim with the source's name", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, nodeOne)
		for _, node := range x.Fleet.Member(one).NodeNames() {
			inMember(ctx, x.Member(one), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: s.namespace + "-" + node, Labels: map[string]string{"in-the-way-of": s.namespace}},
				Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "example/main"}}},
			})
		}
		s.claim(ctx, "copy", from("golden"))
		s.pod(ctx, "app", using("copy"), awayFrom("in-the-way-of", s.namespace))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", tells("LeafPodUnschedulable", "nodes are available", `has the data source of the claim, claim "golden"`))
		s.deleteClaim(ctx, "golden")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "copy")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "golden")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", tells("SourceGone", "golden", "was deleted"))
		s.claim(ctx, "golden")
		s.pod(ctx, "golden", using("golden"), on(nodeOne))
		s.running(ctx, "golden", nodeOne)
		s.pod(ctx, "free", using("copy"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", And(phase(corev1.ClaimPending), tells("SourceGone", "another claim has its name now")))
		s.neverMade(ctx, "copy")
	}, SpecTimeout(storyTime))

	It("is not reassigned if the member of its source cannot provision it, and blocks the deletion of its source as in a single cluster", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := s.impatient(ctx)
		s.golden(ctx, nodeOne)
		s.faulty(one, codes.Internal, "the array is on fire", "copy")
		s.claim(ctx, "copy", ofClass(class), from("golden"))
		s.pod(ctx, "app", using("copy"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", tells("ProvisioningFailed", "the array is on fire", `has the data source of the claim, claim "golden"`))
		By("making another claim fail: Xylem reassigns it")
		s.faulty(one, codes.Internal, "the array is on fire", "copy", "later")
		s.claim(ctx, "later", ofClass(class))
		s.pod(ctx, "later", using("later"), preferring(nodeOne))
		s.running(ctx, "later", nodeTwo)
		Expect(s.book(two, "copy").Calls(ledger.CreateVolume)).To(BeZero())

		By("deleting the source: the deletion waits until the clone is deleted")
		s.deleteClaim(ctx, "golden")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "golden", HaveField("DeletionTimestamp", Not(BeNil())))
		s.barrier(ctx, nodeOne)
		Expect(s.book(one, "golden").LiveIDs()).To(HaveLen(1))
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "copy")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "golden")
	}, SpecTimeout(storyTime))

	DescribeTable("is rejected with a reason, and no empty disk is provisioned",
		func(ctx SpecContext, reason string, says []string, claim claimOption, pod podOption) {
			s := begin(ctx)
			s.golden(ctx, nodeTwo, ofSize("2Gi"))
			s.claim(ctx, "copy", from("golden"), ofSize("2Gi"), claim)
			s.pod(ctx, "app", using("copy"), pod)
			s.shown(ctx, "PersistentVolumeClaim", "copy", reason, says...)
			until[corev1.Pod](ctx, s, x.Host, "app", tells(reason, `claim "copy"`))
			s.neverMade(ctx, "copy")
			until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", phase(corev1.ClaimPending))
		},
		Entry("a request for less than the source has", SpecTimeout(storyTime), "SourceMismatch", []string{"1Gi", "2Gi", "create it again with 2Gi"}, ofSize("1Gi"), anyPod),
		Entry("a Pod whose node affinity excludes the member", suite.Slow, SpecTimeout(storyTime), "SourceElsewhere", []string{two, `Pod "app"`, "node affinity"}, anyClaim, on(nodeOne)),
	)

	It("is rejected if another claim of its Pod is in another member", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, nodeTwo)
		s.claim(ctx, "here")
		s.pod(ctx, "here", using("here"), on(nodeOne))
		s.running(ctx, "here", nodeOne)
		s.claim(ctx, "copy", from("golden"))
		s.pod(ctx, "app", using("copy"), using("here"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", tells("SourceElsewhere", two, `claim "here"`))
		until[corev1.Pod](ctx, s, x.Host, "app", tells("SourceElsewhere", `claim "copy"`))
		s.neverMade(ctx, "copy")
	}, SpecTimeout(storyTime))

	It("is rejected if the member lacks its class, or has it with another driver", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, nodeTwo)
		foreign := controlplane.Class(s.namespace, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
		foreign.Provisioner = "other.example.com"
		inMember(ctx, x.Member(two), &foreign)
		inMember(ctx, x.Host, hostClass(s.namespace, s.namespace))
		s.claim(ctx, "copy", ofClass(s.namespace), from("golden"))
		s.pod(ctx, "app", using("copy"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", tells("SourceMismatch", "other.example.com", controlplane.DefaultDriverName, s.namespace))
		s.claim(ctx, "lacking", ofClass(classMissing), from("golden"))
		s.pod(ctx, "lacking", using("lacking"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "lacking", tells("ClassNotOffered", two, classMissing))
		s.neverMade(ctx, "copy")
		s.neverMade(ctx, "lacking")
	}, SpecTimeout(storyTime))

	It("is rejected if its source is bound to a volume that belongs to the host", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		pv := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: "by-hand", Capacity: s.newClaim("").Spec.Resources.Requests,
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "host.example.com", VolumeHandle: "1"}},
			},
		}
		inMember(ctx, x.Host, pv)
		s.claim(ctx, "golden", ofClass("by-hand"), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = pv.Name })
		s.bound(ctx, "golden")
		s.claim(ctx, "copy", from("golden"))
		s.pod(ctx, "app", using("copy"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", tells("DataSourceUnsupported", "host.example.com", "not in a member"))
		s.neverMade(ctx, "copy")
	}, SpecTimeout(storyTime))

	It("is left to a populator of the host, which declares the kind of its source in a VolumePopulator", func(ctx SpecContext) {
		s := begin(ctx)
		const group = "populator.storage.k8s.io"
		inMember(ctx, x.Host, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "volumepopulators." + group, "annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for tests"}},
			"spec": map[string]any{
				"group": group, "scope": "Cluster", "names": map[string]any{"kind": "VolumePopulator", "plural": "volumepopulators"},
				"versions": []any{map[string]any{"name": "v1beta1", "served": true, "storage": true, "schema": map[string]any{
					"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				}}},
			},
		}})
		Eventually(ctx, func() error { // repeat until the API server serves the CRD
			return x.Host.API.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": group + "/v1beta1", "kind": "VolumePopulator", "metadata": map[string]any{"name": "images"},
				"sourceKind": map[string]any{"group": "example.com", "kind": "Image"},
			}})
		}).Should(Succeed())
		s.claim(ctx, "copy", ofImage)
		s.pod(ctx, "app", using("copy"), on(nodeOne))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", HaveField("Annotations", HaveKey(route.AnnSelectedNode)))
		s.barrier(ctx, nodeOne)
		s.unwarned(ctx, x.Host)

		s.claim(ctx, "other", ofImage, func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSourceRef.Kind = "Disk" })
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "other", tells("DataSourceUnsupported", "Disk.example.com"))
	}, SpecTimeout(storyTime))

	It("is left to the member's populator if an admin lists the kind of its source", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		listing := func(ctx context.Context, kinds string) {
			patch(ctx, x.Host, &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: two}}, fmt.Sprintf(`{"spec":{"storage":{"dataSources":%s}}}`, kinds))
		}
		listing(ctx, `[{"apiGroup":"example.com","kind":"Image"}]`)
		DeferCleanup(func(ctx SpecContext) { listing(ctx, "null") }, NodeTimeout(settle))
		s.claim(ctx, "copy", ofImage)
		s.pod(ctx, "app", using("copy"), preferring(nodeOne))
		leaf := until[corev1.PersistentVolumeClaim](ctx, s, x.Member(two), "copy", phase(corev1.ClaimPending))
		Expect(leaf.Spec.DataSourceRef).To(Equal(&corev1.TypedObjectReference{APIGroup: ptr.To("example.com"), Kind: "Image", Name: "golden"}))
		s.neverMade(ctx, "copy") // because no populator runs
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "copy")
	}, SpecTimeout(storyTime))
})

var _ = Describe("The clone sample", func() {
	It("runs in the member of its source", func(ctx SpecContext) {
		s := sample(ctx, "nginx.yaml", one)
		s.bound(ctx, "nginx-pvc")
		_, err := x.Kubectl(ctx, x.Fleet.Host, "apply", "-f", x.Root("config", "samples", "clone.yaml"))
		Expect(err).NotTo(HaveOccurred())
		s.running(ctx, "nginx-copy", nodeOne)
		Expect(s.sameData(one, "nginx-pvc", "nginx-copy")).To(BeTrue())
	}, SpecTimeout(storyTime))
})

// sameData reports whether the disks of two claims in a member have the same data.
func (s *story) sameData(member, a, b string) bool {
	GinkgoHelper()
	var contents []string
	for _, claim := range []string{a, b} {
		disks := s.book(member, claim).LiveIDs()
		Expect(disks).To(HaveLen(1), claim)
		content, err := csidriver.ReadData(x.Fleet.Member(member).DriverDir(), disks[0])
		Expect(err).NotTo(HaveOccurred())
		contents = append(contents, content)
	}
	return len(slices.Compact(contents)) == 1
}

func anyPod(*corev1.Pod) {}

func anyClaim(*corev1.PersistentVolumeClaim) {}

func ofImage(c *corev1.PersistentVolumeClaim) {
	c.Spec.DataSource = nil
	c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: ptr.To("example.com"), Kind: "Image", Name: "golden"}
}

var _ = Describe("A restore from a snapshot in a host that does not serve snapshots", func() {
	It("waits, and reports what to install", Label(mistakes), func(ctx SpecContext) {
		s := begin(ctx)
		s.mistake("The claim restores a snapshot, but the host does not serve snapshots")
		s.claim(ctx, "copy", func(c *corev1.PersistentVolumeClaim) { harness.FromSnapshot(c, "golden") })
		s.pod(ctx, "app", using("copy"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", tells("SourceNotReady", `snapshot "golden"`, "the host does not serve snapshots", "snapshot-controller"))
		until[corev1.Pod](ctx, s, x.Host, "app", tells("SourceNotReady", `claim "copy"`))
		s.why(ctx, "Pod", "app", v1alpha1.ReasonSourceNotReady, `snapshot "golden"`, "snapshot-controller")
		s.why(ctx, "PersistentVolumeClaim", "copy", v1alpha1.ReasonSourceNotReady, `snapshot "golden"`, "snapshot-controller")
		s.neverMade(ctx, "copy")
	}, SpecTimeout(storyTime))
})
