package stories_test

import (
	"context"
	"fmt"
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// roomy creates a class in both members and in the host. The story publishes the capacity in place
// of the members' drivers.
func roomy(ctx context.Context, name string) {
	GinkgoHelper()
	for _, member := range []string{one, two} {
		class := controlplane.Class(name, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
		class.Provisioner = controlplane.DefaultDriverName
		inMember(ctx, x.Member(member), &class)
	}
	inHost(ctx, hostClass(name, ""))
}

// segment publishes the capacity of one topology segment in a member, as an external-provisioner
// does in its own namespace.
func segment(ctx context.Context, m *harness.Cluster, class, name, free string) *storagev1.CSIStorageCapacity {
	GinkgoHelper()
	amount := resource.MustParse(free)
	published := &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: class + "-" + name},
		StorageClassName: class, Capacity: &amount,
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/segment": name}},
	}
	inMember(ctx, m, published)
	return published
}

func frees(ctx context.Context, m *harness.Cluster, published *storagev1.CSIStorageCapacity, free string) {
	GinkgoHelper()
	patch(ctx, m, published, fmt.Sprintf(`{"capacity":%q}`, free))
}

// room waits until the host shows the given capacity of a member for a class, in bytes. If the
// member's driver reports no capacity, the shown free capacity may be an estimate.
func room(ctx context.Context, m *harness.Cluster, class string, want int64) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) ([]int64, error) {
		list, err := shown(ctx, m, class)
		var sizes []int64
		for i := range list {
			sizes = append(sizes, list[i].MaximumVolumeSize.Value())
			if want != math.MaxInt64 || list[i].Annotations[v1alpha1.AnnotationCapacityEstimated] == "" {
				sizes = append(sizes, list[i].Capacity.Value())
			}
		}
		return sizes, err
	}).Should(And(Not(BeEmpty()), HaveEach(want)))
}

// guessed waits until the host shows the given estimate of a member's free capacity for a class,
// with an unlimited maximum volume size.
func guessed(ctx context.Context, m *harness.Cluster, class string, free int64) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) ([]storagev1.CSIStorageCapacity, error) { return shown(ctx, m, class) }).Should(ConsistOf(And(
		HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationCapacityEstimated, "true")),
		HaveField("Capacity.Value()", free),
		HaveField("MaximumVolumeSize.Value()", int64(math.MaxInt64)),
	)))
}

// leaning makes a Pod prefer one node to another, but with less than half of the weight that
// capacity can have.
func leaning(to, from string) podOption {
	return func(p *corev1.Pod) {
		prefers := func(node string, weight int32) corev1.PreferredSchedulingTerm {
			return corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}
		}
		// The scheduler scales the best node's score to 100 and doubles it, so the scores are 200
		// and 180. For capacity, a node's score is at most 100.
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{prefers(to, 100), prefers(from, 90)},
		}}
	}
}

// shown returns the capacity that the host shows for a member and a class.
func shown(ctx context.Context, m *harness.Cluster, class string) ([]storagev1.CSIStorageCapacity, error) {
	GinkgoHelper()
	var list, of storagev1.CSIStorageCapacityList
	err := x.Host.API.List(ctx, &list, client.InNamespace(v1alpha1.DefaultNamespace), client.MatchingLabels{v1alpha1.LabelClusterID: idOf(ctx, m)})
	for i := range list.Items {
		if list.Items[i].StorageClassName == class {
			of.Items = append(of.Items, list.Items[i])
		}
	}
	return of.Items, err
}

const gi = 1 << 30

