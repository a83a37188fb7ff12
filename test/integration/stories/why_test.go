package stories_test

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/status"
	"github.com/xylem-io/xylem/internal/cli/why"
	"github.com/xylem-io/xylem/internal/timeline"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// why expects `kubectl xylem why` to print a cause with a next step first, and to exit with 1. It
// adds both sentences to the report.
func (s *story) why(ctx context.Context, kind, name, reason string, parts ...string) {
	GinkgoHelper()
	var d *why.Diagnosis
	var printed string
	Eventually(func(g Gomega) {
		var code int
		d, code = s.diagnosed(ctx, g, kind, name)
		g.Expect(code).To(Equal(1))
		g.Expect(d.Verdict).To(Equal(why.Problem))
		g.Expect(d.Causes[0].Reason).To(Equal(reason), "%+v", d.Causes)
		g.Expect(d.ToDo).NotTo(BeEmpty(), d.Summary)
		printed, _, _ = s.plugin(ctx, "why", kind, name)
		for _, part := range parts {
			g.Expect(d.Summary + ". " + d.ToDo).To(ContainSubstring(part))
		}
	}).WithContext(ctx).Should(Succeed())
	Expect(printed).To(HavePrefix(d.Subject + " "))
	Expect(printed).To(ContainSubstring("\nTo do: "))
	Expect(printed).To(ContainSubstring("\nEvidence:\n"))
	on := d.Causes[0].ObjectRef
	shownOn := on.Kind
	if on.Cluster != "" {
		shownOn += " in the member"
	}
	s.answered(answer{On: shownOn, By: "kubectl xylem why", Reason: reason, Summary: d.Summary, ToDo: d.ToDo})
}

// electing replaces the manager by one that elects a leader, until the story ends.
func electing(ctx context.Context) *harness.Manager {
	GinkgoHelper()
	Expect(x.Manager.Stop()).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(x.Manager.Start(ctx)).To(Succeed()) }, NodeTimeout(settle))
	elected, err := x.AnotherManager(ctx, "elected", x.Fleet.Host, "--leader-elect")
	Expect(err).NotTo(HaveOccurred())
	// The usual manager elects no leader, so it would seem to be absent.
	DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, leaderLease())).To(Succeed()) }, NodeTimeout(settle))
	DeferCleanup(func() { Expect(elected.Stop()).To(Succeed()) })
	Expect(elected.Start(ctx)).To(Succeed())
	return elected
}

func leaderLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: v1alpha1.LeaderLease}}
}

// diagnosed returns the JSON output of `kubectl xylem why` with more arguments, and its exit code.
func (s *story) diagnosed(ctx context.Context, g Gomega, kind, name string, args ...string) (*why.Diagnosis, int) {
	out, complaints, code := s.plugin(ctx, append([]string{"why", "-o", "json", kind, name}, args...)...)
	g.Expect(complaints).To(BeEmpty())
	var d why.Diagnosis
	g.Expect(json.Unmarshal([]byte(out), &d)).To(Succeed())
	g.Expect(d.TypeMeta).To(Equal(metav1.TypeMeta{APIVersion: "cli.xylem.io/v1alpha1", Kind: "Diagnosis"}))
	return &d, code
}

