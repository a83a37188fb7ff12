package stories_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// cordoned cordons a host node until the story ends, or until uncordon() is called. It returns when
// the scheduler applies this.
func (s *story) cordoned(ctx context.Context, node string) (uncordon func(context.Context)) {
	GinkgoHelper()
	uncordon = cordoning(ctx, node)
	probe := s.attempt(ctx, unbindable("node(s) were unschedulable"), on(node))
	Expect(x.Host.API.Delete(ctx, s.newPod(probe), client.GracePeriodSeconds(0))).To(Succeed())
	return uncordon
}

// cordoning does the same, but does not wait for the scheduler.
func cordoning(ctx context.Context, node string) (uncordon func(context.Context)) {
	GinkgoHelper()
	set := func(ctx context.Context, is bool) {
		patch(ctx, x.Host, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, is))
	}
	set(ctx, true)
	DeferCleanup(func(ctx SpecContext) { set(ctx, false) }, NodeTimeout(settle)) //nolint:contextcheck // A cleanup has a context of its own.
	return func(ctx context.Context) { set(ctx, false) }
}

// denied makes a cluster reject new objects with the kind and name of obj until the story ends, or
// until allow() is called. It returns when the cluster rejects them.
func denied(ctx context.Context, c *harness.Cluster, obj client.Object, resource schema.GroupVersionResource, message string) (allow func(context.Context)) {
	GinkgoHelper()
	return deniedUnless(ctx, c, obj, resource, fmt.Sprintf("object.metadata.name != %q", obj.GetName()), message)
}

// deniedUnless does the same for all new objects of a resource for which the expression is false.
// probe is such an object.
func deniedUnless(ctx context.Context, c *harness.Cluster, probe client.Object, resource schema.GroupVersionResource, expression, message string) (allow func(context.Context)) {
	GinkgoHelper()
	objects := suite.Denying("story-denies-"+probe.GetName(), resource, admissionv1.Validation{Expression: expression, Message: message}, admissionv1.Create)
	for _, policy := range objects {
		inMember(ctx, c, policy)
	}
	answer := func(ctx context.Context) string {
		object, ok := probe.DeepCopyObject().(client.Object)
		Expect(ok).To(BeTrue())
		return fmt.Sprint(c.API.Create(ctx, object, client.DryRunAll))
	}
	Eventually(ctx, answer).Should(ContainSubstring(message))
	return func(ctx context.Context) {
		for _, policy := range objects {
			Expect(c.API.Delete(ctx, policy)).To(Succeed())
		}
		Eventually(ctx, answer).ShouldNot(ContainSubstring(message))
	}
}

