package recovery_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

func memberWalks() {
	It("restores a member from a backup that lacks its newest volumes, and in which a Pod still runs that has ended since (I2, I6, I7)", func(ctx SpecContext) {
		s := begin(ctx)
		old := s.use(ctx, "old", nodeOne)
		s.use(ctx, "job", nodeOne, never)
		backup, err := x.Fleet.Member(one).Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		age := suite.Aging(ctx, x, one, two)
		volume := s.use(ctx, "new", nodeOne)
		retained := s.use(ctx, "retained", nodeOne)
		kept := until[corev1.PersistentVolume](ctx, s, x.Host, retained, phase(corev1.VolumeBound))
		Expect(x.Host.API.Patch(ctx, kept, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)))).To(Succeed())
		s.pod(ctx, "late", nodeOne, never, using("old"))
		s.running(ctx, "late")
		runs := s.ranOnce(ctx, "job", "late")
		age()

		By("1. restoring the member, while the manager runs")
		Expect(x.Fleet.Member(one).Restore(ctx, backup)).To(Succeed())

		By("2. reading the reports")
		registration(ctx, one, connected(metav1.ConditionTrue, v1alpha1.ReasonMemberRestored, v1alpha1.AnnotationConfirmRestore))
		told(ctx, "ClusterRegistration", one, v1alpha1.ReasonMemberRestored)
		s.goesOn(ctx, nodeTwo)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "new", HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", v1alpha1.ClaimPlaced), HaveField("Reason", "VolumeLost")))))
		host := until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeBound))
		until[corev1.Pod](ctx, s, x.Host, "new", phase(corev1.PodFailed))
		s.running(ctx, "old")
		gone[corev1.Pod](ctx, s, x.Member(one), "job")
		s.goesOn(ctx, nodeOne)
		runs(ctx)

		By("3. rescuing the disk, which still exists: creating a volume in the member with the disk's handle")
		driver, handle := host.Spec.CSI.VolumeAttributes[v1alpha1.AttributeDriver], host.Spec.CSI.VolumeAttributes[v1alpha1.AttributeHandle]
		Expect(s.disks(one, "new")).To(Equal([]string{handle}))
		s.rescue(ctx, x.Member(one), driver, handle)

		By("4. deleting the claim whose volume is lost, and confirming the restore")
		s.remove(ctx, "new")
		suite.ConfirmRestore(ctx, x, one, v1alpha1.ReasonMemberRestored)
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "new")
		gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
		s.goesOn(ctx, nodeOne)
		Expect(s.disks(one, "new")).To(Equal([]string{handle}))
		Expect(s.destroyed(one)).To(BeZero())
		runs(ctx)
		told(ctx, "PersistentVolume", volume, v1alpha1.ReasonVolumeLost)
		recorded(ctx, host.Labels[v1alpha1.LabelClusterID], handle)

		By("deleting a lost volume that the host retained: its disk is recorded, too")
		s.remove(ctx, "retained")
		until[corev1.PersistentVolume](ctx, s, x.Host, retained, phase(corev1.VolumeReleased))
		Expect(x.Host.API.Delete(ctx, kept)).To(Succeed())
		gone[corev1.PersistentVolume](ctx, s, x.Host, retained)
		told(ctx, "PersistentVolume", retained, v1alpha1.ReasonVolumeLost)
		recorded(ctx, host.Labels[v1alpha1.LabelClusterID], kept.Spec.CSI.VolumeAttributes[v1alpha1.AttributeHandle])

		By("deleting a claim whose volume is in the backup: its disk is destroyed, and not recorded as missing")
		Expect(x.Host.API.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "late"}})).To(Succeed())
		s.remove(ctx, "old")
		gone[corev1.PersistentVolume](ctx, s, x.Host, old)
		Expect(s.disks(one, "old")).To(BeEmpty())
		Expect(suite.LetGo(ctx, x, host.Labels[v1alpha1.LabelClusterID])).NotTo(ContainSubstring(old))
	}, SpecTimeout(storyTime))

	It("restores a member to a state before Xylem stamped its volumes, and Xylem destroys none that the host retained or abandoned (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Member(one)
		provisioner := x.Fleet.Member(one).Process(controlplane.Provisioner)
		volumes := map[string]string{"kept": "", "abandoned": "", unbound: ""}
		release := bindingHeld(ctx, member)

		By("taking a backup in which the volumes are not yet stamped, and one is not yet bound")
		Expect(provisioner.Freeze()).To(Succeed())
		DeferCleanup(provisioner.Thaw)
		for name := range volumes {
			s.claim(ctx, name, "")
			s.pod(ctx, name, nodeOne)
			until[corev1.Pod](ctx, s, member, name, Not(BeNil()))
		}
		Expect(x.Manager.Stop()).To(Succeed())
		Expect(provisioner.Thaw()).To(Succeed())
		for name := range volumes {
			volumes[name] = "pvc-" + string(until[corev1.PersistentVolumeClaim](ctx, s, member, name, phase(bindingOf(name))).UID)
			until[corev1.PersistentVolume](ctx, s, member, volumes[name], And(phase(corev1.VolumeBound),
				HaveField("Labels", Not(HaveKey(v1alpha1.LabelHost))),
				HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimDelete)))
		}
		backup, err := x.Fleet.Member(one).Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		release(ctx, s)
		Expect(x.Manager.Start(ctx)).To(Succeed())
		age := suite.Aging(ctx, x, one, two)

		By("retaining two volumes, and abandoning the third")
		for name := range volumes {
			Expect(s.bound(ctx, name).Spec.VolumeName).To(Equal(volumes[name]))
		}
		for _, name := range []string{"kept", unbound} {
			kept := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volumes[name]}}
			Expect(x.Host.API.Patch(ctx, kept, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)))).To(Succeed())
		}
		annotate(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volumes["abandoned"]}}, v1alpha1.AnnotationAbandon, "true")
		s.remove(ctx, "abandoned")
		gone[corev1.PersistentVolume](ctx, s, x.Host, volumes["abandoned"])
		gone[corev1.PersistentVolumeClaim](ctx, s, member, "abandoned")
		age()

		By("restoring the member, deleting a claim, and confirming the restore")
		Expect(x.Fleet.Member(one).Restore(ctx, backup)).To(Succeed())
		registration(ctx, one, connected(metav1.ConditionTrue, v1alpha1.ReasonMemberRestored, v1alpha1.AnnotationConfirmRestore))
		s.remove(ctx, "kept")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "kept")
		suite.ConfirmRestore(ctx, x, one, v1alpha1.ReasonMemberRestored)

		By("checking that the unbound leaf claim is kept even when its root is deleted")
		held := func() {
			GinkgoHelper()
			s.goesOn(ctx, nodeOne)
			until[corev1.PersistentVolumeClaim](ctx, s, member, unbound, And(phase(corev1.ClaimPending), HaveField("DeletionTimestamp", BeNil())))
			until[corev1.PersistentVolume](ctx, s, member, volumes[unbound], phase(corev1.VolumeBound))
		}
		held()
		s.remove(ctx, unbound)
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, unbound)
		held()

		By("letting the member bind the claim, and checking that all volumes are kept")
		release(ctx, s)
		for name, volume := range volumes {
			until[corev1.PersistentVolume](ctx, s, member, volume, HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain))
			gone[corev1.PersistentVolumeClaim](ctx, s, member, name)
		}
		s.goesOn(ctx, nodeOne)
		until[corev1.PersistentVolume](ctx, s, x.Host, volumes["kept"], phase(corev1.VolumeReleased))
		until[corev1.PersistentVolume](ctx, s, x.Host, volumes[unbound], phase(corev1.VolumeReleased))
		registration(ctx, one, HaveField("Status.Orphans", ContainElement(HaveField("Volume", volumes["abandoned"]))))
		for name := range volumes {
			Expect(s.disks(one, name)).To(HaveLen(1), name)
		}
		Expect(s.destroyed(one)).To(BeZero())
	}, SpecTimeout(storyTime))

	It("restores a member from a backup with the last renewal of its fence, and the manager detects this (I2, I6)", func(ctx SpecContext) {
		s := begin(ctx)
		manager := probesRarely(ctx)
		renewed := func() time.Time { return suite.Fence(ctx, x, one).Spec.RenewTime.Time }
		before := renewed()
		Eventually(ctx, renewed).WithTimeout(storyTime).ShouldNot(Equal(before))
		before = renewed()
		backup, err := x.Fleet.Member(one).Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		busy(ctx, x.Member(one))
		volume := s.use(ctx, "new", nodeOne)
		Expect(renewed()).To(Equal(before), "the backup must contain the last renewal")

		Expect(x.Fleet.Member(one).Restore(ctx, backup)).To(Succeed())
		registration(ctx, one, connected(metav1.ConditionTrue, v1alpha1.ReasonMemberRestored, v1alpha1.AnnotationConfirmRestore))
		Expect(manager.Done()).NotTo(BeClosed())
		until[corev1.Pod](ctx, s, x.Host, "new", phase(corev1.PodFailed))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "new", HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", v1alpha1.ClaimPlaced), HaveField("Reason", v1alpha1.ReasonVolumeLost)))))
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeBound))
		Expect(s.disks(one, "new")).To(HaveLen(1))

		By("confirming the restore")
		s.remove(ctx, "new")
		suite.ConfirmRestore(ctx, x, one, v1alpha1.ReasonMemberRestored)
		gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
		Expect(s.destroyed(one)).To(BeZero())
	}, SpecTimeout(2*storyTime))

	It("abandons a member that is lost permanently (I2, I7)", func(ctx SpecContext) {
		const lost, node = "cluster40", "kosmos-cluster40"
		s := begin(ctx)
		member, err := x.AddMember(ctx, controlplane.ClusterOptions{Name: lost})
		Expect(err).NotTo(HaveOccurred())
		Expect(x.Register(ctx, lost, lost)).To(Succeed())
		id, err := member.ID(ctx)
		Expect(err).NotTo(HaveOccurred())
		volumes := map[string]string{"kept": s.use(ctx, "kept", node), "abandoned": s.use(ctx, "abandoned", node)}
		Expect(member.SetFaults(csidriver.Fault{Method: ledger.CreateVolume, Claim: s.namespace + "/failing", Code: codes.ResourceExhausted, Message: "the pool is full"})).To(Succeed())
		s.claim(ctx, "failing", "")
		s.pod(ctx, "failing", node)
		placed := HaveField("Type", v1alpha1.ClaimPlaced)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "failing", HaveField("Status.Conditions", ContainElement(And(placed, HaveField("Status", corev1.ConditionFalse)))))

		By("removing the member")
		Expect(x.RemoveMember(ctx, lost)).To(Succeed())
		registration(ctx, lost, connected(metav1.ConditionFalse, v1alpha1.ReasonUnreachable))
		s.goesOn(ctx, nodeOne)

		By("1. abandoning one volume")
		annotate(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volumes["abandoned"]}}, v1alpha1.AnnotationAbandon, "true")
		told(ctx, "PersistentVolume", volumes["abandoned"], "Abandoned")
		recorded(ctx, id, volumes["abandoned"])
		forced := client.GracePeriodSeconds(0)
		Expect(x.Host.API.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "abandoned"}}, forced)).To(Succeed())
		s.remove(ctx, "abandoned")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "abandoned")
		gone[corev1.PersistentVolume](ctx, s, x.Host, volumes["abandoned"])

		By("2. deleting the member's registration: the deletion waits, because the member is unreachable")
		cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: lost}}
		Expect(x.Host.API.Delete(ctx, cr)).To(Succeed())
		registration(ctx, lost, HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", v1alpha1.ConditionReady), HaveField("Reason", v1alpha1.ReasonMemberUnreachable),
			HaveField("Message", ContainSubstring(v1alpha1.AnnotationForceDeregister))))))

		By("3. forcing the deregistration")
		annotate(ctx, cr, v1alpha1.AnnotationForceDeregister, "true")
		gone[v1alpha1.ClusterRegistration](ctx, s, x.Host, lost)
		gone[corev1.Node](ctx, s, x.Host, node)
		gone[corev1.Pod](ctx, s, x.Host, "kept")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "failing", HaveField("Status.Conditions", Not(ContainElement(placed))))
		recorded(ctx, id, volumes["kept"])
		until[corev1.PersistentVolume](ctx, s, x.Host, volumes["kept"], And(
			HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationClusterGone, lost)),
			HaveField("Finalizers", Not(ContainElement(v1alpha1.FinalizerLeafVolume)))))

		By("4. re-creating the claims in another member")
		s.remove(ctx, "kept")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "kept")
		Expect(s.use(ctx, "kept", nodeOne)).NotTo(Equal(volumes["kept"]))
		old := until[corev1.PersistentVolume](ctx, s, x.Host, volumes["kept"], phase(corev1.VolumeReleased))
		Expect(x.Host.API.Delete(ctx, old)).To(Succeed())
		gone[corev1.PersistentVolume](ctx, s, x.Host, old.Name)
		Expect(s.destroyed(lost)).To(BeZero())
	}, SpecTimeout(storyTime))

	It("finds another cluster at a member's address, and registers that cluster (I2, I4)", func(ctx SpecContext) {
		const wiped, node = "cluster41", "kosmos-cluster41"
		s := begin(ctx)
		member, err := x.AddMember(ctx, controlplane.ClusterOptions{Name: wiped})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(x.RemoveMember(ctx, wiped)).To(Succeed()) })
		Expect(x.Register(ctx, wiped, wiped)).To(Succeed())
		volume := s.use(ctx, "data", node)
		Expect(member.Wipe(ctx)).To(Succeed())
		Expect(x.PrepareAnew(ctx, wiped)).To(Succeed())
		mark, err := member.Audit().Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		kubeconfig, err := x.MemberKubeconfig(ctx, wiped)
		Expect(err).NotTo(HaveOccurred())
		Expect(x.SetKubeconfig(ctx, wiped, kubeconfig)).To(Succeed())

		By("1. reading that it is another cluster: Xylem writes nothing to it, and the host keeps all objects")
		registration(ctx, wiped, connected(metav1.ConditionFalse, v1alpha1.ReasonIdentityChanged))
		told(ctx, "ClusterRegistration", wiped, v1alpha1.ReasonIdentityChanged)
		s.goesOn(ctx, nodeOne)
		requests, err := member.Audit().Since(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests.By(harness.MemberUser).Writes()).To(BeEmpty())
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, And(phase(corev1.VolumeBound), HaveField("DeletionTimestamp", BeNil())))
		s.bound(ctx, "data")

		By("2. abandoning the old cluster, 3. registering the new one")
		cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: wiped}}
		annotate(ctx, cr, v1alpha1.AnnotationForceDeregister, "true")
		Expect(x.Deregister(ctx, wiped)).To(Succeed())
		Expect(x.Register(ctx, wiped, wiped)).To(Succeed())
		s.use(ctx, "anew", node)
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationClusterGone, wiped)))
		Expect(s.disks(wiped, "data")).To(HaveLen(1))

		By("deregistering the new cluster")
		s.remove(ctx, "anew")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "anew")
		Expect(x.Deregister(ctx, wiped)).To(Succeed())
	}, SpecTimeout(storyTime))

	It("revokes a member's credentials and creates new ones, while its Pods continue (I5, I7)", func(ctx SpecContext) {
		s := begin(ctx)
		s.use(ctx, "data", nodeOne)
		leaf := until[corev1.Pod](ctx, s, x.Member(one), "data", phase(corev1.PodRunning))

		By("1. revoking the credentials by deleting the account and thus its tokens")
		Expect(x.Member(one).API.Delete(ctx, &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "xylem"},
		})).To(Succeed())
		registration(ctx, one, connected(metav1.ConditionFalse, v1alpha1.ReasonUnauthorized))
		s.goesOn(ctx, nodeTwo)

		By("2. re-creating the account, 3. writing its kubeconfig into the Secret")
		Expect(x.PrepareAnew(ctx, one)).To(Succeed())
		kubeconfig, err := x.MemberKubeconfig(ctx, one)
		Expect(err).NotTo(HaveOccurred())
		Expect(x.SetKubeconfig(ctx, one, kubeconfig)).To(Succeed())
		well(ctx, one)
		s.goesOn(ctx, nodeOne)
		until[corev1.Pod](ctx, s, x.Member(one), "data", And(phase(corev1.PodRunning), HaveField("UID", leaf.UID)))
	}, SpecTimeout(storyTime))

	It("finds a member unchanged after it was frozen and thawed (I6, I7)", func(ctx SpecContext) {
		s := begin(ctx)
		s.use(ctx, "data", nodeTwo)
		s.use(ctx, "due", nodeTwo)
		api := x.Fleet.Member(two).Process(controlplane.APIServer)
		Expect(api.Freeze()).To(Succeed())
		DeferCleanup(api.Thaw)
		registration(ctx, two, connected(metav1.ConditionFalse, v1alpha1.ReasonUnreachable))
		s.remove(ctx, "due")
		s.goesOn(ctx, nodeOne)
		Expect(s.disks(two, "due")).To(HaveLen(1))

		Expect(api.Thaw()).To(Succeed())
		well(ctx, two)
		Eventually(func() []string { return s.disks(two, "due") }).Should(BeEmpty())
		s.running(ctx, "data")
		Expect(s.disks(two, "data")).To(HaveLen(1))
	}, SpecTimeout(storyTime))

	It("registers a member twice, and the registration that recorded the member first serves it until that registration is deleted (I3)", func(ctx SpecContext) {
		const early, nodeEarly = "early", "kosmos-early"
		s := begin(ctx)
		s.use(ctx, "data", nodeOne)
		kubeconfig, err := x.MemberKubeconfig(ctx, one)
		Expect(err).NotTo(HaveOccurred())
		Expect(x.Deregister(ctx, one)).To(Succeed())

		By("creating a registration that cannot connect, and then one that can")
		Expect(x.SetKubeconfig(ctx, early, []byte("none"))).To(Succeed())
		cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: early}}
		cr.Spec.KubeconfigSecretRef.Name = harness.SecretName(early)
		Expect(x.Host.API.Create(ctx, cr)).To(Succeed())
		registration(ctx, early, connected(metav1.ConditionFalse, v1alpha1.ReasonKubeconfigInvalid))
		Expect(x.Register(ctx, one, one)).To(Succeed())

		By("repairing the older registration: it is rejected even while the younger one is not connected")
		Expect(x.SetKubeconfig(ctx, early, kubeconfig)).To(Succeed())
		registration(ctx, early, connected(metav1.ConditionFalse, v1alpha1.ReasonDuplicateCluster, one))
		Expect(x.SetKubeconfig(ctx, one, []byte("none"))).To(Succeed())
		registration(ctx, one, connected(metav1.ConditionFalse, v1alpha1.ReasonKubeconfigInvalid))
		Expect(x.Manager.Stop()).To(Succeed())
		Expect(x.Manager.Start(ctx)).To(Succeed())
		registration(ctx, one, connected(metav1.ConditionFalse, v1alpha1.ReasonKubeconfigInvalid))
		registration(ctx, early, connected(metav1.ConditionFalse, v1alpha1.ReasonDuplicateCluster, one))
		Expect(x.SetKubeconfig(ctx, one, kubeconfig)).To(Succeed())
		well(ctx, one)
		s.goesOn(ctx, nodeOne)

		By("deleting the younger registration, after which the older one takes over the volumes")
		Expect(x.Deregister(ctx, one)).To(Succeed())
		well(ctx, early)
		Expect(s.disks(one, "data")).To(HaveLen(1))
		s.goesOn(ctx, nodeEarly)
		Expect(x.Deregister(ctx, early)).To(Succeed())
		Expect(x.Register(ctx, one, one)).To(Succeed())
		well(ctx, one)
		Expect(s.disks(one, "data")).To(HaveLen(1))
	}, SpecTimeout(storyTime))

	It("deregisters a member whose Node was deleted, and must still confirm this (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		s.use(ctx, "data", nodeOne)
		cr := registration(ctx, one, connected(metav1.ConditionTrue, v1alpha1.ReasonConnected))
		annotate(ctx, cr, v1alpha1.AnnotationConfirmDeregister, "no")
		Expect(x.Host.API.Delete(ctx, cr)).To(Succeed())
		needed := HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", v1alpha1.ConditionReady), HaveField("Reason", v1alpha1.ReasonConfirmationNeeded))))
		registration(ctx, one, needed)
		deleted := until[corev1.Node](ctx, s, x.Host, nodeOne, Not(BeNil()))
		Expect(x.Host.API.Delete(ctx, deleted)).To(Succeed())
		// The host's Pod garbage collector deletes the Pods of a missing Node, and nobody would then have to confirm.
		until[corev1.Node](ctx, s, x.Host, nodeOne, And(HaveField("UID", Not(Equal(deleted.UID))), HaveField("Spec.Unschedulable", BeTrue())))
		s.goesOn(ctx, nodeTwo)
		registration(ctx, one, needed)
		until[corev1.Pod](ctx, s, x.Member(one), "data", HaveField("DeletionTimestamp", BeNil()))

		By("confirming the deregistration: the Pods in the host and in the member are deleted first")
		annotate(ctx, cr, v1alpha1.AnnotationConfirmDeregister, one)
		gone[v1alpha1.ClusterRegistration](ctx, s, x.Host, one)
		_, err := read[corev1.Pod](ctx, s, x.Member(one), "data")
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		Expect(s.disks(one, "data")).To(HaveLen(1))
		Expect(x.Register(ctx, one, one)).To(Succeed())
		well(ctx, one)
	}, SpecTimeout(storyTime))

	It("registers a member twice, and only the older registration serves it (I3)", func(ctx SpecContext) {
		const again = "again"
		s := begin(ctx)
		s.use(ctx, "data", nodeOne)
		kubeconfig, err := x.MemberKubeconfig(ctx, one)
		Expect(err).NotTo(HaveOccurred())
		Expect(x.SetKubeconfig(ctx, again, kubeconfig)).To(Succeed())
		cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: again}}
		cr.Spec.KubeconfigSecretRef.Name = harness.SecretName(again)
		Expect(x.Host.API.Create(ctx, cr)).To(Succeed())
		registration(ctx, again, connected(metav1.ConditionFalse, v1alpha1.ReasonDuplicateCluster, one))
		s.goesOn(ctx, nodeOne)
		Expect(x.Deregister(ctx, again)).To(Succeed())
		s.running(ctx, "data")
		well(ctx, one)
	}, SpecTimeout(storyTime))
}

