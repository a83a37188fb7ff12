package stories_test

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// roleLabel is the role of a control plane's node, which kubectl shows.
const roleLabel = "node-role.kubernetes.io/control-plane"

// divided sets spec.nodes of a registration until the story ends, which then deletes its Pods. It waits until the virtual nodes of these groups are
// the only ones of the member that accept Pods.
func (s *story) divided(ctx context.Context, registration string, groups []string, rules ...v1alpha1.NodeGroup) {
	GinkgoHelper()
	divide(ctx, registration, rules)
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // A cleanup has a context of its own.
		divide(ctx, registration, nil)
		s.cleanUp(ctx) // a virtual node without a group is kept while Pods are bound to it
		virtualNodes(ctx, registration, v1alpha1.DefaultNodeNamePrefix+registration)
	}, NodeTimeout(storyTime))
	names := make([]string, 0, len(groups))
	for _, group := range groups {
		names = append(names, groupNode(registration, group))
	}
	virtualNodes(ctx, registration, names...)
}

func divide(ctx context.Context, registration string, rules []v1alpha1.NodeGroup) {
	GinkgoHelper()
	encoded, err := json.Marshal(rules)
	Expect(err).NotTo(HaveOccurred())
	patch(ctx, x.Host, &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: registration}}, fmt.Sprintf(`{"spec":{"nodes":%s}}`, encoded))
}

// groupNode is the name of a group's virtual node.
func groupNode(registration, group string) string {
	return v1alpha1.GroupNodeName(group, v1alpha1.DefaultNodeNamePrefix+registration)
}

// virtualNodes waits until a member has these virtual nodes, and no others.
func virtualNodes(ctx context.Context, registration string, names ...string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) ([]string, error) {
		var list corev1.NodeList
		err := x.Host.API.List(ctx, &list, client.MatchingLabels{v1alpha1.LabelCluster: registration})
		var found []string
		for i := range list.Items {
			ready := ""
			if !isReadyNode(&list.Items[i]) {
				ready = " is not ready"
			}
			found = append(found, list.Items[i].Name+ready)
		}
		return found, err
	}).Should(ConsistOf(names))
}

func isReadyNode(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// zoned labels a member's nodes with zones until the story ends: the first node is in zone-1, and so on.
func zoned(ctx context.Context, m *harness.Cluster) {
	GinkgoHelper()
	for i, name := range x.Fleet.Member(m.Name()).NodeNames() {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		patch(ctx, m, node, fmt.Sprintf(`{"metadata":{"labels":{%q:"zone-%d"}}}`, corev1.LabelTopologyZone, i+1))
		DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // A cleanup has a context of its own.
			patch(ctx, m, node, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, corev1.LabelTopologyZone))
		})
	}
}

func forEachNode() v1alpha1.NodeGroup {
	return v1alpha1.NodeGroup{ForEach: &v1alpha1.ForEachNode{Node: true}}
}

func forEachZone() v1alpha1.NodeGroup {
	return v1alpha1.NodeGroup{ForEach: &v1alpha1.ForEachNode{LabelKey: corev1.LabelTopologyZone}}
}

func hostNode(ctx context.Context, name string, match OmegaMatcher) {
	GinkgoHelper()
	until[corev1.Node](ctx, &story{}, x.Host, name, match)
}

var _ = Describe("A member as several nodes", func() {
	It("has a virtual node for each zone, which follows the zone's nodes", func(ctx SpecContext) {
		s := begin(ctx)
		m := x.Member(one)
		zoned(ctx, m)
		names := x.Fleet.Member(one).NodeNames()
		first := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: names[0]}}
		patch(ctx, m, first, fmt.Sprintf(`{"metadata":{"labels":{%q:"forged",%q:""}}}`, v1alpha1.LabelClusterID, roleLabel))
		DeferCleanup(func(ctx SpecContext) {
			patch(ctx, m, first, fmt.Sprintf(`{"metadata":{"labels":{%q:null,%q:null}}}`, v1alpha1.LabelClusterID, roleLabel))
		})
		s.divided(ctx, one, []string{"zone-1", "zone-2"}, forEachZone())
		hostNode(ctx, groupNode(one, "zone-1"), And(
			HaveField("Labels", And(
				HaveKeyWithValue(corev1.LabelTopologyZone, "zone-1"), HaveKeyWithValue(corev1.LabelHostname, groupNode(one, "zone-1")),
				HaveKeyWithValue(v1alpha1.LabelNodeGroup, "zone-1"), HaveKeyWithValue(v1alpha1.LabelClusterID, idOf(ctx, m)),
				Not(HaveKey(roleLabel)), // the member's other labels do not reach the host
			)),
			HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationNodeSelector, ContainSubstring("zone-1"))),
			HaveField("Status.Allocatable", HaveKey(corev1.ResourceCPU)),
		))

		By("cordoning and uncordoning the only node of a zone in the member")
		patch(ctx, m, first, `{"spec":{"unschedulable":true}}`)
		hostNode(ctx, groupNode(one, "zone-1"), HaveField("Spec.Unschedulable", true))
		hostNode(ctx, groupNode(one, "zone-2"), HaveField("Spec.Unschedulable", false))
		patch(ctx, m, first, `{"spec":{"unschedulable":null}}`)
		hostNode(ctx, groupNode(one, "zone-1"), HaveField("Spec.Unschedulable", false))

		By("moving all nodes into one zone")
		patch(ctx, m, first, fmt.Sprintf(`{"metadata":{"labels":{%q:"zone-2"}}}`, corev1.LabelTopologyZone))
		virtualNodes(ctx, one, groupNode(one, "zone-2"))
	}, SpecTimeout(storyTime))

	It("has a virtual node for each node, which goes when the node goes", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		m := x.Member(one)
		names := x.Fleet.Member(one).NodeNames()
		s.divided(ctx, one, names, forEachNode())
		var like corev1.Node
		Expect(m.API.Get(ctx, client.ObjectKey{Name: names[0]}, &like)).To(Succeed())
		added := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "added.node." + one, Labels: like.Labels, Annotations: like.Annotations}, Status: like.Status}
		Expect(m.API.Create(ctx, added)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(m.API.Delete(ctx, added))).To(Succeed()) })
		Eventually(ctx, func(ctx context.Context) ([]corev1.Node, error) {
			var list corev1.NodeList
			err := x.Host.API.List(ctx, &list, client.MatchingLabels{v1alpha1.LabelCluster: one})
			return list.Items, err
		}).Should(ContainElement(And(
			HaveField("Name", HavePrefix("added-node-"+one+"-")), // a dot cannot be part of a group's name
			HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationNodeSelector, ContainSubstring(added.Name))),
		)))
		Expect(m.API.Delete(ctx, added)).To(Succeed())
		wanted := make([]string, 0, len(names))
		for _, name := range names {
			wanted = append(wanted, groupNode(one, name))
		}
		virtualNodes(ctx, one, wanted...)
	}, SpecTimeout(storyTime))
})