var _ = Describe("What a Pod waits for", func() {
	It("is an uncordoned node or a suitable member", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.cordoned(ctx, nodeOne)
		uncordon := s.cordoned(ctx, nodeTwo)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"))
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonCordoned, one, two, "kubectl uncordon "+nodeOne)

		By("uncordoning one of the nodes, but adding a taint to it")
		repaired := tainted(ctx, nodeTwo, corev1.Taint{Key: "example.com/repair", Effect: corev1.TaintEffectNoSchedule})
		uncordon(ctx)
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonNoMemberFits, fmt.Sprintf("member %q is cordoned", one), fmt.Sprintf("member %q has a taint that the Pod does not tolerate", two), "example.com/repair")

		repaired(ctx)
		s.running(ctx, "app", nodeTwo)
	}, SpecTimeout(storyTime))

	It("is an uncordoned node, although its containers run in the member already", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		provisioner := stoppedProvisioner(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		until[corev1.Pod](ctx, s, x.Member(one), "app", Not(BeNil()))

		By("cordoning the node while the host's scheduler does not run, and provisioning the volume")
		scheduler := x.Fleet.Host.Process(controlplane.Scheduler)
		Expect(scheduler.Stop(ctx)).To(Succeed())
		DeferCleanup(scheduler.Start, NodeTimeout(settle))
		uncordon := cordoning(ctx, nodeOne)
		Expect(provisioner.Start(ctx)).To(Succeed())
		until[corev1.Pod](ctx, s, x.Member(one), "app", phase(corev1.PodRunning))
		s.bound(ctx, "data")

		By("starting the scheduler, which cannot bind the Pod")
		shows := func(reason, message string) OmegaMatcher {
			return HaveField("Status.Conditions", ContainElement(And(HaveField("Type", v1alpha1.PodPushed), HaveField("Status", corev1.ConditionTrue),
				HaveField("Reason", reason), HaveField("Message", ContainSubstring(message)))))
		}
		Expect(scheduler.Start(ctx)).To(Succeed())
		until[corev1.Pod](ctx, s, x.Host, "app", And(unbindable("node(s) were unschedulable"), shows(corev1.PodReasonUnschedulable, "A drain of the node does not end it")))
		uncordon(ctx)
		s.running(ctx, "app", nodeOne)
		until[corev1.Pod](ctx, s, x.Host, "app", shows(v1alpha1.ReasonPushed, one))
	}, SpecTimeout(storyTime))

	It("is a connected member", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		for _, member := range []string{one, two} {
			cutOff(ctx, member, controlplane.Cut)
		}
		for _, node := range []string{nodeOne, nodeTwo} {
			until[corev1.Node](ctx, s, x.Host, node, HaveField("Spec.Taints", ContainElement(HaveField("Key", v1alpha1.TaintMemberAway))))
		}
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"))
		s.shown(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonNoneConnected, one, two, "kubectl get clusterregistrations")
		s.why(ctx, "Pod", "app", v1alpha1.ReasonNoneConnected, one, two, "kubectl get clusterregistrations")
	}, SpecTimeout(storyTime))

	It("is the claim of its ephemeral volume while another claim has that claim's name", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "app-scratch")
		scratch := func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: s.newClaim("any").Spec},
			}}}}
		}
		s.pod(ctx, "app", boundTo(nodeOne), scratch)
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonClaimForeign, `claim "app-scratch"`, "Delete that claim")
		Expect(s.left(ctx, x.Member(one))).To(BeEmpty())
	}, SpecTimeout(storyTime))

	It("is its namespace, which the member's admission rejects", func(ctx SpecContext) {
		s := begin(ctx)
		allow := denied(ctx, x.Member(one), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, corev1.SchemeGroupVersion.WithResource("namespaces"), "ask the platform team")
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonNamespaceRefused, one, "ask the platform team", "kubectl label namespace "+s.namespace)
		s.why(ctx, "Pod", "app", v1alpha1.ReasonNamespaceRefused, one, "ask the platform team", "Ask the member's admin to allow the namespace")

		By("binding a Pod to the member's node before its claim exists, and then creating the claim: the Pod reports the namespace")
		s.pod(ctx, "early", using("promised"), boundTo(nodeOne))
		until[corev1.Pod](ctx, s, x.Host, "early", tells(v1alpha1.ReasonClaimNotBound, `no claim "promised"`))
		s.claim(ctx, "promised", ofClass(classPromise))
		// root_pod may see the claim before or after root_pvc has reported the namespace on it.
		until[corev1.Pod](ctx, s, x.Host, "early", Or(tells(v1alpha1.ReasonVolumeAwaited, `claim "promised"`, one), tells(v1alpha1.ReasonNamespaceRefused, `claim "promised"`, one)))
		s.why(ctx, "Pod", "early", v1alpha1.ReasonNamespaceRefused, one, "ask the platform team", "Ask the member's admin to allow the namespace")

		allow(ctx)
		s.running(ctx, "app", nodeOne)
		s.running(ctx, "early", nodeOne)
	}, SpecTimeout(storyTime))

	It("is the manager's permission to read its Secret", func(ctx SpecContext) {
		s := begin(ctx)
		Expect(x.Host.API.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "password"}})).To(Succeed())
		role := &rbacv1.ClusterRole{}
		Expect(x.Host.API.Get(ctx, client.ObjectKey{Name: "xylem-manager-role"}, role)).To(Succeed())
		granted := role.DeepCopy()
		for i := range role.Rules {
			if resources := role.Rules[i].Resources; slices.Equal(resources, []string{"configmaps", "secrets"}) {
				role.Rules[i].Resources = resources[:1]
			}
		}
		Expect(role.Rules).NotTo(Equal(granted.Rules))
		Expect(x.Host.API.Update(ctx, role)).To(Succeed())
		grant := func(ctx context.Context) {
			role.Rules = granted.Rules
			Expect(x.Host.API.Update(ctx, role)).To(Succeed())
		}
		DeferCleanup(func(ctx SpecContext) { grant(ctx) }, NodeTimeout(settle))
		manager := asManager()
		Eventually(ctx, func(ctx context.Context) error {
			return manager.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "password"}, &corev1.Secret{})
		}).Should(WithTransform(apierrors.IsForbidden, BeTrue()))

		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne), func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "password"}}}}
		})
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonReferenceForbidden, `Secret "password"`, "rbac.secretNamespaces")
		grant(ctx)
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))

	It("is capacity of the member's driver", func(ctx SpecContext) {
		s := begin(ctx)
		s.faulty(one, codes.ResourceExhausted, "the pool is full", "data")
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.shown(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonOutOfSpace, one, "the pool is full", "Request less")
		s.why(ctx, "Pod", "app", v1alpha1.ReasonOutOfSpace, one, "the pool is full", "Request less")

		s.repaired(one)
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))

	It("is the deletion of an earlier claim's leaf, which waits until an admin confirms a restore", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.faulty(one, codes.Unavailable, "not yet", "data")
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		leaf := until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", phase(corev1.ClaimPending))

		By("restoring the host to a state from before the claim was created, and creating the claim again")
		Expect(x.Manager.Kill()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { s.back(ctx) }, NodeTimeout(settle))
		Expect(x.Host.API.Delete(ctx, s.newPod("app"), client.GracePeriodSeconds(0))).To(Succeed())
		s.deleteClaim(ctx, "data")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data")
		rewind(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		Expect(x.Manager.Start(ctx)).To(Succeed())
		s.shown(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonSuspended, one, "until an admin confirms a restore")
		s.why(ctx, "Pod", "app", v1alpha1.ReasonSuspended, one, "See condition Connected")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", HaveField("UID", leaf.UID))

		By("confirming the restore as an admin")
		suite.ConfirmRestore(ctx, x, one, v1alpha1.ReasonHostRestored)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", HaveField("UID", Not(Equal(leaf.UID))))
		s.repaired(one)
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))
})

