package stories_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// attachment matches a claim whose condition Attached has the given status, reason and message.
func attachment(status corev1.ConditionStatus, reason string, parts ...string) gomegatypes.GomegaMatcher {
	matchers := []gomegatypes.GomegaMatcher{HaveField("Type", v1alpha1.ClaimAttached), HaveField("Status", status), HaveField("Reason", reason)}
	for _, part := range parts {
		matchers = append(matchers, HaveField("Message", ContainSubstring(part)))
	}
	return HaveField("Status.Conditions", ContainElement(And(matchers...)))
}

var unattached = HaveField("Status.Conditions", Not(ContainElement(HaveField("Type", v1alpha1.ClaimAttached))))

var _ = Describe("A volume that must be attached", suite.Slow, Ordered, func() {
	const (
		attaching = "cluster41"
		node      = "kosmos-" + attaching
	)
	var member *harness.Cluster

	BeforeAll(func(ctx SpecContext) {
		options := memberOptions(attaching)
		options.Attach = true
		var err error
		member, err = x.AddMember(ctx, options)
		Expect(err).NotTo(HaveOccurred())
		Expect(x.Register(ctx, attaching, attaching)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			if CurrentSpecReport().Failed() {
				x.Dump(ctx, GinkgoWriter, "")
			}
			deregister(ctx, attaching)
			Expect(x.RemoveMember(ctx, attaching)).To(Succeed())
		}, NodeTimeout(storyTime))
	}, NodeTimeout(storyTime))

	// fails makes the driver's calls for a story's claim "data" fail until the story ends.
	fails := func(s *story, method, message string) {
		GinkgoHelper()
		Expect(member.SetFaults(csidriver.Fault{Method: method, Claim: s.namespace + "/data", Code: codes.Internal, Message: message})).To(Succeed())
		DeferCleanup(func() { Expect(member.SetFaults()).To(Succeed()) })
	}
	shows := func(ctx context.Context, s *story, match gomegatypes.GomegaMatcher) *corev1.PersistentVolumeClaim {
		GinkgoHelper()
		return until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", match)
	}
	// runs creates a claim and a Pod, and returns the node of the leaf Pod.
	runs := func(ctx context.Context, s *story) string {
		GinkgoHelper()
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(node))
		s.running(ctx, "app", node)
		return until[corev1.Pod](ctx, s, member, "app", HaveField("Spec.NodeName", Not(BeEmpty()))).Spec.NodeName
	}

	It("is shown with the member's node while a Pod uses it, and as detached afterwards (I5)", func(ctx SpecContext) {
		s := begin(ctx)
		leafNode := runs(ctx, s)
		shown := shows(ctx, s, attachment(corev1.ConditionTrue, v1alpha1.ReasonAttached, `attached to node "`+leafNode+`" of member "`+attaching+`" since 20`))
		Expect(s.book(attaching, "data").Attached()).To(HaveLen(1))
		Expect(strangers("root PersistentVolumeClaim", shown)).To(BeEmpty())

		By("checking that Xylem writes nothing while nothing changes")
		s.probed(ctx, 2)
		Expect(writes(shows(ctx, s, attachment(corev1.ConditionTrue, v1alpha1.ReasonAttached)))).To(Equal(writes(shown)))
		out, _, _ := s.plugin(ctx, "tree", "pvc", "data")
		Expect(out).To(ContainSubstring(`xylem.io/Attached=True Attached`))

		By("deleting the Pod")
		s.deletePod(ctx, "app")
		shows(ctx, s, attachment(corev1.ConditionFalse, v1alpha1.ReasonDetached, attaching))
		Expect(s.book(attaching, "data").Attached()).To(BeEmpty())
		out, _, code := s.plugin(ctx, "tree", "pvc", "data", "--problems")
		Expect(out).To(ContainSubstring("no problems"))
		Expect(code).To(BeZero())

		By("using the volume again, after a restart of the manager (I6)")
		Expect(x.Manager.Restart(ctx)).To(Succeed())
		s.pod(ctx, "again", using("data"), on(node))
		shows(ctx, s, attachment(corev1.ConditionTrue, v1alpha1.ReasonAttached, attaching))
	}, SpecTimeout(storyTime))

	It("has no condition Attached if the member's driver does not attach volumes", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		s.probed(ctx, 2)
		shows(ctx, s, And(phase(corev1.ClaimBound), unattached))
	}, SpecTimeout(storyTime))

	It("quotes the driver's error until it can be attached", func(ctx SpecContext) {
		s := begin(ctx)
		fails(s, ledger.PublishVolume, "the cable is loose")
		leafNode := runs(ctx, s)
		shows(ctx, s, attachment(corev1.ConditionFalse, v1alpha1.ReasonAttachFailed, `cannot attach the volume to node "`+leafNode+`"`, "the cable is loose", "Ask the member's admin"))
		s.noted(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonAttachFailed, "the cable is loose")
		s.why(ctx, "pvc", "data", v1alpha1.ReasonAttachFailed, "the cable is loose")
		out, _, _ := s.plugin(ctx, "tree", "pvc", "data", "--problems")
		Expect(out).To(ContainSubstring("the cable is loose"))

		Expect(member.SetFaults()).To(Succeed())
		shows(ctx, s, attachment(corev1.ConditionTrue, v1alpha1.ReasonAttached, leafNode))
		// The attach-detach controller retries with exponential backoff. It detaches the volume only after it
		// has noticed the success, and the provisioner, with its own backoff, deletes the volume only after that.
		suite.Until[corev1.Node](ctx, member, "", leafNode, HaveField("Status.VolumesAttached", Not(BeEmpty())))
	}, SpecTimeout(storyTime))

	It("quotes the driver's error if it cannot be detached after its Pod has been deleted", func(ctx SpecContext) {
		s := begin(ctx)
		leafNode := runs(ctx, s)
		shows(ctx, s, attachment(corev1.ConditionTrue, v1alpha1.ReasonAttached))
		fails(s, ledger.UnpublishVolume, "the door is stuck")
		s.deletePod(ctx, "app")
		shows(ctx, s, attachment(corev1.ConditionFalse, v1alpha1.ReasonDetachFailed, `cannot detach the volume from node "`+leafNode+`"`, "the door is stuck"))
		gone[corev1.Pod](ctx, s, x.Host, "app")

		Expect(member.SetFaults()).To(Succeed())
		shows(ctx, s, attachment(corev1.ConditionFalse, v1alpha1.ReasonDetached))
	}, SpecTimeout(storyTime))

	It("reports that attaching, and then detaching, takes too long, even if the driver reports no error", func(ctx SpecContext) {
		s := begin(ctx)
		attacher := member.Process(controlplane.Attacher)
		Expect(attacher.Freeze()).To(Succeed())
		DeferCleanup(attacher.Thaw)
		leafNode := runs(ctx, s)
		shows(ctx, s, attachment(corev1.ConditionFalse, v1alpha1.ReasonAttaching, `has been attaching the volume to node "`+leafNode+`" since 20`))
		s.why(ctx, "pvc", "data", v1alpha1.ReasonAttaching, leafNode, "ask the member's admin to check the driver")
		Expect(attacher.Thaw()).To(Succeed())
		shows(ctx, s, attachment(corev1.ConditionTrue, v1alpha1.ReasonAttached))

		By("deleting the Pod once the member's controller has observed the attachment")
		until[corev1.Node](ctx, s, member, leafNode, HaveField("Status.VolumesAttached", Not(BeEmpty())))
		Expect(attacher.Freeze()).To(Succeed())
		s.deletePod(ctx, "app")
		shows(ctx, s, attachment(corev1.ConditionTrue, v1alpha1.ReasonDetaching, `has been detaching the volume from node "`+leafNode+`" since 20`))
		Expect(attacher.Thaw()).To(Succeed())
		shows(ctx, s, attachment(corev1.ConditionFalse, v1alpha1.ReasonDetached))
	}, SpecTimeout(storyTime))

	It("has an unknown state while the member is away, and the current state when the member is connected again", func(ctx SpecContext) {
		s := begin(ctx)
		leafNode := runs(ctx, s)
		shows(ctx, s, attachment(corev1.ConditionTrue, v1alpha1.ReasonAttached))
		proxy := x.Fleet.Member(attaching).Proxy()
		Expect(proxy.SetMode(controlplane.Cut)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
			Expect(x.AwaitReady(ctx, attaching)).To(Succeed())
		}, NodeTimeout(settle))
		away := shows(ctx, s, attachment(corev1.ConditionUnknown, v1alpha1.ReasonMemberAway, `member "`+attaching+`" has been away since`, `The last report was: attached to node "`+leafNode+`"`))
		Expect(strangers("root PersistentVolumeClaim", away)).To(BeEmpty())

		Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
		shows(ctx, s, attachment(corev1.ConditionTrue, v1alpha1.ReasonAttached, leafNode))
	}, SpecTimeout(storyTime))

	It("shows text from the member only up to a maximum length, and only if it is about this volume's driver (I7, I8)", func(ctx SpecContext) {
		s := begin(ctx)
		leafNode := runs(ctx, s)
		shows(ctx, s, attachment(corev1.ConditionTrue, v1alpha1.ReasonAttached))
		pv := until[corev1.PersistentVolumeClaim](ctx, s, member, "data", phase(corev1.ClaimBound)).Spec.VolumeName
		driver := until[corev1.PersistentVolume](ctx, s, member, pv, phase(corev1.VolumeBound)).Spec.CSI.Driver
		attacher := x.Fleet.Member(attaching).Process(controlplane.Attacher)
		Expect(attacher.Freeze()).To(Succeed())
		DeferCleanup(func() { Expect(attacher.Thaw()).To(Succeed()) })
		forge := func(name, driver, on, failure string) {
			GinkgoHelper()
			forged := &storagev1.VolumeAttachment{
				ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + name},
				Spec:       storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: on, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
			}
			Expect(member.API.Create(ctx, forged)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(member.API.Delete(ctx, forged))).To(Succeed()) })
			forged.Status.AttachError = &storagev1.VolumeError{Message: failure}
			Expect(member.API.Status().Update(ctx, forged)).To(Succeed())
		}
		forge("another", "another.example.com", leafNode, "not of this volume's driver")
		forge("long", driver, "elsewhere", "first\nsecond\x1b[2J\u202e"+strings.Repeat("x", 900))

		shown := shows(ctx, s, attachment(corev1.ConditionFalse, v1alpha1.ReasonAttachFailed, `to node "elsewhere": first second`, "…", `attached to node "`+leafNode+`"`))
		for _, c := range shown.Status.Conditions {
			if c.Type == v1alpha1.ClaimAttached {
				Expect(len(c.Message)).To(BeNumerically("<", 900))
				Expect(c.Message).NotTo(Or(ContainSubstring("\n"), ContainSubstring("\x1b"), ContainSubstring("\u202e"), ContainSubstring("not of this")))
			}
		}
	}, SpecTimeout(storyTime))

	It("has an unknown state, without other effects, if an older member chart does not let Xylem read attachments", func(ctx SpecContext) {
		s := begin(ctx)
		runs(ctx, s)
		shows(ctx, s, attachment(corev1.ConditionTrue, v1alpha1.ReasonAttached))
		role := &rbacv1.ClusterRole{}
		Expect(member.API.Get(ctx, client.ObjectKey{Name: "xylem-member"}, role)).To(Succeed())
		older := role.DeepCopy()
		for i := range older.Rules {
			if older.Rules[i].Resources[0] == "volumeattachments" {
				older.Rules[i].Resources = []string{"csinodes"}
			}
		}
		Expect(older.Rules).NotTo(Equal(role.Rules))
		Expect(member.API.Update(ctx, older)).To(Succeed())
		Expect(x.Manager.Restart(ctx)).To(Succeed())
		shows(ctx, s, attachment(corev1.ConditionUnknown, v1alpha1.ReasonAttachmentsUnreadable, "volumeattachments.storage.k8s.io", "Upgrade the chart xylem-member"))

		By("checking that the member otherwise works")
		s.barrier(ctx, node)

		By("upgrading the chart")
		older.Rules = role.Rules
		Expect(member.API.Update(ctx, older)).To(Succeed())
		shows(ctx, s, attachment(corev1.ConditionTrue, v1alpha1.ReasonAttached))
	}, SpecTimeout(storyTime))

	It("has an unknown state while the member is deregistered", func(ctx SpecContext) {
		s := begin(ctx)
		runs(ctx, s)
		shows(ctx, s, attachment(corev1.ConditionTrue, v1alpha1.ReasonAttached))
		s.deletePod(ctx, "app")
		shows(ctx, s, attachment(corev1.ConditionFalse, v1alpha1.ReasonDetached))
		Expect(x.Deregister(ctx, attaching)).To(Succeed())
		shows(ctx, s, attachment(corev1.ConditionUnknown, v1alpha1.ReasonClusterGone, "The last report was: not attached to any node"))
		Expect(x.Register(ctx, attaching, attaching)).To(Succeed())
		shows(ctx, s, attachment(corev1.ConditionFalse, v1alpha1.ReasonDetached))
	}, SpecTimeout(storyTime))
})