var _ = Describe("Capacity in members", func() {
	It("makes the stock scheduler skip a member until the member has capacity again", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		roomy(ctx, "roomy")
		By("checking that capacity counts as unlimited if the driver does not report it")
		room(ctx, x.Member(one), "roomy", math.MaxInt64)
		small := segment(ctx, x.Member(one), "roomy", "rack-1", "1Gi")
		room(ctx, x.Member(one), "roomy", gi)
		room(ctx, x.Member(two), "roomy", math.MaxInt64)

		By("creating a claim that is too large for the member that its Pod prefers")
		s.claim(ctx, "large", ofClass("roomy"), ofSize("2Gi"))
		s.pod(ctx, "large", using("large"), preferring(nodeOne))
		s.running(ctx, "large", nodeTwo)
		s.claim(ctx, "small", ofClass("roomy"), ofSize("1Gi"))
		s.pod(ctx, "small", using("small"), preferring(nodeOne))
		s.running(ctx, "small", nodeOne)

		By("creating a Pod that must run in that member, and that waits until the member has capacity")
		s.claim(ctx, "waits", ofClass("roomy"), ofSize("3Gi"))
		s.pod(ctx, "waits", using("waits"), on(nodeOne))
		until[corev1.Pod](ctx, s, x.Host, "waits", isFalse(corev1.PodScheduled, "did not have enough free storage"))
		frees(ctx, x.Member(one), small, "4Gi")
		s.running(ctx, "waits", nodeOne)
	}, SpecTimeout(storyTime))

	It("is estimated if the driver does not report it, so that the member does not get all claims", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		roomy(ctx, "ranked")
		published := segment(ctx, x.Member(one), "ranked", "rack-1", "100Gi")
		room(ctx, x.Member(one), "ranked", 100*gi)
		By("checking that the estimate is the capacity that the other member reports")
		guessed(ctx, x.Member(two), "ranked", 100*gi)
		s.claim(ctx, "half", ofClass("ranked"), ofSize("60Gi"))
		s.pod(ctx, "half", using("half"), leaning(nodeOne, nodeTwo))
		s.running(ctx, "half", nodeOne)

		By("creating a claim that is larger than the estimate")
		s.claim(ctx, "large", ofClass("ranked"), ofSize("200Gi"))
		s.pod(ctx, "large", using("large"), preferring(nodeOne))
		s.running(ctx, "large", nodeTwo)

		By("checking that the estimate changes only if it is far from the reported capacity")
		books := opened(ctx)
		frees(ctx, x.Member(one), published, "90Gi")
		room(ctx, x.Member(one), "ranked", 90*gi)
		guessed(ctx, x.Member(two), "ranked", 100*gi)
		frees(ctx, x.Member(one), published, "400Gi")
		guessed(ctx, x.Member(two), "ranked", 400*gi)
		list, err := shown(ctx, x.Member(two), "ranked")
		Expect(err).NotTo(HaveOccurred())
		Expect(books.requests(ctx, x.Host).Writes().Where(func(r controlplane.Request) bool {
			return r.Resource == "csistoragecapacities" && r.Name == list[0].Name
		})).To(HaveLen(1))
	}, SpecTimeout(storyTime))

	It("attracts claims to the member with the most capacity if both members report it", func(ctx SpecContext) {
		suite.From(x.Host, "1.37", "its scheduler does not rank nodes by capacity")
		s := begin(ctx)
		roomy(ctx, "richer")
		segment(ctx, x.Member(one), "richer", "rack-1", "400Gi")
		segment(ctx, x.Member(two), "richer", "rack-1", "100Gi")
		room(ctx, x.Member(one), "richer", 400*gi)
		room(ctx, x.Member(two), "richer", 100*gi)
		s.claim(ctx, "data", ofClass("richer"), ofSize("90Gi"))
		s.pod(ctx, "app", using("data"), leaning(nodeTwo, nodeOne))
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))

	It("is reported on the claim and its Pod if the host rejects it", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		const class = "unpublished"
		probe := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "probe"}, StorageClassName: class}
		allow := deniedUnless(ctx, x.Host, probe, storagev1.SchemeGroupVersion.WithResource("csistoragecapacities"),
			fmt.Sprintf("object.storageClassName != %q", class), "no capacities today")
		roomy(ctx, class)
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"))
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonCapacityUnpublished, fmt.Sprintf("member %q has no CSIStorageCapacity in the host", one), "kubectl describe clusterregistration "+one)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells(v1alpha1.ReasonCapacityUnpublished, one, two, "events"))
		allow(ctx)
		until[corev1.Pod](ctx, s, x.Host, "app", phase(corev1.PodRunning))
	}, SpecTimeout(storyTime))

	It("is the capacity of the largest segment, not the sum, and zero if all segments are full", func(ctx SpecContext) {
		s := begin(ctx)
		roomy(ctx, "racks")
		first := segment(ctx, x.Member(one), "racks", "rack-1", "3Gi")
		second := segment(ctx, x.Member(one), "racks", "rack-2", "2Gi")
		segment(ctx, x.Member(two), "racks", "rack-1", "8Gi")
		room(ctx, x.Member(one), "racks", 3*gi)
		s.claim(ctx, "data", ofClass("racks"), ofSize("5Gi"))
		s.pod(ctx, "app", using("data"), preferring(nodeOne))
		s.running(ctx, "app", nodeTwo)

		frees(ctx, x.Member(one), first, "0")
		room(ctx, x.Member(one), "racks", 2*gi)
		frees(ctx, x.Member(one), second, "0")
		room(ctx, x.Member(one), "racks", 0)
		By("checking that capacity counts as unlimited again when the driver no longer reports it")
		for _, published := range []*storagev1.CSIStorageCapacity{first, second} {
			Expect(x.Member(one).API.Delete(ctx, published)).To(Succeed())
		}
		room(ctx, x.Member(one), "racks", math.MaxInt64)
	}, SpecTimeout(storyTime))

	It("is written when it changes, but only rarely if it changes many times", suite.Slow, func(ctx SpecContext) {
		begin(ctx)
		roomy(ctx, "stormy")
		published := segment(ctx, x.Member(one), "stormy", "rack-1", "1Gi")
		room(ctx, x.Member(one), "stormy", gi)
		list, err := shown(ctx, x.Member(one), "stormy")
		Expect(err).NotTo(HaveOccurred())
		name := list[0].Name
		books := opened(ctx)
		const storm = 300
		for i := range storm {
			frees(ctx, x.Member(one), published, fmt.Sprintf("%dMi", 2048+i))
		}
		By("changing a smaller segment, which does not cause a write")
		second := segment(ctx, x.Member(one), "stormy", "rack-2", "1Mi")
		for i := range storm {
			frees(ctx, x.Member(one), second, fmt.Sprintf("%dMi", 2+i))
		}
		room(ctx, x.Member(one), "stormy", (2048+storm-1)<<20)
		writes := books.requests(ctx, x.Host).Writes().Where(func(r controlplane.Request) bool {
			return r.Resource == "csistoragecapacities" && r.Name == name
		})
		Expect(len(writes)).To(BeNumerically("<", storm/10), writes.String())
	}, SpecTimeout(storyTime))
})
