package stories_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// impatient creates a class for the story, in the host and in the members, with a placement timeout
// of two seconds.
func (s *story) impatient(ctx context.Context) string {
	GinkgoHelper()
	return s.waits(ctx, "2s")
}

// stoppedProvisioner stops member one's provisioner until the story starts it, or ends.
func stoppedProvisioner(ctx context.Context) *controlplane.Process {
	GinkgoHelper()
	return stopped(ctx, one, controlplane.Provisioner)
}

// stopped stops a member's process until the story ends.
func stopped(ctx context.Context, member string, name controlplane.ProcessName) *controlplane.Process {
	GinkgoHelper()
	process := x.Fleet.Member(member).Process(name)
	Expect(process.Stop(ctx)).To(Succeed())
	DeferCleanup(process.Start, NodeTimeout(settle)) // reports an error as a failure
	return process
}

// waits creates a class for the story, in the host and in the members, with the given placement
// timeout.
func (s *story) waits(ctx context.Context, timeout string) string {
	GinkgoHelper()
	for _, m := range x.Members() {
		class := controlplane.Class(s.namespace, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
		class.Provisioner = controlplane.DefaultDriverName
		inMember(ctx, m, &class)
	}
	inMember(ctx, x.Host, hostClass(s.namespace, "", func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{v1alpha1.ParameterPlacementTimeout: timeout}
	}))
	for _, m := range x.Members() {
		Eventually(ctx, func(ctx context.Context) (int64, error) { return s.room(ctx, m) }).Should(BeNumerically(">", 0))
	}
	return s.namespace
}

// crowd creates a Pod on each node of a member, from which the story's Pods can keep away.
func (s *story) crowd(ctx context.Context, member string) {
	GinkgoHelper()
	for _, node := range x.Fleet.Member(member).NodeNames() {
		inMember(ctx, x.Member(member), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: s.namespace + "-" + node, Labels: map[string]string{"in-the-way-of": s.namespace}},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "example/main"}}},
		})
	}
}

// room returns a member's published capacity for the story's class, or 0 if there is none.
func (s *story) room(ctx context.Context, m *harness.Cluster) (int64, error) {
	var published storagev1.CSIStorageCapacityList
	if err := x.Host.API.List(ctx, &published, client.InNamespace(v1alpha1.DefaultNamespace), client.MatchingLabels{v1alpha1.LabelCluster: m.Name()}); err != nil {
		return 0, err
	}
	for i := range published.Items {
		if published.Items[i].StorageClassName == s.namespace {
			return published.Items[i].MaximumVolumeSize.Value(), nil
		}
	}
	return 0, nil
}

// faulty makes a member's driver fail for the story's claims until the story ends.
func (s *story) faulty(member string, code codes.Code, message string, claims ...string) {
	GinkgoHelper()
	var faults []csidriver.Fault
	for _, claim := range claims {
		faults = append(faults, csidriver.Fault{Method: ledger.CreateVolume, Claim: s.namespace + "/" + claim, Code: code, Message: message})
	}
	Expect(x.Fleet.Member(member).SetFaults(faults...)).To(Succeed())
	DeferCleanup(func() { s.repaired(member) })
}

func (*story) repaired(member string) {
	GinkgoHelper()
	Expect(x.Fleet.Member(member).SetFaults()).To(Succeed())
}

// moved waits until each claim has its volume in the second member, and checks that the first
// member has no leaf claim or disk left for it.
func (s *story) moved(ctx context.Context, claims ...string) {
	GinkgoHelper()
	for _, name := range claims {
		claim := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, name, And(phase(corev1.ClaimBound),
			HaveField("Annotations", And(HaveKeyWithValue(v1alpha1.AnnotationPlacedIn, idOf(ctx, x.Member(two))),
				Not(HaveKey(v1alpha1.AnnotationTried)), Not(HaveKey(v1alpha1.AnnotationSteeredTo))))))
		Expect(claim).To(suite.Unreported())
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), name)
		Expect(s.book(one, name).LiveIDs()).To(BeEmpty())
		// Another disk may have been created while the leaf claim was withdrawn. Xylem deletes it.
		Eventually(func() []string { return s.book(two, name).LiveIDs() }).Should(HaveLen(1))
	}
}