var _ = Describe("A Pod that somebody binds to a virtual node manually", func() {
	It("is rejected, as a kubelet would reject it, if it requires another operating system or does not tolerate a taint", func(ctx SpecContext) {
		s := begin(ctx)
		s.pod(ctx, "windows", boundTo(nodeOne), func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} })
		until[corev1.Pod](ctx, s, x.Host, "windows", And(phase(corev1.PodFailed), HaveField("Status.Reason", v1alpha1.ReasonPodOSNotSupported)))
		s.noted(ctx, "Pod", "windows", v1alpha1.ReasonPodOSNotSupported, "OS field doesn't match")
		s.why(ctx, "Pod", "windows", v1alpha1.ReasonPodOSNotSupported, "OS field doesn't match", "Let the scheduler place the Pod")

		tainted(ctx, nodeOne, corev1.Taint{Key: "example.com/repair", Effect: corev1.TaintEffectNoExecute})
		// The host's taint manager may delete a Pod before Xylem rejects it, so try again.
		tries := 0
		Eventually(ctx, func(ctx context.Context) ([]corev1.Event, error) {
			tries++
			s.pod(ctx, fmt.Sprintf("intolerant-%d", tries), boundTo(nodeOne))
			return hostEvents(ctx)
		}).WithPolling(time.Second).Should(ContainElement(And(
			HaveField("InvolvedObject.Namespace", s.namespace), HaveField("InvolvedObject.Name", HavePrefix("intolerant-")),
			HaveField("Reason", v1alpha1.ReasonTaintToleration), HaveField("Message", ContainSubstring("example.com/repair")))))
		Expect(s.left(ctx, x.Member(one))).To(BeEmpty())
	}, SpecTimeout(storyTime))

	It("fails if it is deleted before it runs, so that Jobs count it", func(ctx SpecContext) {
		s := begin(ctx)
		held := s.pod(ctx, "app", boundTo(nodeOne), using("missing"), func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} })
		until[corev1.Pod](ctx, s, x.Host, "app", tells(v1alpha1.ReasonClaimNotBound, `no claim "missing"`))
		s.deletePod(ctx, "app")
		until[corev1.Pod](ctx, s, x.Host, "app", And(phase(corev1.PodFailed), HaveField("Status.Reason", v1alpha1.ReasonTerminated)))
		patch(ctx, x.Host, held, `{"metadata":{"finalizers":null}}`)
		gone[corev1.Pod](ctx, s, x.Host, "app")
		Expect(s.left(ctx, x.Member(one))).To(BeEmpty())
	}, SpecTimeout(storyTime))
})

