package snapshots_test

import (
	"context"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// imported creates a VolumeSnapshot for an existing snapshot in a cluster's storage, as an admin
// would.
func (s *story) imported(ctx context.Context, c *harness.Cluster, name, driver, handle string) *snapshotv1.VolumeSnapshotContent {
	GinkgoHelper()
	content := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: "imported-" + s.namespace + "-" + name},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			Driver: driver, DeletionPolicy: policyDelete, VolumeSnapshotRef: corev1.ObjectReference{Namespace: s.namespace, Name: name},
			Source: snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: &handle},
		},
	}
	Expect(c.Create(ctx, content)).To(Succeed())
	vs := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &content.Name}},
	}
	Expect(c.Create(ctx, vs)).To(Succeed())
	return content
}

// destroyed destroys a snapshot in member two's storage, as the member's admin would: it imports
// the snapshot, and deletes the import.
func (s *story) destroyed(ctx context.Context, claim, handle string) {
	GinkgoHelper()
	m := x.Member(two)
	s.imported(ctx, m, "copy-of-the-handle", controlplane.DefaultDriverName, handle)
	until[snapshotv1.VolumeSnapshot](ctx, s, m, "copy-of-the-handle", isReady(true))
	s.remove(ctx, m, &snapshotv1.VolumeSnapshot{}, "copy-of-the-handle")
	Eventually(func() []string { return s.taken(two, claim) }).Should(BeEmpty())
}