var _ = Describe("A claim that a member cannot satisfy", func() {
	It("is provisioned in another member, where its Pod runs, if the driver fails (I1, I3)", suite.Slow, suite.Core, func(ctx SpecContext) {
		s := begin(ctx)
		s.faulty(one, codes.Internal, "the array is on fire", "data")
		s.claim(ctx, "data", ofClass(s.impatient(ctx)))
		s.pod(ctx, "app", using("data"), preferring(nodeOne))
		s.running(ctx, "app", nodeTwo)
		s.moved(ctx, "data")
		s.noted(ctx, "Pod", "app", "PlacementMoved", one, "the array is on fire", fmt.Sprintf("member %q next", two))
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonWithdrawn, one)
		s.noted(ctx, "PersistentVolumeClaim", "data", "PlacementMoved", "the array is on fire")

		By("checking that the published capacity is unchanged")
		Expect(s.room(ctx, x.Member(one))).To(BeNumerically(">", 1<<40))
		s.claim(ctx, "other", ofClass(s.namespace))
		s.pod(ctx, "other", using("other"), on(nodeOne))
		s.running(ctx, "other", nodeOne)
	}, SpecTimeout(storyTime))

	It("is provisioned in another member if no node suits the Pod, without reducing the published capacity (I8)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := s.impatient(ctx)
		s.crowd(ctx, one)
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), preferring(nodeOne), awayFrom("in-the-way-of", s.namespace))
		s.running(ctx, "app", nodeTwo)
		s.moved(ctx, "data")
		s.noted(ctx, "Pod", "app", "PlacementMoved", one, "nodes are available")
		Expect(s.room(ctx, x.Member(one))).To(BeNumerically(">", 1<<40))
		s.claim(ctx, "other", ofClass(class))
		s.pod(ctx, "other", using("other"), on(nodeOne))
		s.running(ctx, "other", nodeOne)
	}, SpecTimeout(storyTime))

	DescribeTable("is provisioned in another member if a quota is exhausted", func(ctx SpecContext, resource corev1.ResourceName, part string) {
		s := begin(ctx)
		class := s.impatient(ctx)
		s.strange(ctx, x.Member(one), handedOver(ctx))
		s.exhausted(ctx, x.Member(one), resource)
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), preferring(nodeOne))
		s.running(ctx, "app", nodeTwo)
		s.moved(ctx, "data")
		s.noted(ctx, "Pod", "app", "PlacementMoved", one, "exceeded quota", part)
	},
		Entry("of claims", suite.Slow, SpecTimeout(storyTime), corev1.ResourcePersistentVolumeClaims, "the claim"),
		Entry("of Pods", SpecTimeout(storyTime), corev1.ResourcePods, "the Pod"),
	)

	It("is provisioned in another member if its class is deleted", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := s.impatient(ctx)
		provisioner := stoppedProvisioner(ctx)
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), preferring(nodeOne))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", HaveField("Annotations", HaveKey(route.AnnSelectedNode)))

		Expect(x.Member(one).API.Delete(ctx, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (int64, error) { return s.room(ctx, x.Member(one)) }).Should(BeZero())
		Expect(provisioner.Start(ctx)).To(Succeed())
		s.running(ctx, "app", nodeTwo)
		s.moved(ctx, "data")
		s.noted(ctx, "Pod", "app", "PlacementMoved", one, "not found")
	}, SpecTimeout(storyTime))

	It("is reassigned together with the other claims of its Pod", func(ctx SpecContext) {
		s := begin(ctx)
		class := s.impatient(ctx)
		// Both claims fail, because a disk of one would keep the other in this member.
		Expect(x.Fleet.Member(one).SetFaults(
			csidriver.Fault{Method: ledger.CreateVolume, Claim: s.namespace + "/data", Code: codes.Internal, Message: "no"},
			csidriver.Fault{Method: ledger.CreateVolume, Claim: s.namespace + "/logs", Code: codes.PermissionDenied, Message: "no"},
		)).To(Succeed())
		DeferCleanup(func() { s.repaired(one) })
		s.claim(ctx, "data", ofClass(class))
		s.claim(ctx, "logs", ofClass(class))
		s.pod(ctx, "app", using("data"), using("logs"), preferring(nodeOne))
		s.running(ctx, "app", nodeTwo)
		s.moved(ctx, "data", "logs")
	}, SpecTimeout(storyTime))

	It("is not reassigned if another claim of its Pod has a volume in that member, and reports that claim", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := s.impatient(ctx)
		s.claim(ctx, "logs", ofClass(class))
		s.pod(ctx, "earlier", using("logs"), on(nodeOne))
		s.running(ctx, "earlier", nodeOne)

		s.faulty(one, codes.Internal, "the array is on fire", "data")
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), using("logs"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells("ProvisioningFailed", "the array is on fire", `Pod "app" also uses claim "logs"`))
		By("making another claim fail: Xylem reassigns it")
		s.faulty(one, codes.Internal, "the array is on fire", "data", "later")
		s.claim(ctx, "later", ofClass(class))
		s.pod(ctx, "later", using("later"), preferring(nodeOne))
		s.running(ctx, "later", nodeTwo)
		stayed := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", Not(BeNil()))
		Expect(stayed.Annotations).To(And(HaveKeyWithValue(route.AnnSelectedNode, nodeOne), Not(HaveKey(v1alpha1.AnnotationTried))))

		s.repaired(one)
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))

	It("is attempted in each member with exponential backoff if all fail, and is provisioned when one is repaired (I5)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.faulty(one, codes.Internal, "the first is on fire", "data")
		s.faulty(two, codes.Internal, "the second is under water", "data")
		s.claim(ctx, "data", ofClass(s.impatient(ctx)))
		s.pod(ctx, "app", using("data"))
		s.noted(ctx, "Pod", "app", "PlacementFailed", "the first is on fire", "the second is under water")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(
			HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationTried, MatchRegexp(`"rounds":([2-9]|\d\d)`))),
			tells("ProvisioningFailed", "the first is on fire", "the second is under water")))
		s.repaired(two)
		s.running(ctx, "app", nodeTwo)
		s.moved(ctx, "data")
	}, SpecTimeout(storyTime))

	It("is reassigned to the next member and back if the scheduler does not place the Pod there", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.faulty(one, codes.Internal, "the first is on fire", "data")
		class := s.impatient(ctx)
		s.pod(ctx, "in-the-way", on(nodeTwo), func(p *corev1.Pod) { p.Labels = map[string]string{"in-the-way": "of-app"} })
		s.running(ctx, "in-the-way", nodeTwo)
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), awayFrom("in-the-way", "of-app"))
		s.noted(ctx, "Pod", "app", "PlacementFailed", "the first is on fire", `does not place Pod "app" in member`, two)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationTried, ContainSubstring(v1alpha1.ReasonNotScheduled))))
		s.why(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonProvisioningFailed, "the first is on fire", "does not place Pod")
		Expect(s.book(two, "data").Count(ledger.CreateVolume)).To(BeZero())
		// Otherwise, the volume could be bound while the leaf Pod is being withdrawn, and the Pod would fail.
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", HaveField("Annotations", And(
			HaveKeyWithValue(route.AnnSelectedNode, nodeTwo), Not(HaveKey(v1alpha1.AnnotationPlacedIn)))))
		s.repaired(one)
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))

	It("is reassigned if its Pod is replaced by one that can only run in another member, and the Pod reports why it waits", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := s.waits(ctx, "15s")
		s.crowd(ctx, one)
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), preferring(nodeOne), awayFrom("in-the-way-of", s.namespace))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells(v1alpha1.ReasonPodUnschedulable, one))
		s.deletePod(ctx, "app")
		gone[corev1.Pod](ctx, s, x.Member(one), "app")

		s.pod(ctx, "next", using("data"), on(nodeTwo))
		s.noted(ctx, "Pod", "next", v1alpha1.ReasonNotScheduled, `claim "data"`, one, "nodeSelector")
		s.running(ctx, "next", nodeTwo)
		s.noted(ctx, "Pod", "next", "PlacementMoved", fmt.Sprintf("does not place Pod %q in member %q", "next", one), two)
		s.moved(ctx, "data")
	}, SpecTimeout(storyTime))

	It("is reassigned only after Xylem has reduced the published capacity, if the member's driver lacks capacity", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := s.impatient(ctx)
		s.faulty(one, codes.ResourceExhausted, "the pool is full", "data")
		mark, err := x.Host.Audit().Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), preferring(nodeOne))
		s.running(ctx, "app", nodeTwo)
		s.moved(ctx, "data")
		s.noted(ctx, "Pod", "app", "PlacementMoved", one, "the pool is full")
		Expect(s.room(ctx, x.Member(one))).To(BeEquivalentTo(1<<30 - 1))
		Expect(s.room(ctx, x.Member(two))).To(BeNumerically(">", 1<<40))

		By("checking the order of the writes")
		requests, err := x.Host.Audit().Since(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		var order []string
		for _, r := range requests.By(harness.HostUser).Writes() {
			switch {
			case r.Code >= http.StatusBadRequest: // the scheduler has changed the claim, and Xylem retries
			case r.Resource == "csistoragecapacities" && r.Verb == "patch":
				order = append(order, "lowered")
			case r.Resource == "persistentvolumeclaims" && r.Namespace == s.namespace && r.Verb == "patch":
				order = append(order, "annotated")
			}
		}
		// Xylem places the claim in the first member, reduces the capacity, and reassigns the claim.
		Expect(strings.Join(order, " ")).To(HavePrefix("annotated lowered annotated"))

		By("placing a smaller claim in that member")
		s.claim(ctx, "small", ofClass(class), ofSize("512Mi"))
		s.pod(ctx, "small", using("small"), on(nodeOne))
		s.running(ctx, "small", nodeOne)
	}, SpecTimeout(storyTime))

	It("is reassigned without reducing the published capacity, if its Pod requires some of the member's nodes (I8)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := s.impatient(ctx)
		s.faulty(one, codes.ResourceExhausted, "the zone is full", "data")
		mark, err := x.Host.Audit().Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), preferring(nodeOne), awayFrom("in-the-way-of", s.namespace))
		s.running(ctx, "app", nodeTwo)
		s.moved(ctx, "data")
		s.noted(ctx, "Pod", "app", "PlacementMoved", one, "the zone is full")

		By("placing another claim of the same size in that member, whose capacity was not reduced")
		Expect(s.room(ctx, x.Member(one))).To(BeNumerically(">", 1<<40))
		s.claim(ctx, "next", ofClass(class))
		s.pod(ctx, "next", using("next"), on(nodeOne))
		s.running(ctx, "next", nodeOne)
		requests, err := x.Host.Audit().Since(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		for _, r := range requests.By(harness.HostUser).Writes() {
			Expect(r.Resource).NotTo(Equal("csistoragecapacities"), "%s", r.Verb)
		}
	}, SpecTimeout(storyTime))

	It("is not reassigned while the member is only slow", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := s.impatient(ctx)
		Expect(x.Fleet.Member(one).SetFaults(csidriver.Fault{Method: ledger.CreateVolume, Claim: s.namespace + "/slow", Stall: true})).To(Succeed())
		DeferCleanup(func() { s.repaired(one) })
		s.claim(ctx, "slow", ofClass(class))
		s.pod(ctx, "slow", using("slow"), preferring(nodeOne))
		// The provisioner aborts the call after suite.CallTimeout, and reports the timeout.
		s.noted(ctx, "PersistentVolumeClaim", "slow", "ProvisioningFailed", "DeadlineExceeded")
		By("making another claim fail: Xylem reassigns it")
		Expect(x.Fleet.Member(one).SetFaults(
			csidriver.Fault{Method: ledger.CreateVolume, Claim: s.namespace + "/slow", Stall: true},
			csidriver.Fault{Method: ledger.CreateVolume, Claim: s.namespace + "/later", Code: codes.Internal},
		)).To(Succeed())
		s.claim(ctx, "later", ofClass(class))
		s.pod(ctx, "later", using("later"), preferring(nodeOne))
		s.running(ctx, "later", nodeTwo)
		slow := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "slow", Not(BeNil()))
		Expect(slow.Annotations).To(HaveKeyWithValue(route.AnnSelectedNode, nodeOne))
		Expect(slow).To(suite.Unreported())
		s.repaired(one)
		s.running(ctx, "slow", nodeOne)
		Expect(s.book(one, "slow").LiveIDs()).To(HaveLen(1))
	}, SpecTimeout(storyTime))
})