// tainted adds a taint to a host node until the story ends, or until remove() is called.
func tainted(ctx context.Context, name string, taint corev1.Taint) (remove func(context.Context)) {
	GinkgoHelper()
	change := func(ctx context.Context, to func([]corev1.Taint) []corev1.Taint) {
		Eventually(ctx, func(ctx context.Context) error {
			node := &corev1.Node{}
			if err := x.Host.API.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
				return err
			}
			before := node.DeepCopy()
			node.Spec.Taints = to(node.Spec.Taints)
			return x.Host.API.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		}).Should(Succeed())
	}
	change(ctx, func(all []corev1.Taint) []corev1.Taint { return append(all, taint) })
	remove = func(ctx context.Context) {
		change(ctx, func(all []corev1.Taint) []corev1.Taint {
			return slices.DeleteFunc(slices.Clone(all), func(t corev1.Taint) bool { return t.Key == taint.Key })
		})
	}
	DeferCleanup(func(ctx SpecContext) { remove(ctx) }, NodeTimeout(settle)) //nolint:contextcheck // A cleanup has a context of its own.
	return remove
}

var _ = Describe("A Pod's address", func() {
	It("is not shown in the host if it is outside the registration's Pod CIDRs, which the Pod reports once", func(ctx SpecContext) {
		s := begin(ctx)
		cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: two}}
		ranges := func(ctx context.Context, to string) {
			patch(ctx, x.Host, cr, `{"spec":{"node":{"podCIDRs":[`+to+`]}}}`)
		}
		ranges(ctx, `"192.0.2.0/24"`)
		DeferCleanup(func(ctx SpecContext) {
			ranges(ctx, `"`+v1alpha1.AllPodCIDRs+`"`)
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		}, NodeTimeout(settle))
		var name string
		Eventually(ctx, func(ctx context.Context) string {
			barriers++
			name = fmt.Sprintf("pod-%d", barriers)
			s.pod(ctx, name, boundTo(nodeTwo))
			return s.running(ctx, name).Status.PodIP
		}).Should(BeEmpty())
		leaf := until[corev1.Pod](ctx, s, x.Member(two), name, HaveField("Status.PodIP", Not(BeEmpty())))
		s.noted(ctx, "Pod", name, v1alpha1.ReasonPodIPHidden, leaf.Status.PodIP, two, "spec.node.podCIDRs")
	}, SpecTimeout(storyTime))
})

