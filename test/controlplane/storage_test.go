package controlplane_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

var _ = Describe("Storage of a member", func() {
	It("provisions a claim for its first consumer, and deletes it", func(ctx SpecContext) {
		s := in(ctx, member())

		By("waiting for a consumer")
		s.claim(ctx, "data", controlplane.ClassHostpath, "1Gi")
		s.pod(ctx, "app", "data")

		By("creating one volume, and running the Pod on it")
		claim := s.bound(ctx, "data")
		pod := s.phase(ctx, "app", corev1.PodRunning)
		Expect(pod.Status.PodIP).NotTo(BeEmpty())
		Expect(pod.Status.HostIP).NotTo(BeEmpty())
		Expect(pod.Status.Conditions).To(ContainElement(And(
			HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))))
		Expect(pod.Status.ContainerStatuses).To(HaveExactElements(And(
			HaveField("Ready", true), HaveField("State.Running", Not(BeNil())))))
		Expect(pod.Status.InitContainerStatuses).To(HaveExactElements(HaveField("State.Terminated.ExitCode", BeZero())))
		Expect(pod.Spec.NodeName).To(BeElementOf(s.NodeNames()))
		Expect(s.book("data").Count(ledger.CreateVolume)).To(Equal(1))
		ids := s.book("data").LiveIDs()
		Expect(ids).To(HaveLen(1))
		dir := filepath.Join(s.VolumesDir(), ids[0])
		Expect(dir).To(BeADirectory())

		By("growing")
		s.grow(ctx, "data", "3Gi")
		Eventually(ctx, func(ctx context.Context) (string, error) {
			c, err := s.getClaim("data")(ctx)
			if err != nil {
				return "", err
			}
			return c.Status.Capacity.Storage().String(), nil
		}).Should(Equal("3Gi"))
		Expect(s.book("data").Count(ledger.ExpandVolume)).To(Equal(1))
		Expect(s.book("data").Live()[ids[0]].CapacityBytes).To(BeEquivalentTo(3 << 30))

		By("ending")
		s.deletePod(ctx, "app")
		s.gone(ctx, "app")
		s.deleteClaim(ctx, "data")
		Eventually(func() int { return s.book("data").Count(ledger.DeleteVolume) }).Should(Equal(1))
		Expect(s.book("data").LiveIDs()).To(BeEmpty())
		Expect(dir).NotTo(BeADirectory())
		Eventually(ctx, func(ctx context.Context) bool {
			_, err := s.Client().CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}).Should(BeTrue())
	})

	It("binds a claim without a consumer if the class binds immediately", func(ctx SpecContext) {
		s := in(ctx, member())
		s.claim(ctx, "data", controlplane.ClassFast, "1Gi")
		s.bound(ctx, "data")
	})

	It("keeps the volume if the class has policy Retain", func(ctx SpecContext) {
		s := in(ctx, member())
		s.claim(ctx, "data", controlplane.ClassRetained, "1Gi")
		s.pod(ctx, "app", "data")
		volume := s.bound(ctx, "data").Spec.VolumeName
		s.phase(ctx, "app", corev1.PodRunning)
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		Eventually(ctx, func(ctx context.Context) (corev1.PersistentVolumePhase, error) {
			v, err := s.Client().CoreV1().PersistentVolumes().Get(ctx, volume, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return v.Status.Phase, nil
		}).Should(Equal(corev1.VolumeReleased))
		Expect(s.book("data").LiveIDs()).To(HaveLen(1))
	})

	It("creates block volumes", func(ctx SpecContext) {
		s := in(ctx, member())
		block := corev1.PersistentVolumeBlock
		s.claim(ctx, "raw", controlplane.ClassFast, "1Gi", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeMode = &block
		})
		s.bound(ctx, "raw")
		info, err := os.Stat(filepath.Join(s.VolumesDir(), s.book("raw").LiveIDs()[0], "block"))
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Size()).To(BeEquivalentTo(1 << 30))
	})

	It("rejects a claim that is too large, and reports the limit", func(ctx SpecContext) {
		s := in(ctx, member())
		s.claim(ctx, "big", limited, "3Gi")
		Eventually(ctx, func(ctx context.Context) ([]corev1.Event, error) {
			events, err := s.Client().CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			return events.Items, nil
		}).Should(ContainElement(And(
			HaveField("Reason", "ProvisioningFailed"), HaveField("Message", ContainSubstring("the limit is "+limitedBytes)))))
		Expect(s.book("big").LiveIDs()).To(BeEmpty())
	})

	It("fails when faults are injected, and recovers", func(ctx SpecContext) {
		s := in(ctx, member())
		Expect(s.SetFaults(csidriver.Fault{
			Method: ledger.CreateVolume, Claim: s.namespace + "/data", Times: 2, Code: codes.Unavailable,
		})).To(Succeed())
		DeferCleanup(func() { Expect(s.SetFaults()).To(Succeed()) })
		s.claim(ctx, "data", controlplane.ClassFast, "1Gi")
		s.bound(ctx, "data")
		Expect(s.book("data").Calls(ledger.CreateVolume)).To(Equal(3))
		Expect(s.book("data").Count(ledger.CreateVolume)).To(Equal(1))
	})

	It("creates only one volume when the driver's response is lost", func(ctx SpecContext) {
		s := in(ctx, member())
		Expect(s.SetFaults(csidriver.Fault{
			Method: ledger.CreateVolume, Claim: s.namespace + "/data", Times: 1, Code: codes.Unavailable, After: true,
		})).To(Succeed())
		DeferCleanup(func() { Expect(s.SetFaults()).To(Succeed()) })
		s.claim(ctx, "data", controlplane.ClassFast, "1Gi")
		s.bound(ctx, "data")
		Expect(s.book("data").Calls(ledger.CreateVolume)).To(Equal(2))
		Expect(s.book("data").Count(ledger.CreateVolume)).To(Equal(1))
	})

	It("stops provisioning while the driver is frozen, and resumes afterwards", func(ctx SpecContext) {
		s := in(ctx, member())
		driver := s.Process(controlplane.CSIDriver)
		before, err := s.Ledger()
		Expect(err).NotTo(HaveOccurred())
		Expect(driver.Freeze()).To(Succeed())
		DeferCleanup(driver.Thaw)

		s.claim(ctx, "data", controlplane.ClassFast, "1Gi")
		// The provisioner emits an event before it calls the driver.
		Eventually(ctx, func(ctx context.Context) ([]corev1.Event, error) {
			events, err := s.Client().CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			return events.Items, nil
		}).Should(ContainElement(HaveField("Reason", "Provisioning")))
		during, err := s.Ledger()
		Expect(err).NotTo(HaveOccurred())
		Expect(during.Since(len(before.Entries)).Entries).To(BeEmpty())

		Expect(driver.Thaw()).To(Succeed())
		s.bound(ctx, "data")
		Expect(s.book("data").LiveIDs()).To(HaveLen(1))
	})

	It("survives a crash of the driver", func(ctx SpecContext) {
		s := in(ctx, member())
		driver := s.Process(controlplane.CSIDriver)
		s.claim(ctx, "old", controlplane.ClassFast, "1Gi")
		s.bound(ctx, "old")
		live, err := s.Ledger()
		Expect(err).NotTo(HaveOccurred())

		Expect(driver.Kill()).To(Succeed())
		Expect(driver.Running()).To(BeFalse())
		s.claim(ctx, "new", controlplane.ClassFast, "1Gi")
		Expect(driver.Start(ctx)).To(Succeed())
		s.bound(ctx, "new")

		after, err := s.Ledger()
		Expect(err).NotTo(HaveOccurred())
		Expect(after.LiveIDs()).To(ContainElements(live.LiveIDs()))
		s.deleteClaim(ctx, "old")
		Eventually(func() []string { return s.book("old").LiveIDs() }).Should(BeEmpty())
	})
})