var _ = Describe("A promise that its Pod's member cannot fulfill", func() {
	It("is fulfilled in another member, for another Pod of the same owner (I3)", func(ctx SpecContext) {
		s := begin(ctx)
		class := s.impatient(ctx)
		inMember(ctx, x.Host, hostClass(class+"-promise", class, func(c *storagev1.StorageClass) {
			c.Parameters[v1alpha1.ParameterProvisioning] = v1alpha1.ProvisioningPromise
			c.Parameters[v1alpha1.ParameterPlacementTimeout] = "2s"
		}))
		s.faulty(one, codes.Internal, "the array is on fire", "data")
		uncordon := s.cordoned(ctx, nodeTwo)
		s.claim(ctx, "data", ofClass(class+"-promise"))
		labels := map[string]string{"app": "web"}
		web := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: s.newPod("", using("data"), inMembers).Spec},
			},
		}
		Expect(x.Host.API.Create(ctx, web)).To(Succeed())
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells("ProvisioningFailed", "the array is on fire"))

		By("checking that the Pod is kept as long as no other member can run it")
		s.pod(ctx, "alone", using("data"), on(nodeOne))
		s.barrier(ctx, nodeOne)
		Expect(s.phases(ctx)).NotTo(ContainElement(corev1.PodFailed))

		By("making another member available")
		s.deletePod(ctx, "alone")
		s.cordoned(ctx, nodeOne)
		uncordon(ctx)
		Eventually(ctx, func(ctx context.Context) ([]corev1.PodPhase, error) { return s.phases(ctx), nil }).
			Should(And(ContainElement(corev1.PodRunning), ContainElement(corev1.PodFailed)))
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data")
		Expect(s.book(two, "data").LiveIDs()).To(HaveLen(1))
		Expect(s.bound(ctx, "data").Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationPlacedIn, idOf(ctx, x.Member(two))))
	}, SpecTimeout(storyTime))
})