var _ = Describe("A claim's volume", func() {
	It("is kept while a PersistentVolume with another member's label represents it, until an admin abandons it (I2)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx)
		leaf := until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", phase(corev1.ClaimBound))
		label := func(ctx context.Context, to string) {
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}
			body := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelClusterID, to)
			Expect(asManager().Patch(ctx, pv, client.RawPatch("application/merge-patch+json", []byte(body)))).To(Succeed())
		}
		By("changing the label, as a tool can in a host without Xylem's policies, and re-creating the claim")
		Expect(x.Manager.Kill()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { s.back(ctx) }, NodeTimeout(settle))
		label(ctx, idOf(ctx, x.Member(two)))
		Expect(x.Host.API.Delete(ctx, s.newPod("app"), client.GracePeriodSeconds(0))).To(Succeed())
		s.deleteClaim(ctx, "data")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data")
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		Expect(x.Manager.Start(ctx)).To(Succeed())

		s.shown(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonVolumeKept, one, volume, v1alpha1.FinalizerLeafVolume)
		s.why(ctx, "Pod", "app", v1alpha1.ReasonVolumeKept, volume, "delete PersistentVolume")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", HaveField("UID", leaf.UID))
		Expect(s.book(one, "data").LiveIDs()).To(HaveLen(1))

		By("following the message as an admin, to whom the host's policies apply")
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}
		until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain))
		Expect(x.Host.API.Delete(ctx, pv)).To(Succeed())
		patch(ctx, x.Host, pv, `{"metadata":{"finalizers":null}}`)
		gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
		s.running(ctx, "app", nodeOne)
		Expect(s.book(one, "data").LiveIDs()).To(HaveLen(2))

		By("destroying the abandoned volume as the member's admin")
		registration(ctx, one, orphaned(volume, v1alpha1.ReasonRootReplaced))
		patch(ctx, x.Member(one), pv, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		gone[corev1.PersistentVolume](ctx, s, x.Member(one), volume)
		registration(ctx, one, notOrphaned(volume))
	}, SpecTimeout(storyTime))
})

