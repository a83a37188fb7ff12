package stories_test

import (
	"context"
	"encoding/json"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// plugin runs kubectl xylem in the story's namespace, and returns its output, error output and
// exit code.
func (s *story) plugin(ctx context.Context, args ...string) (out, complaints string, code int) {
	return suite.Plugin(ctx, x.Fleet.Host.KubeconfigPath(), clock.RealClock{}, append([]string{"-n", s.namespace}, args...)...)
}

// tree returns the JSON output of kubectl xylem tree.
func (s *story) tree(ctx context.Context, args ...string) *inspect.Tree {
	GinkgoHelper()
	out, complaints, code := s.plugin(ctx, append([]string{"tree", "-o", "json"}, args...)...)
	Expect(code).To(BeZero(), complaints)
	var t inspect.Tree
	Expect(json.Unmarshal([]byte(out), &t)).To(Succeed())
	Expect(t.TypeMeta).To(Equal(metav1.TypeMeta{APIVersion: "cli.xylem.io/v1alpha1", Kind: "Tree"}))
	return &t
}

// nodes returns the nodes of a tree with the given kind and cluster.
func nodes(n *inspect.Node, kind, cluster string) []inspect.Node {
	var found []inspect.Node
	if n.Kind == kind && n.Cluster == cluster {
		found = append(found, *n)
	}
	for i := range n.Children {
		found = append(found, nodes(&n.Children[i], kind, cluster)...)
	}
	return found
}

func conditionsOf(claim *corev1.PersistentVolumeClaim) []string {
	var messages []string
	for _, c := range claim.Status.Conditions {
		if c.Type == corev1.PersistentVolumeClaimUnused && c.Status == corev1.ConditionFalse {
			continue
		}
		messages = append(messages, c.Message)
	}
	return messages
}

func told(n inspect.Node) []string {
	var messages []string
	for _, c := range n.Conditions {
		messages = append(messages, c.Message)
	}
	return messages
}

var _ = Describe("kubectl xylem tree", func() {
	It("shows where the volume of a claim or a Pod really is, from the host's records and from live reads", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		volume := s.bound(ctx, "data").Spec.VolumeName
		leaf, err := read[corev1.PersistentVolume](ctx, s, x.Member(one), volume)
		Expect(err).NotTo(HaveOccurred())

		for _, subject := range [][]string{{"pvc", "data"}, {"pod", "app"}, {"pv", volume}} {
			By("printing the tree of the " + subject[0])
			recorded := s.tree(ctx, subject...)
			Expect(recorded.Missing).To(BeEmpty())
			Expect(recorded.Recorded).To(ConsistOf(one))
			live := s.tree(ctx, append(subject, "--live")...)
			Expect(live.Missing).To(BeEmpty())
			Expect(live.Recorded).To(BeEmpty())
			own := s.tree(ctx, append(subject, "--member-kubeconfig", x.Fleet.Member(one).KubeconfigPath())...)
			Expect(own.Root).To(Equal(live.Root))
			for state, t := range map[string]*inspect.Tree{inspect.StateRecorded: recorded, "Bound": live} {
				Expect(nodes(&t.Root, "PersistentVolumeClaim", "")).To(ConsistOf(And(HaveField("Name", "data"), HaveField("State", "Bound"), HaveField("Health", inspect.Good))))
				Expect(nodes(&t.Root, "PersistentVolume", "")).To(ConsistOf(HaveField("Name", volume)))
				Expect(nodes(&t.Root, "ClusterRegistration", "")).To(ConsistOf(And(HaveField("Name", one), HaveField("State", "Connected"))))
				Expect(nodes(&t.Root, "PersistentVolumeClaim", one)).To(ConsistOf(And(HaveField("Name", "data"), HaveField("State", state))))
				Expect(nodes(&t.Root, "PersistentVolume", one)).To(ConsistOf(And(HaveField("Name", leaf.Name), HaveField("State", state),
					HaveField("Driver", controlplane.DefaultDriverName), HaveField("Handle", leaf.Spec.CSI.VolumeHandle))))
				Expect(nodes(&t.Root, "Pod", "")).To(ConsistOf(And(HaveField("Name", "app"), HaveField("State", "Running"))))
				Expect(nodes(&t.Root, "Pod", one)).To(ConsistOf(HaveField("Name", "app")))
			}
		}

		By("rejecting the kubeconfig of another cluster")
		other := s.tree(ctx, "pvc", "data", "--member-kubeconfig", x.Fleet.Member(two).KubeconfigPath())
		Expect(other.Missing).To(ConsistOf(HaveField("Why", ContainSubstring(two))))
		Expect(other.Recorded).To(ConsistOf(one))

		By("printing the tree as text, without colors because the output is not a terminal")
		out, complaints, code := s.plugin(ctx, "tree", "pvc", "data", "--live")
		Expect(code).To(BeZero())
		Expect(complaints).To(BeEmpty())
		Expect(out).To(And(HavePrefix("OBJECT"), ContainSubstring(leaf.Spec.CSI.VolumeHandle), Not(ContainSubstring("\x1b"))))
		GinkgoWriter.Println(out)
	}, SpecTimeout(storyTime))

	It("shows a namespace with its Pods or, on request, only those with problems, and each message once", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		s.claim(ctx, "waits")
		s.pod(ctx, "stray", using("waits"), withoutTolerations)
		stray := until[corev1.Pod](ctx, s, x.Host, "stray", tells(v1alpha1.ReasonTolerationMissing))
		s.noted(ctx, "Pod", "stray", v1alpha1.ReasonTolerationMissing)

		all := s.tree(ctx, "namespace/"+s.namespace)
		Expect(nodes(&all.Root, "Pod", "")).To(ConsistOf(HaveField("Name", "app"), HaveField("Name", "stray")))
		bad := s.tree(ctx, "ns/"+s.namespace, "--problems")
		pods := nodes(&bad.Root, "Pod", "")
		Expect(pods).To(ConsistOf(HaveField("Name", "stray")))
		Expect(told(pods[0])).To(ConsistOf(placeable(stray)))
		Expect(pods[0].Events).NotTo(ContainElement(HaveField("Message", placeable(stray))))

		_, complaints, code := s.plugin(ctx, "tree", "pvc/dta")
		Expect(code).NotTo(BeZero())
		Expect(complaints).To(ContainSubstring(`did you mean "data"?`))
	}, SpecTimeout(storyTime))

	It("quotes the object's own message about why a claim or a promise waits", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "unused", ofClass(classPromise))
		s.claim(ctx, "big", ofClass(classLimited), ofSize("5Gi"))
		s.pod(ctx, "app", using("big"), on(nodeOne))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "unused", promise(corev1.ConditionFalse, v1alpha1.ReasonPromised))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "big", tells("ProvisioningFailed"))

		promised := s.tree(ctx, "pvc", "unused")
		claim, err := read[corev1.PersistentVolumeClaim](ctx, s, x.Host, "unused")
		Expect(err).NotTo(HaveOccurred())
		Expect(told(promised.Root)).To(Equal(conditionsOf(claim)))
		Expect(nodes(&promised.Root, "PersistentVolume", "")).To(ConsistOf(And(HaveField("Name", claim.Spec.VolumeName), HaveField("Health", inspect.Waiting))))
		Expect(nodes(&promised.Root, "ClusterRegistration", "")).To(BeEmpty())

		Eventually(ctx, func(g Gomega) {
			pending := s.tree(ctx, "pvc", "big", "--live")
			claim, err := read[corev1.PersistentVolumeClaim](ctx, s, x.Host, "big")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(told(pending.Root)).To(And(Not(BeEmpty()), Equal(conditionsOf(claim))))
			g.Expect(nodes(&pending.Root, "PersistentVolumeClaim", one)).To(ConsistOf(And(HaveField("State", "Pending"),
				HaveField("Events", ContainElement(HaveField("Reason", "ProvisioningFailed"))))))
			g.Expect(nodes(&pending.Root, "Pod", "")).To(HaveLen(1))
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(storyTime))

	It("finds the leftovers of a deleted claim, and reports what is missing", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "kept", ofClass(classRetainHost))
		s.pod(ctx, "app", using("kept"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		volume := s.bound(ctx, "kept").Spec.VolumeName
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "kept")
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, HaveField("Status.Phase", corev1.VolumeReleased))
		left := s.tree(ctx, "pvc", "kept", "--live")
		Expect(left.Root.State).To(Equal(inspect.StateNotFound))
		Expect(nodes(&left.Root, "PersistentVolume", "")).To(ConsistOf(And(HaveField("Name", volume), HaveField("State", "Released"))))
		Expect(nodes(&left.Root, "PersistentVolume", one)).To(ConsistOf(HaveField("Name", volume)))

		for _, c := range []struct {
			args      []string
			complaint string
		}{
			{[]string{"tree", "pvc", "none"}, "the host has no PersistentVolumeClaim " + s.namespace + "/none"},
			{[]string{"tree", "pod", "none", "-n", "no-such-namespace"}, `no namespace "no-such-namespace"`},
			{[]string{"tree", "service", "web"}, "KIND is one of pvc, pod"},
			{[]string{"tree", "pvc"}, "which object?"},
			{[]string{"tree", "pvc", "none", "-o", "table"}, "json"},
		} {
			out, complaints, code := s.plugin(ctx, c.args...)
			Expect(code).To(Equal(1), "%v", c.args)
			Expect(complaints).To(ContainSubstring(c.complaint))
			Expect(out).To(BeEmpty())
		}
	}, SpecTimeout(storyTime))

	It("shows what the user can read, and lists what they cannot read", func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.running(ctx, "app", nodeOne)
		const tenant = "tenant-of-tree"
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: tenant},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: tenant}},
		}
		Expect(x.Host.API.Create(ctx, binding)).To(Succeed())
		var t *inspect.Tree
		Eventually(ctx, func() int { // RBAC takes effect with a delay
			_, _, code := s.plugin(ctx, "tree", "pvc", "data", "--as", tenant)
			return code
		}).WithContext(ctx).Should(BeZero())
		t = s.tree(ctx, "pvc", "data", "--as", tenant, "--live")
		Expect(t.Root.State).To(Equal("Bound"))
		Expect(nodes(&t.Root, "Pod", "")).To(HaveLen(1))
		for _, what := range []string{"ClusterRegistrations", "PersistentVolume "} {
			Expect(slices.ContainsFunc(t.Missing, func(m inspect.Missing) bool { return len(m.What) >= len(what) && m.What[:len(what)] == what })).To(BeTrue(), "%v", t.Missing)
		}
		Expect(t.Missing).To(HaveEach(HaveField("Why", ContainSubstring(tenant))))
	}, SpecTimeout(storyTime))
})
