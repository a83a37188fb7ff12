package stories_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// namesDrivers matches a CSINode that lists exactly the given drivers.
func namesDrivers(drivers ...string) gomegatypes.GomegaMatcher {
	return HaveField("Spec.Drivers", WithTransform(func(of []storagev1.CSINodeDriver) []string {
		var names []string
		for _, driver := range of {
			names = append(names, driver.Name)
		}
		return names
	}, ConsistOf(drivers)))
}

// nodeReports matches a virtual node that reports a problem with its CSINode.
func nodeReports(reason string) gomegatypes.GomegaMatcher {
	return HaveField("Status.Conditions", ContainElement(And(
		HaveField("Type", v1alpha1.NodeCSINode), HaveField("Status", corev1.ConditionFalse), HaveField("Reason", reason))))
}

// prevented waits until the CSIDrivers keep Pods off nodes whose CSINode does not list them. It
// skips the story if the host's scheduler does not support this.
func prevented(ctx context.Context) {
	GinkgoHelper()
	suite.From(x.Host, "1.37", "its scheduler does not check for drivers in CSINodes")
	for _, driver := range []string{"csi.xylem.io", "mock.csi.virtual-kubelet.io"} {
		until[storagev1.CSIDriver](ctx, &story{}, x.Host, driver, HaveField("Spec.PreventPodSchedulingIfMissing", HaveValue(BeTrue())))
	}
}

func csiNode(name string) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

