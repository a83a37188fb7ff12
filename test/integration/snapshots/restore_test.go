package snapshots_test

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// change modifies a claim before it is created.
type change func(*corev1.PersistentVolumeClaim)

func asItIs(*corev1.PersistentVolumeClaim) {}

func ofClass(class string) change {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class }
}

// restore creates a claim whose data source is a snapshot.
func (s *story) restore(ctx context.Context, name, snapshot string, changes ...change) {
	GinkgoHelper()
	claim := harness.Claim(s.namespace, name, controlplane.ClassHostpath)
	claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: snapshot}
	for _, c := range changes {
		c(claim)
	}
	Expect(x.Host.Create(ctx, claim)).To(Succeed())
}

// uses creates a Pod that uses claims and, if a node is given, prefers that node.
func (s *story) uses(ctx context.Context, name, node string, claims ...string) {
	GinkgoHelper()
	pod := harness.Pod(s.namespace, name, claims...)
	if node != "" {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}},
		}}
	}
	Expect(x.Host.Create(ctx, pod)).To(Succeed())
}

func (s *story) running(ctx context.Context, pod, node string) {
	GinkgoHelper()
	until[corev1.Pod](ctx, s, x.Host, pod, And(HaveField("Spec.NodeName", node), HaveField("Status.Phase", corev1.PodRunning)))
}

// golden creates a claim in the second member, writes data to its disk, takes a snapshot, and then
// overwrites the data.
func (s *story) golden(ctx context.Context, class string) *snapshotv1.VolumeSnapshot {
	GinkgoHelper()
	s.data(ctx, "data", nodeTwo)
	s.write(two, "data", s.goldenData())
	vs := s.ready(ctx, "golden", "data", class)
	s.write(two, "data", "overwritten")
	return vs
}

func (s *story) goldenData() string { return "golden data of " + s.namespace }

func (s *story) write(member, claim, content string) {
	GinkgoHelper()
	disks := s.book(member, claim).LiveIDs()
	Expect(disks).To(HaveLen(1))
	Expect(csidriver.WriteData(x.Fleet.Member(member).DriverDir(), disks[0], content)).To(Succeed())
}

// restored waits until a claim is bound, and verifies that its only disk in any member has the
// snapshot's data.
func (s *story) restored(ctx context.Context, claim string) {
	GinkgoHelper()
	until[corev1.PersistentVolumeClaim](ctx, s, x.Host, claim, And(HaveField("Status.Phase", corev1.ClaimBound)))
	Expect(s.book(one, claim).Calls(ledger.CreateVolume)).To(BeZero())
	disks := s.book(two, claim).LiveIDs()
	Expect(disks).To(HaveLen(1))
	Expect(csidriver.ReadData(x.Fleet.Member(two).DriverDir(), disks[0])).To(Equal(s.goldenData()))
}

// neverMade verifies that no member's driver received a request to create a disk for a claim. It
// waits for a barrier in each member first.
func (s *story) neverMade(ctx context.Context, claim string) {
	GinkgoHelper()
	for member, node := range map[string]string{one: nodeOne, two: nodeTwo} {
		barrier := "barrier-" + member + "-" + claim
		s.data(ctx, barrier, node)
		Expect(s.book(member, claim).Calls(ledger.CreateVolume)).To(BeZero(), "in %s", member)
	}
}

// waits matches a claim or Pod with a Xylem condition that reports why the object waits.
func waits(reason string, parts ...string) gomegatypes.GomegaMatcher {
	matchers := []gomegatypes.GomegaMatcher{
		HaveField("Status", corev1.ConditionFalse), HaveField("Reason", reason),
		WithTransform(func(c any) string { return fmt.Sprint(c) }, ContainSubstring(v1alpha1.Prefix)),
	}
	for _, part := range parts {
		matchers = append(matchers, HaveField("Message", ContainSubstring(part)))
	}
	return HaveField("Status.Conditions", ContainElement(And(matchers...)))
}

// steered matches a claim for which Xylem selected a node.
func steered(node string) gomegatypes.GomegaMatcher {
	return HaveField("Annotations", And(HaveKeyWithValue(route.AnnSelectedNode, node), HaveKeyWithValue(v1alpha1.AnnotationSteeredTo, node), HaveKey(v1alpha1.AnnotationSource)))
}