var _ = Describe("The nodes of a member", func() {
	It("are reported if none is Ready: on the registration, on its Node, on a Pod that waits, and by `why` for a Pod that ran", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeTwo))
		s.running(ctx, "app", nodeTwo)
		By("stopping the member's kubelets")
		kubelets := x.Fleet.Member(two).Process(controlplane.KWOK)
		Expect(kubelets.Freeze()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(kubelets.Thaw()).To(Succeed())
			Expect(x.AwaitReady(ctx, two)).To(Succeed())
		}, NodeTimeout(settle))
		for _, name := range x.Fleet.Member(two).NodeNames() {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			Expect(x.Member(two).API.Status().Patch(ctx, node, client.RawPatch("application/strategic-merge-patch+json",
				[]byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"KubeletStopped","message":"stopped"}]}}`)))).To(Succeed())
		}
		registration(ctx, two, And(
			says(v1alpha1.ConditionNodeReady, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady, "no Ready node"),
			says(v1alpha1.ConditionConnected, metav1.ConditionTrue, v1alpha1.ReasonConnected)))
		until[corev1.Node](ctx, s, x.Host, nodeTwo, HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", v1alpha1.NodeMemberAway), HaveField("Status", corev1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonNoReadyNodes)))))

		By("marking the Pod as not ready, as the node lifecycle controller does when a kubelet stops")
		mark := func(ctx context.Context, ready corev1.ConditionStatus) {
			leaf := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "app"}}
			body := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, ready)
			Expect(x.Member(two).API.Status().Patch(ctx, leaf, client.RawPatch("application/strategic-merge-patch+json", []byte(body)))).To(Succeed())
		}
		mark(ctx, corev1.ConditionFalse)
		s.why(ctx, "Pod", "app", v1alpha1.ReasonNodeNotReady, "runs, but is not ready")

		By("checking that a new Pod reports the problem")
		s.claim(ctx, "later")
		s.pod(ctx, "later", using("later"), on(nodeTwo))
		s.shown(ctx, "Pod", "later", v1alpha1.ReasonNoReadyNodes, fmt.Sprintf("member %q has had no Ready node since", two))

		Expect(kubelets.Thaw()).To(Succeed())
		s.running(ctx, "later", nodeTwo)
		// KWOK does not mark a running Pod as ready again, and the node lifecycle controller may still undo this.
		Eventually(ctx, func(ctx context.Context) (*corev1.Pod, error) {
			mark(ctx, corev1.ConditionTrue)
			return read[corev1.Pod](ctx, s, x.Host, "app")
		}).Should(And(phase(corev1.PodRunning), isTrue(corev1.PodReady)))
	}, SpecTimeout(storyTime))
})

var _ = Describe("The nodes of all members", func() {
	It("are reported on a Pod that waits, if all of them are cordoned or tainted", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		for i, name := range []string{one, two} {
			member := x.Member(name)
			for _, node := range x.Fleet.Member(name).NodeNames() {
				set, unset := `{"spec":{"unschedulable":true}}`, `{"spec":{"unschedulable":null}}`
				if i == 1 {
					set, unset = `{"spec":{"taints":[{"key":"example.com/gpu","effect":"NoSchedule"}]}}`, `{"spec":{"taints":null}}`
				}
				change := func(ctx context.Context, body string) {
					patch(ctx, member, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, body)
				}
				change(ctx, set)
				DeferCleanup(func(ctx SpecContext) { change(ctx, unset) }, NodeTimeout(settle))
			}
		}
		for _, name := range []string{nodeOne, nodeTwo} {
			until[corev1.Node](ctx, s, x.Host, name, HaveField("Status.Conditions", ContainElement(And(
				HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonNoUsableNodes)))))
		}
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"))
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonNoUsableNodes, fmt.Sprintf("member %q accepts no new Pods", one), fmt.Sprintf("member %q accepts no new Pods", two), "cordoned or tainted")

		By("uncordoning the nodes in one member")
		for _, node := range x.Fleet.Member(one).NodeNames() {
			patch(ctx, x.Member(one), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, `{"spec":{"unschedulable":null}}`)
		}
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))
})

const (
	// slow is a latency at which connecting succeeds, but reading all objects is slow.
	slow = 200 * time.Millisecond
	// probedNamespace is the namespace that Xylem uses to check the member's policies.
	probedNamespace = member.PolicyProbeName
)

// silent registers a server that accepts connections but never responds.
func silent(ctx context.Context, name string) {
	GinkgoHelper()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(listener.Close)
	register(ctx, name, []byte(aKubeconfig("https://"+listener.Addr().String(), "{token: abc}")))
}

// statesOf watches a registration, because polling can miss a state that only lasts for a moment.
func statesOf(ctx context.Context, name string) <-chan watch.Event {
	GinkgoHelper()
	states, err := x.Host.API.Watch(ctx, &v1alpha1.ClusterRegistrationList{}, client.MatchingFields{metav1.ObjectNameField: name})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(states.Stop)
	return states.ResultChan()
}

// reconnected disconnects a member, and waits until it is connected again.
func reconnected(ctx context.Context, member string) {
	GinkgoHelper()
	proxy := x.Fleet.Member(member).Proxy()
	Expect(proxy.SetMode(controlplane.Cut)).To(Succeed())
	registration(ctx, member, says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonUnreachable))
	Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
	Expect(x.AwaitReady(ctx, member)).To(Succeed())
}

var _ = Describe("A member's connection", func() {
	It("reports its first attempt, why it fails, and that Xylem is reading the member's objects", suite.Slow, func(ctx SpecContext) {
		states := statesOf(ctx, "silent")
		silent(ctx, "silent")
		Eventually(ctx, states).Should(Receive(HaveField("Object", And(
			says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonConnecting),
			says(v1alpha1.ConditionDeletionsProgressing, metav1.ConditionUnknown, v1alpha1.ReasonNotLookedAt)))))
		registration(ctx, "silent", says(v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonUnreachable))

		By("slowing down the network")
		proxy := x.Fleet.Member(two).Proxy()
		back := cutOff(ctx, two, controlplane.Cut)
		proxy.SetLatency(slow)
		DeferCleanup(func() { proxy.SetLatency(0) })
		states = statesOf(ctx, two)
		back()
		Eventually(ctx, states).Should(Receive(HaveField("Object", And(
			says(v1alpha1.ConditionConnected, metav1.ConditionTrue, v1alpha1.ReasonConnected),
			says(v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonSyncing)))))
		proxy.SetLatency(0)
		Expect(x.AwaitReady(ctx, two)).To(Succeed())
	}, SpecTimeout(storyTime))

	It("reports that the member's policies do not limit it, or that Xylem cannot check them", suite.Slow, func(ctx SpecContext) {
		member := x.Member(two)
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
		Expect(member.API.Get(ctx, client.ObjectKey{Name: "xylem-account"}, binding)).To(Succeed())
		restored := binding.DeepCopy()
		restored.ResourceVersion, restored.UID = "", ""
		DeferCleanup(func(ctx SpecContext) {
			Expect(member.API.Create(ctx, restored)).To(Or(Succeed(), WithTransform(apierrors.IsAlreadyExists, BeTrue())))
			reconnected(ctx, two)
			registration(ctx, two, says(v1alpha1.ConditionPolicyEnforced, metav1.ConditionTrue, v1alpha1.ReasonPolicyInForce))
		}, NodeTimeout(settle))

		allow := denied(ctx, member, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: probedNamespace}}, corev1.SchemeGroupVersion.WithResource("namespaces"), "no namespaces today")
		Expect(member.API.Delete(ctx, binding)).To(Succeed())
		reconnected(ctx, two)
		registration(ctx, two, says(v1alpha1.ConditionPolicyEnforced, metav1.ConditionUnknown, v1alpha1.ReasonPolicyNotProven, "no namespaces today"))

		By("removing the test's own policy, so that nothing rejects the probe")
		allow(ctx)
		registration(ctx, two, And(
			says(v1alpha1.ConditionPolicyEnforced, metav1.ConditionFalse, v1alpha1.ReasonPolicyNotInForce, "kubectl xylem register"),
			says(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)))
	}, SpecTimeout(storyTime))
})

var _ = Describe("The CSIDriver", func() {
	It("is not changed if Xylem did not create it, and is reported if it differs from what Xylem needs (I4)", func(ctx SpecContext) {
		driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ProvisionerName}}
		DeferCleanup(func(ctx SpecContext) {
			patch(ctx, x.Host, driver, `{"metadata":{"labels":{"`+v1alpha1.LabelManagedBy+`":"`+v1alpha1.ManagedByValue+`"}}}`)
			Eventually(ctx, func(ctx context.Context) (*storagev1.CSIDriver, error) {
				err := x.Host.API.Get(ctx, client.ObjectKeyFromObject(driver), driver)
				return driver, err
			}).Should(HaveField("Spec.StorageCapacity", HaveValue(BeTrue())))
		}, NodeTimeout(settle))
		patch(ctx, x.Host, driver, `{"metadata":{"labels":{"`+v1alpha1.LabelManagedBy+`":null}},"spec":{"storageCapacity":false}}`)
		(&story{}).noted(ctx, "CSIDriver", v1alpha1.ProvisionerName, v1alpha1.ReasonNotOfXylem, "storageCapacity", "Delete the CSIDriver")
	}, SpecTimeout(storyTime))
})
