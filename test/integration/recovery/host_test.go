package recovery_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/suite"
)

func hostWalks() {
	It("restores the host from a backup, and its claims get their volumes again (I1, I2, I3, I7)", func(ctx SpecContext) {
		s := begin(ctx)
		s.use(ctx, "old", nodeOne)
		backup, err := x.Fleet.Host.Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		age := suite.Aging(ctx, x, one, two)
		volumes := map[string]string{one: s.use(ctx, "new", nodeOne), two: s.use(ctx, "elsewhere", nodeTwo)}
		claims := map[string]string{one: "new", two: "elsewhere"}
		age()

		By("1. stopping the manager, 2. restoring the host, 3. starting the manager")
		Expect(x.Manager.Stop()).To(Succeed())
		Expect(x.Fleet.Host.Restore(ctx, backup)).To(Succeed())
		_, err = read[corev1.PersistentVolumeClaim](ctx, s, x.Host, "new")
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		Expect(x.Manager.Start(ctx)).To(Succeed())

		By("4. reading what the manager reports")
		for member, volume := range volumes {
			registration(ctx, member, And(
				connected(metav1.ConditionTrue, v1alpha1.ReasonHostRestored, v1alpha1.AnnotationConfirmRestore),
				HaveField("Status.Volumes.Orphaned", BeNumerically(">=", 1)),
				HaveField("Status.Orphans", ContainElement(HaveField("Volume", volume)))))
			told(ctx, "ClusterRegistration", member, v1alpha1.ReasonHostRestored)
			Expect(s.disks(member, claims[member])).To(HaveLen(1))
		}
		s.goesOn(ctx, nodeTwo)

		By("checking that no data is destroyed before the confirmation, not even if its claim is deleted")
		s.remove(ctx, "old")
		s.goesOn(ctx, nodeOne)
		Expect(s.destroyed(one)).To(BeZero())

		By("5. re-creating the claims that are missing, each with the name of its volume")
		for member, volume := range volumes {
			s.claim(ctx, claims[member], volume)
		}
		for member, volume := range volumes {
			claim := s.bound(ctx, claims[member])
			until[corev1.PersistentVolume](ctx, s, x.Host, volume, And(phase(corev1.VolumeBound), HaveField("Spec.ClaimRef.UID", claim.UID)))
			until[corev1.PersistentVolume](ctx, s, x.Member(member), volume, And(phase(corev1.VolumeBound),
				HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationRootUID, string(claim.UID)))))
		}
		By("6. confirming the restore for each member")
		suite.ConfirmRestore(ctx, x, one, v1alpha1.ReasonHostRestored)
		suite.ConfirmRestore(ctx, x, two, v1alpha1.ReasonHostRestored)

		By("7. re-creating the missing Pods: their earlier leaves were removed after the confirmation")
		for member, name := range claims {
			gone[corev1.Pod](ctx, s, x.Member(member), name)
		}
		s.pod(ctx, "new", nodeOne)
		s.pod(ctx, "elsewhere", nodeTwo)
		for member, name := range claims {
			s.running(ctx, name)
			Expect(book(member).ForClaim(s.namespace, name).Count(ledger.CreateVolume)).To(Equal(1), "the claim must have its disk from before the restore")
			registration(ctx, member, HaveField("Status.Orphans", Not(ContainElement(HaveField("Volume", volumes[member])))))
		}
		Eventually(func() []string { return s.disks(one, "old") }).Should(BeEmpty(), "completing the deletions from before the confirmation")
		Expect(s.destroyed(one)).To(Equal(1))
	}, SpecTimeout(storyTime))

	It("restores the host to a state before a claim was placed, while the claim's member is away, and the claim gets no second disk (I3)", func(ctx SpecContext) {
		s := begin(ctx)
		claim := s.claim(ctx, "data", "")
		s.claim(ctx, "free", "")
		backup, err := x.Fleet.Host.Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		age := suite.Aging(ctx, x, one, two)
		s.pod(ctx, "data", nodeOne)
		s.running(ctx, "data")
		volume := s.bound(ctx, "data").Spec.VolumeName
		age()

		By("restoring the host while the member that has the disk does not respond")
		restoreUnplaced(ctx, s, backup, claim)
		api := x.Fleet.Member(one).Process(controlplane.APIServer)
		Expect(api.Freeze()).To(Succeed())
		DeferCleanup(api.Thaw)
		Expect(x.Manager.Start(ctx)).To(Succeed())
		registration(ctx, two, connected(metav1.ConditionTrue, v1alpha1.ReasonHostRestored))

		By("running Pods of this claim, and of a claim that was never placed, in the other member")
		unasked := HaveField("Status.Conditions", ContainElement(And(HaveField("Type", v1alpha1.ClaimPlaced),
			HaveField("Reason", v1alpha1.ReasonPlacementUnconfirmed), HaveField("Message", ContainSubstring(one)))))
		for _, name := range []string{"data", "free"} {
			s.pod(ctx, name, nodeTwo)
			until[corev1.PersistentVolumeClaim](ctx, s, x.Host, name, unasked)
		}
		s.goesOn(ctx, nodeTwo)
		for _, name := range []string{"data", "free"} {
			Expect(book(two).ForClaim(s.namespace, name).Count(ledger.CreateVolume)).To(BeZero())
		}

		By("reconnecting the member, after which one claim is placed and the other waits for its disk")
		Expect(api.Thaw()).To(Succeed())
		s.running(ctx, "free")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", v1alpha1.ClaimPlaced), HaveField("Reason", v1alpha1.ReasonPlacementUnconfirmed),
			HaveField("Message", ContainSubstring(v1alpha1.AnnotationConfirmRestore))))))

		By("confirming the restore, after which the claim has its earlier disk")
		suite.ConfirmRestore(ctx, x, one, v1alpha1.ReasonHostRestored)
		suite.ConfirmRestore(ctx, x, two, v1alpha1.ReasonHostRestored)
		Expect(s.bound(ctx, "data").Spec.VolumeName).To(Equal(volume))
		gone[corev1.Pod](ctx, s, x.Member(one), "data")
		Expect(x.Host.API.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data"}})).To(Succeed())
		gone[corev1.Pod](ctx, s, x.Host, "data")
		s.pod(ctx, "data", nodeOne)
		s.running(ctx, "data")
		Expect(book(one).ForClaim(s.namespace, "data").Count(ledger.CreateVolume)).To(Equal(1))
		Expect(book(two).ForClaim(s.namespace, "data").Count(ledger.CreateVolume)).To(BeZero())
		for _, member := range []string{one, two} {
			registration(ctx, member, HaveField("Status.Orphans", Not(ContainElement(HaveField("Volume", volume)))))
		}
	}, SpecTimeout(storyTime))

	It("restores the host to a state before a claim was placed, and deregisters the claim's member only when the host knows its disk again (I3)", func(ctx SpecContext) {
		s := begin(ctx)
		claim := s.claim(ctx, "data", "")
		backup, err := x.Fleet.Host.Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		age := suite.Aging(ctx, x, one, two)
		s.pod(ctx, "data", nodeOne)
		s.running(ctx, "data")
		volume := s.bound(ctx, "data").Spec.VolumeName
		Expect(x.Host.API.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data"}})).To(Succeed())
		gone[corev1.Pod](ctx, s, x.Member(one), "data")
		age()

		By("restoring the host, and deleting the registration before the restore is confirmed")
		restoreUnplaced(ctx, s, backup, claim)
		Expect(x.Host.API.Delete(ctx, &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: one}})).To(Succeed())
		Expect(x.Manager.Start(ctx)).To(Succeed())
		registration(ctx, one, And(connected(metav1.ConditionTrue, v1alpha1.ReasonHostRestored), HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", v1alpha1.ConditionReady), HaveField("Reason", v1alpha1.ReasonDeregistering),
			HaveField("Message", And(ContainSubstring(s.namespace+"/data"), ContainSubstring(v1alpha1.AnnotationPlacedIn))))))))

		By("confirming the restore, after which the claim has its earlier disk, and the deregistration ends")
		suite.ConfirmRestore(ctx, x, two, v1alpha1.ReasonHostRestored)
		suite.Confirm(ctx, x, one, v1alpha1.ReasonHostRestored)
		gone[v1alpha1.ClusterRegistration](ctx, s, x.Host, one)
		Expect(s.bound(ctx, "data").Spec.VolumeName).To(Equal(volume))
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationClusterGone, one)))
		Expect(s.disks(one, "data")).To(HaveLen(1))

		By("registering the member again")
		Expect(x.Register(ctx, one, one)).To(Succeed())
		well(ctx, one)
		s.pod(ctx, "data", nodeOne)
		s.running(ctx, "data")
		Expect(book(one).ForClaim(s.namespace, "data").Count(ledger.CreateVolume)).To(Equal(1))
		Expect(book(two).ForClaim(s.namespace, "data").Count(ledger.CreateVolume)).To(BeZero())
	}, SpecTimeout(storyTime))

	It("restores the host to a state before claims whose volumes are not stamped yet, and these volumes are kept (I1, I2)", func(ctx SpecContext) {
		s := begin(ctx)
		backup, err := x.Fleet.Host.Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		suite.Aging(ctx, x, one, two)()
		names := []string{"early", "late"}

		By("ending the manager after it creates the leaf claims and the leaf Pods, before the member provisions the volumes")
		faults := make([]csidriver.Fault, 0, len(names))
		for _, name := range names {
			faults = append(faults, csidriver.Fault{Method: ledger.CreateVolume, Claim: s.namespace + "/" + name, Stall: true})
		}
		Expect(x.Fleet.Member(one).SetFaults(faults...)).To(Succeed())
		DeferCleanup(func() { Expect(x.Fleet.Member(one).SetFaults()).To(Succeed()) })
		for _, name := range names {
			s.claim(ctx, name, "")
			s.pod(ctx, name, nodeOne)
		}
		for _, name := range names {
			until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), name, HaveField("Spec.VolumeName", BeEmpty()))
			until[corev1.Pod](ctx, s, x.Member(one), name, phase(corev1.PodPending))
		}
		Expect(x.Manager.Kill()).To(Succeed())

		By("running the leaf Pods, which write to the volumes while no manager runs")
		Expect(x.Fleet.Member(one).SetFaults()).To(Succeed())
		volumes := map[string]string{}
		for _, name := range names {
			until[corev1.Pod](ctx, s, x.Member(one), name, phase(corev1.PodRunning))
			volumes[name] = until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), name, phase(corev1.ClaimBound)).Spec.VolumeName
			until[corev1.PersistentVolume](ctx, s, x.Member(one), volumes[name], And(phase(corev1.VolumeBound),
				HaveField("Annotations", Not(HaveKey(v1alpha1.AnnotationRootUID))),
				HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimDelete)))
		}

		By("restoring the host to a state before the claims")
		Expect(x.Fleet.Host.Restore(ctx, backup)).To(Succeed())
		for _, name := range names {
			_, err = read[corev1.PersistentVolumeClaim](ctx, s, x.Host, name)
			Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		}
		Expect(x.Manager.Start(ctx)).To(Succeed())
		for _, member := range []string{one, two} {
			suite.Restored(ctx, x, member, v1alpha1.ReasonHostRestored)
		}

		By("re-creating a claim with the name of its volume, and confirming the restore")
		allowed := func(name string) {
			GinkgoHelper()
			s.claim(ctx, name, volumes[name])
			until[corev1.PersistentVolumeClaim](ctx, s, x.Host, name, HaveField("Status.Conditions", ContainElement(And(
				HaveField("Type", v1alpha1.ClaimPlaced), HaveField("Reason", v1alpha1.ReasonAdoptionUnconfirmed)))))
			annotate(ctx, &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: one}}, v1alpha1.AnnotationAdopt, volumes[name])
			Expect(s.bound(ctx, name).Spec.VolumeName).To(Equal(volumes[name]))
		}
		allowed("early")
		suite.ConfirmRestore(ctx, x, one, v1alpha1.ReasonHostRestored)
		suite.ConfirmRestore(ctx, x, two, v1alpha1.ReasonHostRestored)
		gone[corev1.Pod](ctx, s, x.Member(one), "late")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "late")
		until[corev1.PersistentVolume](ctx, s, x.Member(one), volumes["late"], phase(corev1.VolumeReleased))
		registration(ctx, one, HaveField("Status.Orphans", ContainElement(HaveField("Volume", volumes["late"]))))

		By("re-creating the other claim after the confirmation")
		allowed("late")
		By("running the claims' Pods again")
		for _, name := range names {
			gone[corev1.Pod](ctx, s, x.Member(one), name)
			s.pod(ctx, name, nodeOne)
			s.running(ctx, name)
			Expect(book(one).ForClaim(s.namespace, name).Count(ledger.CreateVolume)).To(Equal(1), "the claim must have its disk from before the restore")
			registration(ctx, one, HaveField("Status.Orphans", Not(ContainElement(HaveField("Volume", volumes[name])))))
		}
		Expect(s.destroyed(one)).To(BeZero())
	}, SpecTimeout(2*storyTime))

	It("restores the host while a manager runs, and the manager exits (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		backup, err := x.Fleet.Host.Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		age := suite.Aging(ctx, x, one, two)
		volume := s.use(ctx, "new", nodeOne)
		age()

		Expect(x.Fleet.Host.Restore(ctx, backup)).To(Succeed())
		Eventually(ctx, x.Manager.Done()).Should(BeClosed(), "the manager must exit, because its caches are no longer reliable")
		Expect(x.Manager.Start(ctx)).To(Succeed())
		registration(ctx, one, And(connected(metav1.ConditionTrue, v1alpha1.ReasonHostRestored),
			HaveField("Status.Orphans", ContainElement(HaveField("Volume", volume)))))
		suite.ConfirmRestore(ctx, x, one, v1alpha1.ReasonHostRestored)
		suite.ConfirmRestore(ctx, x, two, v1alpha1.ReasonHostRestored)
		s.goesOn(ctx, nodeOne)
		Expect(s.disks(one, "new")).To(HaveLen(1), "the disk is an orphan and must not be destroyed")
		Expect(s.destroyed(one)).To(BeZero())
	}, SpecTimeout(storyTime))

	It("restores the host within an epoch while a manager runs, and a claim that is deleted afterwards keeps its disk (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		manager := probesRarely(ctx)
		volume := s.use(ctx, "old", nodeOne)
		backup, err := x.Fleet.Host.Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		s.use(ctx, "new", nodeOne)
		busy(ctx, x.Host)

		Expect(x.Fleet.Host.Restore(ctx, backup)).To(Succeed())
		By("deleting a claim before the restore is reported")
		s.remove(ctx, "old")
		Eventually(ctx, manager.Done()).Should(BeClosed(), "the manager must detect the restore before its next probe")
		Expect(s.disks(one, "old")).To(HaveLen(1))

		By("checking that the next manager also reports it")
		Expect(x.Manager.Start(ctx)).To(Succeed())
		for _, member := range []string{one, two} {
			registration(ctx, member, connected(metav1.ConditionTrue, v1alpha1.ReasonHostRestored, v1alpha1.AnnotationConfirmRestore))
		}
		s.goesOn(ctx, nodeOne)
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeReleased))
		until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, And(phase(corev1.VolumeBound),
			HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)))
		Expect(s.destroyed(one)).To(BeZero())

		By("confirming the restore: the deletion is then completed")
		suite.ConfirmRestore(ctx, x, one, v1alpha1.ReasonHostRestored)
		suite.ConfirmRestore(ctx, x, two, v1alpha1.ReasonHostRestored)
		Eventually(func() []string { return s.disks(one, "old") }).Should(BeEmpty())
		Expect(s.disks(one, "new")).To(HaveLen(1), "the disk is an orphan and must not be destroyed")
		Expect(s.destroyed(one)).To(Equal(1))
	}, SpecTimeout(2*storyTime))

	It("restores the host to a state before other claims used volumes, and these volumes are kept (I2)", func(ctx SpecContext) {
		s := begin(ctx)
		// The first claims of the volumes are deleted before and after the manager starts again.
		volumes := map[string]string{"early": "", "late": ""}
		for name := range volumes {
			volumes[name] = s.use(ctx, name, nodeOne)
		}
		backup, err := x.Fleet.Host.Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		age := suite.Aging(ctx, x, one)
		policy := func(policy corev1.PersistentVolumeReclaimPolicy) gomegatypes.GomegaMatcher {
			return HaveField("Spec.PersistentVolumeReclaimPolicy", policy)
		}
		patch := func(volume, text string) {
			GinkgoHelper()
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}
			Expect(x.Host.API.Patch(ctx, pv, client.RawPatch(types.MergePatchType, []byte(text)))).To(Succeed())
		}
		released := func(volume, claim string) {
			GinkgoHelper()
			s.remove(ctx, claim)
			until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeReleased))
			gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), claim)
		}

		By("retaining the volumes, and using them with other claims, which are then deleted")
		for name, volume := range volumes {
			patch(volume, `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
			released(volume, name)
			patch(volume, `{"spec":{"claimRef":null}}`)
			second := name + "-second"
			claim := s.claim(ctx, second, volume)
			s.pod(ctx, second, nodeOne)
			s.running(ctx, second)
			released(volume, second)
			until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationRootUID, string(claim.UID))))
		}
		age()

		By("restoring the host: the backup has the first claims, and policy Delete")
		Expect(x.Manager.Stop()).To(Succeed())
		Expect(x.Fleet.Host.Restore(ctx, backup)).To(Succeed())
		for _, volume := range volumes {
			until[corev1.PersistentVolume](ctx, s, x.Host, volume, And(phase(corev1.VolumeBound), policy(corev1.PersistentVolumeReclaimDelete)))
		}
		Expect(x.Host.API.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "early"}}, client.GracePeriodSeconds(0))).To(Succeed())
		s.remove(ctx, "early")
		until[corev1.PersistentVolume](ctx, s, x.Host, volumes["early"], phase(corev1.VolumeReleased))
		Expect(x.Manager.Start(ctx)).To(Succeed())
		suite.ConfirmRestore(ctx, x, one, v1alpha1.ReasonHostRestored)
		suite.ConfirmRestore(ctx, x, two, v1alpha1.ReasonHostRestored)
		s.remove(ctx, "late")

		By("checking that the deletion of the first claims does not destroy the newer data")
		for name, volume := range volumes {
			until[corev1.PersistentVolume](ctx, s, x.Host, volume, And(phase(corev1.VolumeReleased), policy(corev1.PersistentVolumeReclaimRetain)))
			told(ctx, "PersistentVolume", volume, v1alpha1.ReasonLastClaimLost)
			Expect(s.disks(one, name)).To(HaveLen(1))
		}
		s.goesOn(ctx, nodeOne)
		Expect(s.destroyed(one)).To(BeZero())

		By("setting the policy to Delete again, which destroys the volumes")
		for name, volume := range volumes {
			patch(volume, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
			Eventually(func() []string { return s.disks(one, name) }).Should(BeEmpty())
		}
	}, SpecTimeout(2*storyTime))

	It("clones the host by mistake, and the clone writes nothing to members (I2, I7)", func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.use(ctx, "data", nodeOne)
		clone, err := x.CloneHost(ctx, "clone")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(clone.Stop(ctx)).To(Succeed()) })
		holder := suite.Fence(ctx, x, one).Spec.HolderIdentity
		second, err := x.AnotherManager(ctx, "clone-manager", clone.Cluster)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(second.Kill)
		Expect(second.Start(ctx)).To(Succeed())

		By("1. reading in the clone's registrations that two hosts exist")
		for _, member := range []string{one, two} {
			registrationIn(ctx, clone, member, connected(metav1.ConditionFalse, v1alpha1.ReasonHostCloned))
		}
		By("deleting objects in the clone as a user: they have the same names and UIDs as those in the original")
		s.removeFrom(ctx, clone, "data")
		s.goesOn(ctx, nodeOne)
		registrationIn(ctx, clone, one, connected(metav1.ConditionFalse, v1alpha1.ReasonHostCloned))
		Expect(s.disks(one, "data")).To(HaveLen(1))
		until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, And(phase(corev1.VolumeBound),
			HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)))
		s.running(ctx, "data")
		Expect(suite.Fence(ctx, x, one).Spec.HolderIdentity).To(Equal(holder))

		By("2. stopping the clone's manager: it has not affected the original host")
		Expect(second.Stop()).To(Succeed())
		for _, member := range []string{one, two} {
			well(ctx, member)
		}
	}, SpecTimeout(storyTime))
}

// restoreUnplaced stops the manager, and restores the host to a state before a claim was placed.
func restoreUnplaced(ctx context.Context, s *story, backup *controlplane.Snapshot, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	Expect(x.Manager.Stop()).To(Succeed())
	Expect(x.Fleet.Host.Restore(ctx, backup)).To(Succeed())
	until[corev1.PersistentVolumeClaim](ctx, s, x.Host, claim.Name, And(HaveField("UID", claim.UID),
		HaveField("Annotations", Not(HaveKey(v1alpha1.AnnotationPlacedIn)))))
}
