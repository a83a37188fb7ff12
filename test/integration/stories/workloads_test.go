package stories_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

var _ = Describe("Workloads", func() {
	It("run as a StatefulSet that is left to the scheduler, whose replicas keep their disks", func(ctx SpecContext) {
		s := begin(ctx)
		labels := map[string]string{"app": "ledger"}
		set := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "ledger"},
			Spec: appsv1.StatefulSetSpec{
				Replicas: ptr.To[int32](2), ServiceName: "ledger", PodManagementPolicy: appsv1.ParallelPodManagement,
				Selector:             &metav1.LabelSelector{MatchLabels: labels},
				Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
				VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: s.newClaim("any").Spec}},
			},
		}
		Expect(x.Host.API.Create(ctx, set)).To(Succeed())
		type place struct{ node, volume string }
		places := func() map[string]place {
			GinkgoHelper()
			found := map[string]place{}
			for i := range 2 {
				pod, claim := fmt.Sprintf("ledger-%d", i), fmt.Sprintf("data-ledger-%d", i)
				found[pod] = place{s.running(ctx, pod).Spec.NodeName, s.bound(ctx, claim).Spec.VolumeName}
				Expect(found[pod].node).To(BeElementOf(nodeOne, nodeTwo))
			}
			return found
		}
		before := places()
		until[appsv1.StatefulSet](ctx, s, x.Host, "ledger", HaveField("Status.ReadyReplicas", BeEquivalentTo(2)))

		By("scaling down and up")
		patch(ctx, x.Host, set, `{"spec":{"replicas":0}}`)
		for pod := range before {
			gone[corev1.Pod](ctx, s, x.Host, pod)
		}
		patch(ctx, x.Host, set, `{"spec":{"replicas":2}}`)
		Expect(places()).To(Equal(before))
		for pod, place := range before {
			member := one
			if place.node == nodeTwo {
				member = two
			}
			book := s.book(member, "data-"+pod)
			Expect(book.Count(ledger.CreateVolume)).To(Equal(1))
			Expect(book.LiveIDs()).To(HaveLen(1))
		}
	}, SpecTimeout(storyTime))
})