// unbound is a claim that a member does not bind until the test allows it.
const unbound = "unbound"

// bindingOf returns the expected phase of a leaf claim whose volume exists: Pending for the claim
// that the member does not bind, and Bound for all others.
func bindingOf(name string) corev1.PersistentVolumeClaimPhase {
	if name == unbound {
		return corev1.ClaimPending
	}
	return corev1.ClaimBound
}

// bindingHeld prevents a member from binding the claim "unbound", even after a restore, until the
// returned function is called.
func bindingHeld(ctx context.Context, member *harness.Cluster) func(context.Context, *story) {
	GinkgoHelper()
	policy := suite.Denying("hold-binding", corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), admissionv1.Validation{
		Expression: "object.metadata.name != '" + unbound + "' || object.spec.?volumeName.orValue('') == ''", Message: "held",
	}, admissionv1.Create, admissionv1.Update)
	for _, obj := range policy {
		Expect(member.API.Create(ctx, obj)).To(Succeed())
		DeferCleanup(deleteIn, member, obj, NodeTimeout(settle))
	}
	probe := (&story{namespace: metav1.NamespaceDefault}).newClaim(unbound, "any")
	Eventually(ctx, func(ctx context.Context) error {
		return member.API.Create(ctx, probe.DeepCopy(), client.DryRunAll)
	}).Should(MatchError(ContainSubstring("held")))
	return func(ctx context.Context, s *story) {
		GinkgoHelper()
		Expect(member.API.Delete(ctx, policy[1])).To(Succeed()) // the policy's binding
		touched := 0
		Eventually(ctx, func(ctx context.Context) (corev1.PersistentVolumeClaimPhase, error) {
			// Each change makes the PV controller reconcile the claim again.
			touched++
			claim, err := read[corev1.PersistentVolumeClaim](ctx, s, member, unbound)
			if apierrors.IsNotFound(err) {
				return corev1.ClaimBound, nil // the claim was bound and has been deleted since
			}
			if err != nil || claim.Status.Phase == corev1.ClaimBound {
				return claim.Status.Phase, err
			}
			body := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/touched":"%d"}}}`, touched)
			return claim.Status.Phase, member.API.Patch(ctx, claim, client.RawPatch("application/merge-patch+json", []byte(body)))
		}).Should(Equal(corev1.ClaimBound))
	}
}

