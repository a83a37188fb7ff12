package stories_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// preferring makes a Pod prefer a node, but lets the scheduler select another one.
func preferring(node string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}},
		}}
	}
}

func tolerant(p *corev1.Pod) {
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

var _ = Describe("Two members", func() {
	It("can have disks for claims in the same namespace, and each Pod runs in the member of its disk (I3)", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "here")
		s.claim(ctx, "there")
		s.pod(ctx, "here", using("here"), on(nodeOne))
		s.pod(ctx, "there", using("there"), on(nodeTwo))
		s.running(ctx, "here", nodeOne)
		s.running(ctx, "there", nodeTwo)

		By("creating Pods that tolerate any node, and that run in the member of their disk")
		s.pod(ctx, "follows-here", using("here"), tolerant, preferring(nodeTwo))
		s.pod(ctx, "follows-there", using("there"), tolerant, preferring(nodeOne))
		s.running(ctx, "follows-here", nodeOne)
		s.running(ctx, "follows-there", nodeTwo)

		By("creating a Pod that needs disks in both members, and therefore cannot be scheduled")
		s.pod(ctx, "torn", using("here"), using("there"), tolerant)
		until[corev1.Pod](ctx, s, x.Host, "torn", isFalse(corev1.PodScheduled, "node affinity"))

		By("checking that each member has only its own objects, in namespaces with the same name")
		for member, claim := range map[string]string{one: "here", two: "there"} {
			leaf := until[corev1.Namespace](ctx, s, x.Member(member), s.namespace, Not(BeNil()))
			Expect(leaf.Labels).To(HaveKeyWithValue(v1alpha1.LabelHost, idOf(ctx, x.Host)))
			Expect(s.left(ctx, x.Member(member))).To(ConsistOf(
				"*v1.Pod "+claim, "*v1.Pod follows-"+claim, "*v1.PersistentVolumeClaim "+claim))
			Expect(s.book(member, claim).Count(ledger.CreateVolume)).To(Equal(1))
		}
	}, SpecTimeout(storyTime))

	It("lose the namespace that Xylem created after it has been empty for some time", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.pod(ctx, "app", boundTo(nodeOne))
		s.pod(ctx, "also", boundTo(nodeTwo))
		s.running(ctx, "app")
		s.running(ctx, "also")
		// Foreign objects prevent the deletion of a namespace, as leaves do.
		inMember(ctx, x.Member(two), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "theirs"}})
		audit := x.Member(one).Audit()
		mark, err := audit.Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		s.deletePod(ctx, "app")
		s.deletePod(ctx, "also")
		Eventually(ctx, func(ctx context.Context) (controlplane.Requests, error) {
			requests, err := audit.Since(ctx, mark)
			return requests.By(harness.MemberUser).Where(func(r controlplane.Request) bool { return r.Verb == "list" && r.Namespace == s.namespace }), err
		}).WithPolling(time.Second).ShouldNot(BeEmpty(), "Xylem lists the namespace's objects")

		By("changing the host's namespace, because Xylem tries again only after ten minutes if one list fails")
		root := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
		Eventually(ctx, func(ctx context.Context) error {
			barriers++
			patch(ctx, x.Host, root, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/attempt":"%d"}}}`, barriers))
			_, err := read[corev1.Namespace](ctx, s, x.Member(one), s.namespace)
			return err
		}).WithPolling(5 * time.Second).Should(WithTransform(apierrors.IsNotFound, BeTrue()))
		until[corev1.Namespace](ctx, s, x.Member(two), s.namespace, HaveField("DeletionTimestamp", BeNil()))
	}, SpecTimeout(storyTime))

	It("run Pods with claims even if the Pods tolerate and prefer a plain node of the host", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "free")
		s.pod(ctx, "free", using("free"), tolerant, preferring(plainNode))
		s.claim(ctx, "pinned")
		s.pod(ctx, "pinned", using("pinned"), tolerant, on(plainNode))
		Expect(s.running(ctx, "free").Spec.NodeName).To(BeElementOf(nodeOne, nodeTwo))
		until[corev1.Pod](ctx, s, x.Host, "pinned", Or(
			isFalse(corev1.PodScheduled, "csi.xylem.io CSI driver is not installed on the node"), // from Kubernetes 1.37
			isFalse(corev1.PodScheduled, "did not have enough free storage")))

		By("creating a Pod without claims, which can still run on the plain node")
		s.pod(ctx, "plain", tolerant, on(plainNode))
		s.running(ctx, "plain", plainNode)
	}, SpecTimeout(storyTime))
})