var _ = Describe("A restore whose snapshot has changed", func() {
	It("does not use a replacement that the member took, and reports the problem (I2, I8)", func(ctx SpecContext) {
		s := begin(ctx)
		vs := s.golden(ctx, deletes)
		_, content := s.leaf(ctx, two, "golden")
		s.destroyed(ctx, "data", *content.Status.SnapshotHandle)
		By("removing the content as the member's admin, after which the member takes another snapshot with the same name")
		s.remove(ctx, x.Member(two), &snapshotv1.VolumeSnapshotContent{}, content.Name)
		patch(ctx, x.Member(two), &snapshotv1.VolumeSnapshotContent{ObjectMeta: named(content.Name)}, `{"metadata":{"finalizers":null}}`)
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Member(two), content.Name, And(HaveField("UID", Not(Equal(content.UID))), isReady(true)))
		const replaced = "is not the one that was taken"
		s.problem(ctx, vs, v1alpha1.ReasonSnapshotReplaced, two, replaced)
		Expect(s.taken(two, "data")).To(HaveLen(1))

		s.restore(ctx, "copy", "golden")
		s.uses(ctx, "app", "", "copy")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", waits(v1alpha1.ReasonSourceNotReady, replaced))
		until[corev1.Pod](ctx, s, x.Host, "app", waits(v1alpha1.ReasonSourceNotReady, `claim "copy"`))
		s.neverMade(ctx, "copy")
		s.remove(ctx, x.Host, &corev1.Pod{}, "app")
		s.remove(ctx, x.Host, &corev1.PersistentVolumeClaim{}, "copy")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy")

		By("deleting the snapshot: the replacement with the same name is destroyed as well")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "golden")
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs))
		Eventually(func() []string { return s.taken(two, "data") }).Should(BeEmpty())
	}, SpecTimeout(storyTime))

	It("is rejected if the snapshot belongs to another driver in the host", func(ctx SpecContext) {
		s := begin(ctx)
		const other = "other.example.com"
		content := s.imported(ctx, x.Host, "theirs", other, "their-snapshot")
		before := content.DeepCopy()
		content.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: ptr.To("their-snapshot"), ReadyToUse: ptr.To(true)}
		Expect(x.Host.API.Status().Patch(ctx, content, client.MergeFrom(before))).To(Succeed())
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "theirs", isReady(true))
		s.restore(ctx, "copy", "theirs")
		s.uses(ctx, "app", "", "copy")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", waits(v1alpha1.ReasonDataSourceUnsupported, other, "not in a member", "another source"))
		until[corev1.Pod](ctx, s, x.Host, "app", waits(v1alpha1.ReasonDataSourceUnsupported, `claim "copy"`))
		s.neverMade(ctx, "copy")
		now := until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, content.Name, isReady(true))
		Expect(now.Annotations).NotTo(HaveKey(HavePrefix(v1alpha1.Prefix)))
		By("completing the deletion as the other driver would")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "theirs")
		patch(ctx, x.Host, &snapshotv1.VolumeSnapshotContent{ObjectMeta: named(content.Name)}, `{"metadata":{"finalizers":null}}`)
	}, SpecTimeout(storyTime))

	It("waits while the snapshot's member is deregistered, and continues when it is registered again", func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, deletes)
		until[corev1.Pod](ctx, s, x.Host, "data", HaveField("Status.Phase", corev1.PodRunning))
		Expect(x.Deregister(ctx, two)).To(Succeed())
		again := func() {
			GinkgoHelper()
			Expect(x.Register(ctx, two, two)).To(Succeed())
		}
		s.restore(ctx, "copy", "golden")
		s.uses(ctx, "app", "", "copy")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", waits(v1alpha1.ReasonSourceNotReady, `snapshot "golden"`, "was deregistered"))
		until[corev1.Pod](ctx, s, x.Host, "app", waits(v1alpha1.ReasonSourceNotReady, `claim "copy"`))
		s.data(ctx, "barrier", nodeOne)
		again()
		s.running(ctx, "app", nodeTwo)
		s.restored(ctx, "copy")
	}, SpecTimeout(storyTime))

	It("changes the volume mode only if the admins of both clusters allow it", func(ctx SpecContext) {
		s := begin(ctx)
		vs := s.golden(ctx, deletes)
		_, leaf := s.leaf(ctx, two, "golden")
		s.restore(ctx, "raw", "golden", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) })
		pod := harness.Pod(s.namespace, "app", "raw")
		pod.Spec.Containers[0].VolumeMounts = nil
		pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "raw", DevicePath: "/dev/data"}}
		Expect(x.Host.Create(ctx, pod)).To(Succeed())
		const allowed = `{"metadata":{"annotations":{"snapshot.storage.kubernetes.io/allow-volume-mode-change":"true"}}}`
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "raw", waits(v1alpha1.ReasonSourceMismatch, "volumeMode Block", "allow-volume-mode-change=true", contentName(vs), leaf.Name))
		s.neverMade(ctx, "raw")

		By("allowing the change as the host's admin, although the member's provisioner still rejects it and Xylem reports why")
		patch(ctx, x.Host, &snapshotv1.VolumeSnapshotContent{ObjectMeta: named(contentName(vs))}, allowed)
		s.noted(ctx, "PersistentVolumeClaim", "raw", "ProvisioningFailed", "allow-volume-mode-change", leaf.Name)
		Expect(s.book(two, "raw").LiveIDs()).To(BeEmpty())

		By("also allowing the change as the member's admin")
		patch(ctx, x.Member(two), &snapshotv1.VolumeSnapshotContent{ObjectMeta: named(leaf.Name)}, allowed)
		s.running(ctx, "app", nodeTwo)
		s.restored(ctx, "raw")
		claim := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "raw", HaveField("Status.Phase", corev1.ClaimBound))
		Expect(until[corev1.PersistentVolume](ctx, s, x.Host, claim.Spec.VolumeName, Not(BeNil())).Spec.VolumeMode).To(HaveValue(Equal(corev1.PersistentVolumeBlock)))
	}, SpecTimeout(storyTime))

	It("is not created from a retained snapshot that an admin imports by its handle, and does not change that snapshot (I2, I8)", func(ctx SpecContext) {
		s := begin(ctx)
		vs := s.golden(ctx, keeps)
		kept := until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contentName(vs), isReady(true))
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "golden")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "golden")
		gone[snapshotv1.VolumeSnapshot](ctx, s, x.Member(two), "golden")

		content := s.handOver(ctx, "again", snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: ptr.To(handleOf(kept))})
		until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, "again", And(fails("does not import snapshots", "in the member"), isReady(false)))
		s.restore(ctx, "copy", "again")
		s.uses(ctx, "app", "", "copy")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", waits(v1alpha1.ReasonSourceNotReady, "does not import snapshots"))
		s.neverMade(ctx, "copy")
		s.remove(ctx, x.Host, &corev1.Pod{}, "app")
		s.remove(ctx, x.Host, &corev1.PersistentVolumeClaim{}, "copy")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy")
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, "again")
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, content)
		s.goesOn(ctx, "later", "data")
		Expect(s.taken(two, "data")).To(HaveLen(2))
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, kept.Name, And(isReady(true), HaveField("Status.SnapshotHandle", Equal(kept.Status.SnapshotHandle))))

		By("creating only the content again, as a backup tool does, for a VolumeSnapshot that does not exist: Xylem reports the problem on the content")
		again := kept.DeepCopy()
		again.ObjectMeta = metav1.ObjectMeta{Name: "backup-of-" + kept.Name}
		again.Spec.Source = snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: ptr.To(handleOf(kept))}
		again.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: s.namespace, Name: "backup"}
		Expect(x.Host.Create(ctx, again)).To(Succeed())
		until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, again.Name, fails("does not import snapshots", "in the member"))
		s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshotContent{}, again.Name)
		gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, again.Name)

		By("checking that the member's admin can restore the snapshot's data")
		_, name, _ := strings.Cut(handleOf(kept), "/")
		leaf := until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Member(two), name, HaveField("Spec.DeletionPolicy", policyRetain))
		Expect(csidriver.ReadSnapshotData(x.Fleet.Member(two).DriverDir(), *leaf.Status.SnapshotHandle)).To(Equal(s.goldenData()))
	}, SpecTimeout(storyTime))
})