var _ = Describe("The CSINode of a virtual node", func() {
	It("keeps a Pod with a promise off the host's nodes even without a nodeSelector", func(ctx SpecContext) {
		prevented(ctx)
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(classPromise))
		Expect(s.promised(ctx, "data").Spec.NodeAffinity).To(BeNil())
		s.pod(ctx, "app", using("data"), preferring(plainNode))
		Expect(s.running(ctx, "app").Spec.NodeName).To(Or(Equal(nodeOne), Equal(nodeTwo)))

		By("creating a Pod without volumes, which can run on the host's nodes")
		s.pod(ctx, "plain", preferring(plainNode))
		until[corev1.Pod](ctx, s, x.Host, "plain", HaveField("Spec.NodeName", plainNode))
	}, SpecTimeout(storyTime))

	It("is required by the scheduler: without it, the Pod is placed on no node", func(ctx SpecContext) {
		prevented(ctx)
		s := begin(ctx)
		s.claim(ctx, "data", ofClass(classPromise))
		s.promised(ctx, "data")
		By("deleting the CSINodes while no manager runs")
		Expect(x.Manager.Stop()).To(Succeed())
		for _, node := range []string{nodeOne, nodeTwo} {
			Expect(x.Host.API.Delete(ctx, csiNode(node))).To(Succeed())
		}
		// Without a manager, the nodes are also tainted after some time.
		pod := s.attempt(ctx, And(unbindable("mock.csi.virtual-kubelet.io CSI driver is not installed on the node"), Not(unbindable("taint"))), using("data"))

		By("starting the manager, which re-creates the CSINodes")
		Expect(x.Manager.Start(ctx)).To(Succeed())
		for _, name := range []string{one, two} {
			Expect(x.AwaitReady(ctx, name)).To(Succeed())
		}
		s.running(ctx, pod)
	}, SpecTimeout(storyTime))

	It("belongs to its Node, and keeps entries that other users add", func(ctx SpecContext) {
		s := begin(ctx)
		node := until[corev1.Node](ctx, s, x.Host, nodeTwo, Not(BeNil()))
		was := until[storagev1.CSINode](ctx, s, x.Host, nodeTwo, And(namesDrivers("csi.xylem.io", "mock.csi.virtual-kubelet.io"),
			HaveField("OwnerReferences", ConsistOf(metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: nodeTwo, UID: node.UID})),
			HaveField("Spec.Drivers", HaveEach(HaveField("Allocatable", BeNil())))))
		By("deleting the CSINode as an admin")
		Expect(x.Host.API.Delete(ctx, csiNode(nodeTwo))).To(Succeed())
		until[storagev1.CSINode](ctx, s, x.Host, nodeTwo, And(namesDrivers("csi.xylem.io", "mock.csi.virtual-kubelet.io"), HaveField("UID", Not(Equal(was.UID)))))

		By("replacing one of its entries as an admin")
		patch(ctx, x.Host, csiNode(nodeTwo), fmt.Sprintf(`{"spec":{"drivers":[{"name":"csi.example.com","nodeID":"x","topologyKeys":null},{"name":"csi.xylem.io","nodeID":%q,"topologyKeys":null}]}}`, nodeTwo))
		until[storagev1.CSINode](ctx, s, x.Host, nodeTwo, namesDrivers("csi.xylem.io", "mock.csi.virtual-kubelet.io", "csi.example.com"))
		Expect(x.Host.API.Delete(ctx, csiNode(nodeTwo))).To(Succeed())
		until[storagev1.CSINode](ctx, s, x.Host, nodeTwo, namesDrivers("csi.xylem.io", "mock.csi.virtual-kubelet.io"))
	}, SpecTimeout(storyTime))

	It("is not changed if Xylem did not create it, and the Node, the registration and Pods report the conflict", suite.Slow, func(ctx SpecContext) {
		prevented(ctx)
		s := begin(ctx)
		patch(ctx, x.Host, csiNode(nodeTwo), `{"metadata":{"labels":null},"spec":{"drivers":[]}}`)
		until[corev1.Node](ctx, s, x.Host, nodeTwo, nodeReports(v1alpha1.ReasonCSINodeNameTaken))
		s.noted(ctx, "Node", nodeTwo, v1alpha1.ReasonCSINodeNameTaken, "kubectl delete csinode "+nodeTwo)
		registration(ctx, two, says(v1alpha1.ConditionNodeReady, metav1.ConditionFalse, v1alpha1.ReasonCSINodeNameTaken))
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeTwo))
		until[corev1.Pod](ctx, s, x.Host, "app", tells(v1alpha1.ReasonCSINodeNameTaken))
		Expect(until[storagev1.CSINode](ctx, s, x.Host, nodeTwo, Not(BeNil())).Labels).To(BeEmpty())

		By("deleting the foreign CSINode as an admin")
		Expect(x.Host.API.Delete(ctx, csiNode(nodeTwo))).To(Succeed())
		s.running(ctx, "app", nodeTwo)
		until[corev1.Node](ctx, s, x.Host, nodeTwo, Not(nodeReports(v1alpha1.ReasonCSINodeNameTaken)))
		registration(ctx, two, says(v1alpha1.ConditionNodeReady, metav1.ConditionTrue, v1alpha1.ReasonNodeReady))
	}, SpecTimeout(storyTime))

	It("is reported as missing if the host's API server does not let Xylem create it", suite.Slow, func(ctx SpecContext) {
		prevented(ctx)
		s := begin(ctx)
		allow := denied(ctx, x.Host, csiNode(nodeTwo), storagev1.SchemeGroupVersion.WithResource("csinodes"), "no CSINodes today")
		Expect(x.Host.API.Delete(ctx, csiNode(nodeTwo))).To(Succeed())
		until[corev1.Node](ctx, s, x.Host, nodeTwo, nodeReports(v1alpha1.ReasonCSINodeMissing))
		s.noted(ctx, "Node", nodeTwo, v1alpha1.ReasonCSINodeMissing, "no CSINodes today", "Let the manager's account create and patch CSINodes")
		registration(ctx, two, says(v1alpha1.ConditionNodeReady, metav1.ConditionFalse, v1alpha1.ReasonCSINodeMissing))
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeTwo))
		s.why(ctx, "Pod", "app", v1alpha1.ReasonCSINodeMissing, two, "kubectl describe node "+nodeTwo)

		By("allowing Xylem to create it as an admin")
		allow(ctx)
		s.running(ctx, "app", nodeTwo)
		until[corev1.Node](ctx, s, x.Host, nodeTwo, Not(nodeReports(v1alpha1.ReasonCSINodeMissing)))
		registration(ctx, two, says(v1alpha1.ConditionNodeReady, metav1.ConditionTrue, v1alpha1.ReasonNodeReady))
	}, SpecTimeout(storyTime))
})