// isFalse matches a Pod whose condition is False with this message.
func isFalse(condition corev1.PodConditionType, message string) OmegaMatcher {
	return HaveField("Status.Conditions", ContainElement(And(
		HaveField("Type", condition), HaveField("Status", corev1.ConditionFalse), HaveField("Message", ContainSubstring(message)))))
}

var _ = Describe("A Pod that is created with a virtual node as its nodeName", func() {
	// Importers and volume populators write selected-node and nodeName themselves.
	It("runs on the disk of a claim whose node was selected without a Pod, although the member's class waits for one", func(ctx SpecContext) {
		s := begin(ctx)
		selected := func(c *corev1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, route.AnnSelectedNode, nodeOne)
		}
		s.claim(ctx, "prime", selected)
		s.claim(ctx, "data", selected)
		s.pod(ctx, "importer", using("data"), boundTo(nodeOne))
		s.running(ctx, "importer", nodeOne)
		s.bound(ctx, "prime")
		s.pod(ctx, "late", using("prime"), on(nodeOne))
		s.running(ctx, "late", nodeOne)
		s.unwarned(ctx, x.Host, x.Member(one))
	}, SpecTimeout(storyTime))

	It("fails, as on a kubelet, if it does not fit on the node", func(ctx SpecContext) {
		s := begin(ctx)
		s.pod(ctx, "misfit", boundTo(nodeOne), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} })
		until[corev1.Pod](ctx, s, x.Host, "misfit", And(phase(corev1.PodFailed), HaveField("Status.Reason", "NodeAffinity")))
		s.noted(ctx, "Pod", "misfit", "NodeAffinity")
		Expect(s.left(ctx, x.Member(one))).To(BeEmpty())
	}, SpecTimeout(storyTime))

	It("reports what it waits for if its claim is not bound, and runs when it is", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "early", using("data"), boundTo(nodeOne))
		until[corev1.Pod](ctx, s, x.Host, "early", tells("ClaimNotBound", "data", "spec.nodeName"))
		s.noted(ctx, "Pod", "early", "ClaimNotBound")
		Expect(s.left(ctx, x.Member(one))).To(BeEmpty())

		s.pod(ctx, "scheduled", using("data"), on(nodeOne))
		s.running(ctx, "scheduled", nodeOne)
		s.running(ctx, "early", nodeOne)
	}, SpecTimeout(storyTime))

	It("reports that its claim is bound to a volume that the member cannot reach", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "first", using("data"), on(nodeOne))
		s.running(ctx, "first", nodeOne)
		s.pod(ctx, "astray", using("data"), boundTo(nodeTwo))
		until[corev1.Pod](ctx, s, x.Host, "astray", tells("VolumeUnreachable", "data", two))
		s.noted(ctx, "Pod", "astray", "VolumeUnreachable")
		Expect(s.left(ctx, x.Member(two))).To(BeEmpty())
	}, SpecTimeout(storyTime))
})