var _ = Describe("The recovery sample", func() {
	It("runs in the member that can provision its claim", suite.Slow, func(ctx SpecContext) {
		s := beginIn(ctx, "roaming")
		s.faulty(one, codes.Internal, "the array is on fire", "roaming")
		sample := x.Root("config", "samples", "recovery.yaml")
		DeferCleanup(func(ctx SpecContext) { remove(ctx, x.Host, hostClass("roaming", "")) }, NodeTimeout(settle))
		_, err := x.Kubectl(ctx, x.Fleet.Host, "apply", "-f", sample)
		Expect(err).NotTo(HaveOccurred())
		s.running(ctx, "roaming", nodeTwo)
		s.moved(ctx, "roaming")
	}, SpecTimeout(storyTime))
})

var _ = Describe("A member that becomes unreachable before it has provisioned a claim", func() {
	It("loses the claim to another member if it has not begun to provision it", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := s.impatient(ctx)
		cutOff(ctx, one, controlplane.Cut)
		// The scheduler selects the member's node only until the node shows that the member is away.
		s.claim(ctx, "data", ofClass(class), func(c *corev1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, route.AnnSelectedNode, nodeOne)
		})
		s.pod(ctx, "app", using("data"), preferring(nodeOne))
		s.noted(ctx, "PersistentVolumeClaim", "data", "MemberAway", one, "Xylem has created nothing there")
		s.running(ctx, "app", nodeTwo)
		Expect(s.bound(ctx, "data").Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationPlacedIn, idOf(ctx, x.Member(two))))
	}, SpecTimeout(storyTime))

	It("keeps the claim if it has begun to provision it, and the claim reports what to do (I3)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := s.impatient(ctx)
		s.faulty(one, codes.Unavailable, "not yet", "data")
		s.claim(ctx, "data", ofClass(class))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", HaveField("Annotations", HaveKey(v1alpha1.AnnotationPlacedIn)))
		cutOff(ctx, one, controlplane.Cut)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells("MemberAway", one, "delete the claim", v1alpha1.AnnotationForceDeregister))
		By("creating another claim: it is placed in the other member")
		s.claim(ctx, "other", ofClass(class))
		s.pod(ctx, "other", using("other"))
		s.running(ctx, "other", nodeTwo)
		kept := until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", Not(BeNil()))
		Expect(kept.Annotations).To(HaveKeyWithValue(route.AnnSelectedNode, nodeOne))

		s.repaired(one)
		Expect(x.Fleet.Member(one).Proxy().SetMode(controlplane.Pass)).To(Succeed())
		s.running(ctx, "app", nodeOne)
		Expect(s.bound(ctx, "data")).To(suite.Unreported())
	}, SpecTimeout(storyTime))
})

