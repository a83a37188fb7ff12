package stories_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/suite"
)

var _ = Describe("Pods of a member with several nodes", func() {
	It("run on different nodes of the member if they require it", func(ctx SpecContext) {
		s := begin(ctx)
		m := x.Member(one)
		names := x.Fleet.Member(one).NodeNames()
		divided(ctx, one, names, forEachNode())

		labels := map[string]string{"app": "db"}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db"}}
		set.Spec = appsv1.StatefulSetSpec{
			ServiceName: "db", Replicas: ptr.To(int32(len(names))), PodManagementPolicy: appsv1.ParallelPodManagement, //nolint:gosec // few
			Selector:             &metav1.LabelSelector{MatchLabels: labels},
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*s.newClaim("data")},
		}
		set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		set.Spec.Template.Spec.NodeSelector = map[string]string{v1alpha1.LabelCluster: one}
		set.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: set.Spec.Selector}},
		}}
		Expect(x.Host.API.Create(ctx, set)).To(Succeed())

		var nodes, leafNodes []string
		for i := range names {
			root := s.running(ctx, fmt.Sprintf("db-%d", i))
			leaf, err := read[corev1.Pod](ctx, s, m, root.Name)
			Expect(err).NotTo(HaveOccurred())
			Expect(root.Spec.NodeName).To(Equal(groupNode(one, leaf.Spec.NodeName)), "the leaf runs on the node that the root's node represents")
			nodes, leafNodes = append(nodes, root.Spec.NodeName), append(leafNodes, leaf.Spec.NodeName)
		}
		Expect(leafNodes).To(ConsistOf(names))
		Expect(nodes).To(HaveLen(len(names)))
	}, SpecTimeout(storyTime))

	It("do not include those of a node of the host that is named like a group's", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: groupNode(one, "forged")}}
		Expect(x.Host.API.Create(ctx, node)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(x.Host.API.Delete(ctx, node))).To(Succeed()) })
		s.pod(ctx, "forged", boundTo(node.Name))

		s.pod(ctx, "barrier", on(nodeOne))
		s.running(ctx, "barrier", nodeOne)
		Eventually(ctx, func(ctx context.Context) (*corev1.Pod, error) { return read[corev1.Pod](ctx, s, x.Host, "forged") }).Should(And(
			phase(corev1.PodPending), HaveField("Status.Conditions", Not(ContainElement(HaveField("Type", v1alpha1.PodPushed)))),
		))
		gone[corev1.Pod](ctx, s, x.Member(one), "forged")
	}, SpecTimeout(storyTime))
})