var _ = Describe("A placement before anything is bound", func() {
	unselect := func(ctx context.Context, s *story, claim string) {
		GinkgoHelper()
		patch(ctx, x.Host, s.newClaim(claim), `{"metadata":{"annotations":{"`+route.AnnSelectedNode+`":null}}}`)
	}

	It("moves to the other member when the scheduler selects it (I1, I3)", func(ctx SpecContext) {
		s := begin(ctx)
		provisioner := x.Fleet.Member(one).Process(controlplane.Provisioner)
		Expect(provisioner.Freeze()).To(Succeed())
		DeferCleanup(func() { Expect(provisioner.Thaw()).To(Succeed()) })
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), preferring(nodeOne))
		until[corev1.Pod](ctx, s, x.Member(one), "app", Not(BeNil()))
		placed := func(c *harness.Cluster) OmegaMatcher {
			return HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationPlacedIn, idOf(ctx, c)))
		}
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", placed(x.Member(one)))

		By("cordoning the node and removing the selection, as a provisioner does after a failure")
		s.cordoned(ctx, nodeOne)
		unselect(ctx, s, "data")
		s.running(ctx, "app", nodeTwo)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", placed(x.Member(two)))
		gone[corev1.Pod](ctx, s, x.Member(one), "app")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data")
		s.noted(ctx, "PersistentVolumeClaim", "data", "PlacementWithdrawn", one)

		By("letting the provisioner continue")
		Expect(provisioner.Thaw()).To(Succeed())
		s.barrierIn(ctx, x.Member(one), controlplane.ClassFast)
		Expect(s.book(one, "data").LiveIDs()).To(BeEmpty())
		Expect(s.book(two, "data").LiveIDs()).To(HaveLen(1))
	}, SpecTimeout(storyTime))

	It("is chosen again if the scheduler does not show which node it chose, even if only one member can copy its source", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.golden(ctx, nodeTwo)
		s.claim(ctx, "copy", from("golden"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "copy", steered(nodeTwo))
		s.claim(ctx, "data")
		Expect(x.Manager.Stop()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Manager.Start(ctx)).To(Succeed()) }, NodeTimeout(settle))
		pods := map[string]string{"data": nodeOne, "copy": nodeTwo}
		for name, node := range pods {
			pod := s.pod(ctx, name, using(name), on(node))
			until[corev1.PersistentVolumeClaim](ctx, s, x.Host, name, HaveField("Annotations", HaveKeyWithValue(route.AnnSelectedNode, node)))
			until[corev1.Pod](ctx, s, x.Host, name, HaveField("Status.NominatedNodeName", node))

			By("clearing the nomination, as the scheduler's own write does if it arrives after the next attempt")
			Expect(x.Host.API.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(`{"status":{"nominatedNodeName":null,"conditions":[{
				"type":"PodScheduled","status":"False","reason":"SchedulerError",
				"message":"running PreBind plugin \"VolumeBinding\": Operation cannot be fulfilled on persistentvolumeclaims: the object has been modified"}]}}`)))).To(Succeed())
		}
		Expect(x.Manager.Start(ctx)).To(Succeed())
		for name, node := range pods {
			s.running(ctx, name, node)
			s.noted(ctx, "Pod", name, v1alpha1.ReasonWithdrawn, name)
		}
		s.copied(ctx, "copy", two)
		Expect(s.book(one, "data").LiveIDs()).To(HaveLen(1))
	}, SpecTimeout(storyTime))

	It("leaves no volume behind if the first member's provisioner finishes one after the move (I1)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Fleet.Member(one)
		// The driver creates the volume, but delays its response.
		Expect(member.SetFaults(csidriver.Fault{
			Method: ledger.CreateVolume, Claim: s.namespace + "/data", Stall: true, After: true, Code: codes.OK,
		})).To(Succeed())
		DeferCleanup(func() { Expect(member.SetFaults()).To(Succeed()) })
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), preferring(nodeOne))
		Eventually(ctx, func() int { return len(s.book(one, "data").Live()) }).Should(Equal(1))

		s.cordoned(ctx, nodeOne)
		unselect(ctx, s, "data")
		s.running(ctx, "app", nodeTwo)
		Expect(member.SetFaults()).To(Succeed())
		Eventually(ctx, func() []string { return s.book(one, "data").LiveIDs() }).Should(BeEmpty())
		Expect(s.book(two, "data").LiveIDs()).To(HaveLen(1))
	}, SpecTimeout(storyTime))

	It("withdraws the leaf Pod when the Pod is deleted, and the leaf claim when the claim is deleted", func(ctx SpecContext) {
		s := begin(ctx)
		provisioner := x.Fleet.Member(one).Process(controlplane.Provisioner)
		Expect(provisioner.Freeze()).To(Succeed())
		DeferCleanup(func() { Expect(provisioner.Thaw()).To(Succeed()) })
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		until[corev1.Pod](ctx, s, x.Member(one), "app", Not(BeNil()))
		s.deletePod(ctx, "app")
		gone[corev1.Pod](ctx, s, x.Member(one), "app")
		s.deleteClaim(ctx, "data")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data")
		Expect(provisioner.Thaw()).To(Succeed())
		s.barrier(ctx, nodeOne)
		Expect(s.book(one, "data").LiveIDs()).To(BeEmpty())
	}, SpecTimeout(storyTime))

	It("cannot be forged by a user who writes a claim's selected node (I8)", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", func(c *corev1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, route.AnnSelectedNode, nodeOne)
		})
		gated := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}} }
		s.pod(ctx, "gated", using("data"), gated)
		s.pod(ctx, "elsewhere", using("data"), on("no-such-node"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", Not(BeNil()))
		s.barrier(ctx, nodeOne)
		Expect(s.left(ctx, x.Member(one))).NotTo(ContainElement(HavePrefix("*v1.Pod gated")))
		Expect(s.left(ctx, x.Member(one))).NotTo(ContainElement(HavePrefix("*v1.Pod elsewhere")))
		Expect(s.book(one, "data").Calls(ledger.CreateVolume)).To(BeZero())

		patch(ctx, x.Host, s.newPod("gated"), `{"spec":{"schedulingGates":null}}`)
		s.running(ctx, "gated", nodeOne)
	}, SpecTimeout(storyTime))

	It("removes and reports a selected node that is not a virtual node", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", func(c *corev1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, route.AnnSelectedNode, plainNode)
		})
		s.noted(ctx, "PersistentVolumeClaim", "data", "SelectedNodeNotVirtual", plainNode)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", HaveField("Annotations", Not(HaveKey(route.AnnSelectedNode))))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))
})