var _ = Describe("A restore from a snapshot", func() {
	It("is created in the member that has the snapshot, regardless of the scheduler's preference and of whether the Pod is created before, with or after the claim", func(ctx SpecContext) {
		s := begin(ctx)
		vs := s.golden(ctx, deletes)
		s.uses(ctx, "before", nodeOne, "first")
		s.restore(ctx, "first", "golden")
		s.restore(ctx, "second", "golden")
		s.uses(ctx, "with", nodeOne, "second")
		s.restore(ctx, "third", "golden", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		})
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "third", steered(nodeTwo))
		s.uses(ctx, "after", nodeOne, "third")
		for pod, claim := range map[string]string{"before": "first", "with": "second", "after": "third"} {
			s.running(ctx, pod, nodeTwo)
			s.restored(ctx, claim)
		}

		By("checking that the leaf claim names the same snapshot and records its UID")
		root := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "third", HaveField("Annotations", Not(HaveKey(v1alpha1.AnnotationSteeredTo))))
		Expect(root.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationSource, leafID(ctx, two)+"/"+string(vs.UID)))
		Expect(root).To(suite.Unreported())
		leaf := until[corev1.PersistentVolumeClaim](ctx, s, x.Member(two), "third", HaveField("Status.Phase", corev1.ClaimBound))
		Expect(leaf.Spec.DataSource).To(Equal(root.Spec.DataSource))
		Expect(leaf.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationSource, string(vs.UID)))

		By("deleting the snapshot: the restored disk is kept")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "golden")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "golden")
		Eventually(func() []string { return s.taken(two, "data") }).Should(BeEmpty())
		s.restored(ctx, "third")
	}, SpecTimeout(storyTime))

	It("waits until its snapshot exists and is ready, and quotes the snapshot's error", func(ctx SpecContext) {
		s := begin(ctx)
		s.restore(ctx, "copy", "golden")
		s.uses(ctx, "app", nodeOne, "copy")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", waits(v1alpha1.ReasonSourceNotReady, `snapshot "golden"`, "does not exist"))
		until[corev1.Pod](ctx, s, x.Host, "app", waits(v1alpha1.ReasonSourceNotReady, `claim "copy"`))
		s.data(ctx, "data", nodeTwo)
		s.write(two, "data", s.goldenData())
		member := x.Fleet.Member(two)
		Expect(member.SetFaults(csidriver.Fault{Method: ledger.CreateSnapshot, Claim: s.namespace + "/data", Code: codes.ResourceExhausted, Message: "the pool tank7 is full"})).To(Succeed())
		DeferCleanup(func() { Expect(member.SetFaults()).To(Succeed()) })
		s.take(ctx, "golden", "data", deletes)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", waits(v1alpha1.ReasonSourceNotReady, "is not ready to use", "the pool tank7 is full"))
		By("checking that `why` reports the same cause of the Pod and of the snapshot")
		for object, summary := range map[string]string{
			"pod/app":               `Pod "` + s.namespace + `/app" does not run: the claim waits for its data source, snapshot "golden"`,
			"volumesnapshot/golden": `VolumeSnapshot "` + s.namespace + `/golden" is not ready to use: `,
		} {
			Eventually(ctx, func(ctx context.Context) string {
				out, _, _ := suite.Plugin(ctx, x.Fleet.Host.KubeconfigPath(), clock.RealClock{}, "-n", s.namespace, "why", object)
				return out
			}).Should(And(HavePrefix(summary), ContainSubstring("the pool tank7 is full"), ContainSubstring("\nTo do: ")))
		}
		s.neverMade(ctx, "copy")
		Expect(member.SetFaults()).To(Succeed())
		s.running(ctx, "app", nodeTwo)
		s.restored(ctx, "copy")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", suite.Unreported())
	}, SpecTimeout(storyTime))

	It("gets a promise for the member that has the snapshot", func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, deletes)
		class := harness.HostClass(s.namespace, map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise})
		Expect(x.Host.Create(ctx, class)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, class)).To(Succeed()) })
		s.restore(ctx, "copy", "golden", ofClass(class.Name))
		claim := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", HaveField("Status.Phase", corev1.ClaimBound))
		pv := until[corev1.PersistentVolume](ctx, s, x.Host, claim.Spec.VolumeName, HaveField("Status.Phase", corev1.VolumeBound))
		Expect(pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values).To(Equal([]string{leafID(ctx, two)}))
		s.uses(ctx, "app", nodeOne, "copy")
		s.running(ctx, "app", nodeTwo)
		s.restored(ctx, "copy")
	}, SpecTimeout(storyTime))

	It("is created only once if the manager is killed during the restore, and protects its snapshot until it is complete", func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, deletes)
		member := x.Fleet.Member(two)
		Expect(member.SetFaults(csidriver.Fault{Method: ledger.CreateVolume, Claim: s.namespace + "/copy", Code: codes.Unavailable, Message: "not yet"})).To(Succeed())
		DeferCleanup(func() { Expect(member.SetFaults()).To(Succeed()) })
		s.restore(ctx, "copy", "golden")
		s.uses(ctx, "app", "", "copy")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(two), "copy", HaveField("Spec.DataSource.Name", "golden"))
		Expect(x.Manager.Kill()).To(Succeed())

		By("deleting the snapshot during the restore: as in a single cluster, the deletion waits for the restore")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "golden")
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "golden", HaveField("DeletionTimestamp", Not(BeNil())))
		Expect(x.Manager.Start(ctx)).To(Succeed())
		s.neverMade(ctx, "another")
		Expect(s.taken(two, "data")).To(HaveLen(1))
		Expect(member.SetFaults()).To(Succeed())
		s.running(ctx, "app", nodeTwo)
		s.restored(ctx, "copy")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "golden")
		Eventually(func() []string { return s.taken(two, "data") }).Should(BeEmpty())
	}, SpecTimeout(storyTime))

	It("is created from a snapshot that the host protects, although its deletion is already announced on its content", func(ctx SpecContext) {
		s := begin(ctx)
		vs := s.golden(ctx, deletes)
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "full"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("1")}},
		}
		Expect(x.Member(two).API.Create(ctx, quota)).To(Succeed())
		until[corev1.ResourceQuota](ctx, s, x.Member(two), quota.Name, HaveField("Status.Hard", HaveKey(corev1.ResourcePersistentVolumeClaims)))
		s.restore(ctx, "copy", "golden")
		s.uses(ctx, "app", "", "copy")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", waits(v1alpha1.ReasonRefusedByMember, "full"))

		By("deleting the snapshot, whose content then changes: the snapshot-controller announces the deletion early")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "golden")
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "golden", HaveField("DeletionTimestamp", Not(BeNil())))
		patch(ctx, x.Host, &snapshotv1.VolumeSnapshotContent{ObjectMeta: named(contentName(vs))}, `{"metadata":{"annotations":{"example.com/touched":"true"}}}`)
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), HaveField("Annotations", HaveKey("snapshot.storage.kubernetes.io/volumesnapshot-being-deleted")))
		s.goesOn(ctx, "barrier", "data")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", waits(v1alpha1.ReasonRefusedByMember, "full"))

		Expect(x.Member(two).API.Delete(ctx, quota)).To(Succeed())
		s.running(ctx, "app", nodeTwo)
		s.restored(ctx, "copy")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "golden")
		Eventually(func() []string { return s.taken(two, "data") }).Should(HaveLen(1)) // the barrier
	}, SpecTimeout(storyTime))

	It("continues when the member that has its snapshot is connected again after an outage", func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, deletes)
		proxy := x.Fleet.Member(two).Proxy()
		Expect(proxy.SetMode(controlplane.Cut)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		}, NodeTimeout(settle))
		registration(ctx, two, says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonUnreachable))
		s.restore(ctx, "copy", "golden")
		s.uses(ctx, "app", nodeOne, "copy")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", And(waits(v1alpha1.ReasonMemberAway, two, `snapshot "golden"`), steered(nodeTwo)))
		Expect(s.book(one, "copy").Calls(ledger.CreateVolume)).To(BeZero())
		Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
		s.running(ctx, "app", nodeTwo)
		s.restored(ctx, "copy")
	}, SpecTimeout(storyTime))

	It("is not created from another snapshot that has taken over the name of its source", func(ctx SpecContext) {
		s := begin(ctx)
		vs := s.golden(ctx, deletes)
		class := harness.HostClass(s.namespace, map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise})
		Expect(x.Host.Create(ctx, class)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, class)).To(Succeed()) })
		s.restore(ctx, "copy", "golden", ofClass(class.Name))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", And(HaveField("Status.Phase", corev1.ClaimBound),
			HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationSource, leafID(ctx, two)+"/"+string(vs.UID)))))
		By("deleting the snapshot, and ending its deletion by force, because Xylem keeps its data for the claim")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "golden")
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), fails(`claim "copy"`))
		patch(ctx, x.Host, &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "golden"}}, `{"metadata":{"finalizers":null}}`)
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "golden")
		s.take(ctx, "golden", "data", deletes)
		s.uses(ctx, "app", nodeTwo, "copy")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", waits(v1alpha1.ReasonSourceGone, "another snapshot has its name now", "create it again"))
		s.neverMade(ctx, "copy")
		Expect(s.taken(two, "data")).To(HaveLen(1))
	}, SpecTimeout(storyTime))

	DescribeTable("is rejected with a reason, and no empty disk is provisioned",
		func(ctx SpecContext, reason string, parts []string, claim change, only string) {
			s := begin(ctx)
			s.golden(ctx, deletes)
			s.restore(ctx, "copy", "golden", claim)
			pod := harness.Pod(s.namespace, "app", "copy")
			if only == "device" {
				pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "copy", DevicePath: "/dev/data"}}
			} else if only != "" {
				harness.OnNodes(pod, only)
			}
			Expect(x.Host.Create(ctx, pod)).To(Succeed())
			until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", And(HaveField("Status.Phase", corev1.ClaimPending), waits(reason, parts...)))
			until[corev1.Pod](ctx, s, x.Host, "app", waits(reason, `claim "copy"`))
			s.noted(ctx, "PersistentVolumeClaim", "copy", reason)
			s.neverMade(ctx, "copy")
		},
		Entry("a request for less than the snapshot needs", SpecTimeout(storyTime), v1alpha1.ReasonSourceMismatch, []string{"512Mi", "create it again with 1Gi"},
			change(func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("512Mi")
			}), ""),
		Entry("another volume mode", SpecTimeout(storyTime), v1alpha1.ReasonSourceMismatch, []string{"volumeMode Block", "Filesystem"},
			change(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }), "device"),
		Entry("a Pod whose node selector excludes the member", SpecTimeout(storyTime), v1alpha1.ReasonSourceElsewhere, []string{two, `Pod "app"`}, change(asItIs), nodeOne),
		Entry("a snapshot that exists only in another namespace", SpecTimeout(storyTime), v1alpha1.ReasonSourceNotReady, []string{`snapshot "elsewhere"`, "does not exist in this namespace"},
			change(func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSource.Name = "elsewhere" }), ""),
	)

	It("is rejected if its class belongs to another driver in the member", func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, deletes)
		foreign := controlplane.Class(s.namespace, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
		foreign.Provisioner = "other.example.com"
		host := harness.HostClass(s.namespace, map[string]string{v1alpha1.ParameterMemberClass: s.namespace})
		Expect(x.Member(two).Create(ctx, &foreign)).To(Succeed())
		Expect(x.Host.Create(ctx, host)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.Member(two).API.Delete(ctx, &foreign)).To(Succeed())
			Expect(x.Host.API.Delete(ctx, host)).To(Succeed())
		})
		s.restore(ctx, "copy", "golden", ofClass(host.Name))
		s.uses(ctx, "app", "", "copy")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", waits(v1alpha1.ReasonSourceMismatch, "other.example.com", controlplane.DefaultDriverName, s.namespace))
		s.neverMade(ctx, "copy")
	}, SpecTimeout(storyTime))
})

var _ = Describe("The restore sample", func() {
	It("runs in the member that has its snapshot", suite.Core, func(ctx SpecContext) {
		s := &story{namespace: "test-new"}
		Expect(x.Host.CreateNamespace(ctx, s.namespace)).To(Succeed())
		DeferCleanup(s.end, NodeTimeout(settle))
		s.data(ctx, "nginx-pvc", nodeTwo)
		_, err := x.Kubectl(ctx, x.Fleet.Host, "apply", "-f", x.Root("config", "samples", "restore.yaml"))
		Expect(err).NotTo(HaveOccurred())
		s.running(ctx, "nginx-restored", nodeTwo)
	}, SpecTimeout(storyTime))
})