func deleteIn(ctx SpecContext, c *harness.Cluster, obj client.Object) {
	Expect(client.IgnoreNotFound(c.API.Delete(ctx, obj))).To(Succeed())
}

// ranOnce completes Pods in the first member. The returned function checks that they are still
// Succeeded in the host, and that Xylem has not created their leaves again.
func (s *story) ranOnce(ctx context.Context, names ...string) func(context.Context) {
	GinkgoHelper()
	ended := map[string]*corev1.Pod{}
	for _, name := range names {
		ended[name] = s.ends(ctx, one, name)
	}
	audit := x.Member(one).Audit()
	mark, err := audit.Mark(ctx)
	Expect(err).NotTo(HaveOccurred())
	return func(ctx context.Context) {
		GinkgoHelper()
		for name, pod := range ended {
			now, err := read[corev1.Pod](ctx, s, x.Host, name)
			Expect(err).NotTo(HaveOccurred())
			Expect(now).To(And(HaveField("UID", pod.UID), phase(corev1.PodSucceeded)))
			_, err = read[corev1.Pod](ctx, s, x.Member(one), name)
			Expect(apierrors.IsNotFound(err)).To(BeTrue(), "leaf Pod %s: %v", name, err)
		}
		requests, err := audit.Since(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests.By(harness.MemberUser).Where(func(r controlplane.Request) bool {
			return r.Verb == "create" && r.Resource == "pods" && r.Namespace == s.namespace && ended[r.Name] != nil
		})).To(BeEmpty())
	}
}

// rescue rescues a disk that has no volume, as a member's admin would: it creates a volume with the
// disk's handle, and a claim for the volume.
func (s *story) rescue(ctx SpecContext, member *harness.Cluster, driver, handle string) {
	GinkgoHelper()
	claim := s.newClaim("rescued", "rescued")
	claim.Namespace = metav1.NamespaceDefault
	Expect(member.API.Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes,
			StorageClassName:              *claim.Spec.StorageClassName,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}},
		},
	})).To(Succeed())
	Expect(member.API.Create(ctx, claim)).To(Succeed())
	Eventually(ctx, func() (corev1.PersistentVolumeClaimPhase, error) {
		err := member.API.Get(ctx, client.ObjectKeyFromObject(claim), claim)
		return claim.Status.Phase, err
	}).Should(Equal(corev1.ClaimBound))
}