var _ = Describe("kubectl xylem why", func() {
	It("reports that there is no problem, and exits with 0", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		s.bound(ctx, "data")
		for kind, says := range map[string]string{"pod": `runs in member "` + one + `"`, "pvc": `is bound to volume "pvc-`} {
			Eventually(func(g Gomega) {
				out, complaints, code := s.plugin(ctx, "why", kind+"/"+map[string]string{"pod": "app", "pvc": "data"}[kind])
				g.Expect(code).To(BeZero(), out+complaints)
				g.Expect(out).To(ContainSubstring(says))
				g.Expect(out).NotTo(ContainSubstring("Evidence"))
			}).WithContext(ctx).Should(Succeed())
		}
		By("listing how long each step of the claim took")
		d, _ := s.diagnosed(ctx, Default, "pvc", "data", "--live")
		for _, step := range []timeline.StepName{timeline.Selected, timeline.Provisioned, timeline.Mirrored, timeline.Bound, timeline.PodBound} {
			Expect(d.Times).To(ContainElement(HaveField("Name", step)))
		}
	}, SpecTimeout(storyTime))

	It("says first that no manager is the leader, as does kubectl xylem status", func(ctx SpecContext) {
		elected := electing(ctx)
		s := begin(ctx)
		s.claim(ctx, "data")
		Eventually(func(g Gomega) {
			d, _ := s.diagnosed(ctx, g, "pvc", "data")
			g.Expect(d.Verdict).To(Equal(why.Waiting))
			g.Expect(x.Host.API.Get(ctx, client.ObjectKeyFromObject(leaderLease()), &coordinationv1.Lease{})).To(Succeed())
		}).WithContext(ctx).Should(Succeed())
		Expect(elected.Stop()).To(Succeed())
		s.why(ctx, "PersistentVolumeClaim", "data", "NoLeader", "no manager is the leader", "kubectl xylem doctor")
		out, complaints, code := s.plugin(ctx, "status")
		Expect(code).To(BeZero(), complaints)
		Expect(out).To(ContainSubstring("no manager is the leader"))
	}, SpecTimeout(storyTime))

	It("exits with 2 if it has no diagnosis: for a missing claim, with a suggestion, and for an unsupported kind", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		_, complaints, code := s.plugin(ctx, "why", "pvc", "dat")
		Expect(code).To(Equal(2))
		Expect(complaints).To(ContainSubstring(`did you mean "data"?`))
		_, complaints, code = s.plugin(ctx, "why", "namespace/"+s.namespace)
		Expect(code).To(Equal(2))
		Expect(complaints).To(ContainSubstring("kubectl xylem tree namespace/" + s.namespace + " --problems"))
	}, SpecTimeout(storyTime))

	It("distinguishes a claim that waits for its first Pod from one with a problem", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		Eventually(func(g Gomega) {
			d, code := s.diagnosed(ctx, g, "pvc", "data")
			g.Expect(code).To(Equal(1))
			g.Expect(d.Verdict).To(Equal(why.Waiting))
			g.Expect(d.Summary).To(ContainSubstring("no Pod uses the claim yet"))
			g.Expect(d.ToDo).To(Equal("Create a Pod that uses the claim."))
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(storyTime))

	It("reports causes that Xylem does not handle: a missing claim or class, a class of another provisioner, a scheduling gate", Label(mistakes), func(ctx SpecContext) {
		s := begin(ctx)
		s.mistake("The Pod's claim does not exist")
		s.pod(ctx, "no-claim", using("missing"))
		s.why(ctx, "Pod", "no-claim", "NotFound", `claim "`+s.namespace+`/missing" does not exist in the host`, "Create the claim")

		s.mistake("The claim's StorageClass does not exist in the host")
		s.claim(ctx, "classless", ofClass("no-such-class"))
		s.pod(ctx, "classless", using("classless"))
		s.why(ctx, "Pod", "classless", "NotFound", `the host has no StorageClass "no-such-class"`)
		s.why(ctx, "PersistentVolumeClaim", "classless", "NotFound", `the host has no StorageClass "no-such-class"`)

		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "foreign-" + s.namespace}, Provisioner: "disk.example.com"}
		Expect(x.Host.API.Create(ctx, class)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, class)).To(Succeed()) })
		s.mistake("The claim's StorageClass belongs to another provisioner")
		s.claim(ctx, "foreign", ofClass(class.Name))
		s.why(ctx, "PersistentVolumeClaim", "foreign", "Foreign", `provisioner "disk.example.com"`, v1alpha1.ProvisionerName)

		s.mistake("The Pod has a scheduling gate")
		s.claim(ctx, "data")
		s.pod(ctx, "gated", using("data"), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}} })
		s.why(ctx, "Pod", "gated", corev1.PodReasonSchedulingGated, "schedulingGates")
	}, SpecTimeout(storyTime))

	It("reports why a Service has no endpoints in a member, and why a PodDisruptionBudget blocks evictions", func(ctx SpecContext) {
		s := begin(ctx)
		s.service(ctx, "db")
		s.pod(ctx, "db-0", boundTo(nodeTwo), ofApp("db", "db-0"))
		s.pod(ctx, "client", boundTo(nodeOne))
		s.running(ctx, "client")
		s.running(ctx, "db-0")
		s.why(ctx, "service", "db", v1alpha1.ReasonEndpointsInMember, `has no endpoints in member "`+one, "spec.services.reachable")
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db"}}
		budget.Spec = policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}}
		inHost(ctx, budget)
		s.why(ctx, "pdb", "db", policyv1.InsufficientPodsReason, "requires 1 healthy Pod, and has 1", "Add replicas")
		patch(ctx, x.Host, budget, `{"spec":{"minAvailable":0}}`)
		Eventually(func(g Gomega) {
			d, code := s.diagnosed(ctx, g, "pdb", "db")
			g.Expect(code).To(BeZero(), d.Summary)
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(storyTime))

	It("reports first that a member is away, for a Pod that ran in it and for the Pod's claim", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeTwo))
		s.running(ctx, "app", nodeTwo)
		s.bound(ctx, "data")
		back := cutOff(ctx, two, controlplane.Cut)
		s.why(ctx, "Pod", "app", v1alpha1.ReasonMemberAway, two)
		s.why(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonMemberAway)
		back()
		Expect(x.AwaitReady(ctx, two)).To(Succeed())
	}, SpecTimeout(storyTime))
})

var _ = Describe("kubectl xylem status", func() {
	It("shows members, Pods that wait, and the volumes that were provisioned", suite.Slow, suite.Core, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		s.bound(ctx, "data")
		s.claim(ctx, "other", ofClass(classImmediate))
		s.pod(ctx, "stuck", using("other"))
		s.shown(ctx, "Pod", "stuck", v1alpha1.ReasonImmediate)

		out, complaints, code := s.plugin(ctx, "status", "-o", "json")
		Expect(code).To(BeZero(), complaints)
		var f status.Fleet
		Expect(json.Unmarshal([]byte(out), &f)).To(Succeed())
		Expect(f.Missing).To(BeEmpty())
		Expect(f.Members).To(ContainElement(And(HaveField("Name", one), HaveField("Ready", true), HaveField("Version", HavePrefix("v1.")), HaveField("Node", nodeOne))))
		Expect(f.Pods).To(ContainElement(And(HaveField("Namespace", s.namespace), HaveField("Name", "stuck"), HaveField("Reason", v1alpha1.ReasonImmediate))))
		Expect(f.Provisioned.TenMinutes).To(BeNumerically(">=", 1))

		back := cutOff(ctx, two, controlplane.Cut)
		out, _, code = s.plugin(ctx, "status")
		Expect(code).To(BeZero())
		Expect(out).To(MatchRegexp(`(?m)^`+two+` +Unreachable `), out)
		Expect(out).To(ContainSubstring("! "+two+": Connected=False Unreachable"), out)
		back()
		Expect(x.AwaitReady(ctx, two)).To(Succeed())
	}, SpecTimeout(storyTime))
})
