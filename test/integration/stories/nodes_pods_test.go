package stories_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/suite"
)

var _ = Describe("Pods of a member with several nodes", func() {
	It("run on different nodes of the member if they require it", func(ctx SpecContext) {
		s := begin(ctx)
		m := x.Member(one)
		names := x.Fleet.Member(one).NodeNames()
		s.divided(ctx, one, names, forEachNode())

		labels := map[string]string{"app": "db"}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db"}}
		set.Spec = appsv1.StatefulSetSpec{
			ServiceName: "db", Replicas: ptr.To(int32(len(names))), PodManagementPolicy: appsv1.ParallelPodManagement,
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

	It("come back to the zone of their volume, and leave a zone that cannot have it", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		m := x.Member(one)
		zoned(ctx, m)
		s.divided(ctx, one, []string{"zone-1", "zone-2"}, forEachZone())
		class := controlplane.Class(s.namespace, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimRetain)
		class.Provisioner = "kubernetes.io/no-provisioner"
		inMember(ctx, m, &class)
		disk := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-disk"}, Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class.Name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/disk"}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-2"}}},
			}}}},
		}}
		inMember(ctx, m, disk)
		inHost(ctx, hostClass(s.namespace, "", func(c *storagev1.StorageClass) {
			*c.ReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			c.Parameters = map[string]string{v1alpha1.ParameterPlacementTimeout: "2s"}
		}))

		By("creating a Pod that prefers a zone without the disk")
		inOne := func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{v1alpha1.LabelCluster: one}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-1"}}}},
			}}}}
		}
		s.claim(ctx, "data", ofClass(s.namespace))
		s.pod(ctx, "first", using("data"), inOne)
		s.running(ctx, "first", groupNode(one, "zone-2"))
		s.noted(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonPlacementMoved, groupNode(one, "zone-2"))
		volume := s.bound(ctx, "data").Spec.VolumeName
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(x.Host.API.Delete(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}))).To(Succeed())
		}, NodeTimeout(settle))

		By("creating the Pod again")
		s.deletePod(ctx, "first")
		gone[corev1.Pod](ctx, s, x.Host, "first")
		s.pod(ctx, "second", using("data"), inOne)
		s.running(ctx, "second", groupNode(one, "zone-2"))

		By("removing the rules while the Pod runs, and creating it once more")
		divide(ctx, one, nil)
		until[corev1.Node](ctx, s, x.Host, nodeOne, HaveField("Spec.Unschedulable", false))
		s.running(ctx, "second", groupNode(one, "zone-2"))
		s.deletePod(ctx, "second")
		gone[corev1.Pod](ctx, s, x.Host, "second")
		s.pod(ctx, "third", using("data"), inOne)
		s.running(ctx, "third", nodeOne)
	}, SpecTimeout(2*storyTime))
})