// inMembers keeps a Pod off the host's own nodes.
func inMembers(p *corev1.Pod) {
	p.Spec.NodeSelector = map[string]string{v1alpha1.LabelVirtualNode: "true"}
}

// phases returns the phases of the story's Pods labelled app=web.
func (s *story) phases(ctx context.Context) []corev1.PodPhase {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(x.Host.API.List(ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabels{"app": "web"})).To(Succeed())
	var phases []corev1.PodPhase
	for i := range pods.Items {
		phases = append(phases, pods.Items[i].Status.Phase)
	}
	return phases
}

// awayFrom keeps a Pod off nodes that run Pods with a label in the Pod's own namespace or in the
// namespace default.
func awayFrom(key, value string) podOption {
	return func(p *corev1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
			Namespaces: []string{p.Namespace, metav1.NamespaceDefault},
		}}}
	}
}

// exhausted creates a quota in a member that allows no object of a kind in the story's namespace. It
// returns when the member rejects these objects because of the quota, and no longer because the
// quota lacks a status.
func (s *story) exhausted(ctx context.Context, m *harness.Cluster, of corev1.ResourceName) *corev1.ResourceQuota {
	GinkgoHelper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("no-%s", of)},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{of: resource.MustParse("0")}},
	}
	inMember(ctx, m, quota)
	object := map[corev1.ResourceName]func() client.Object{
		corev1.ResourceConfigMaps: func() client.Object {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "probe"}}
		},
		corev1.ResourcePersistentVolumeClaims: func() client.Object { return s.newClaim("probe") },
		corev1.ResourcePods:                   func() client.Object { return s.newPod("probe") },
		corev1.ResourceServices: func() client.Object {
			return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "probe"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
		},
	}[of]
	Eventually(ctx, func(ctx context.Context) error { return m.API.Create(ctx, object(), client.DryRunAll) }).
		Should(MatchError(ContainSubstring("exceeded quota: " + quota.Name)))
	return quota
}
