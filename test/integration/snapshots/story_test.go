package snapshots_test

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// story runs in its own namespace in the host.
type story struct{ namespace string }

// begin creates the story's namespace, and registers the cleanup.
func begin(ctx context.Context) *story {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "snap-"}}
	Expect(x.Host.API.Create(ctx, ns)).To(Succeed())
	Expect(x.Host.AwaitNamespace(ctx, ns.Name)).To(Succeed())
	s := &story{namespace: ns.Name}
	DeferCleanup(s.end, NodeTimeout(settle))
	return s
}

func (s *story) end(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		s.dump(ctx)
	}
	in := client.InNamespace(s.namespace)
	Expect(x.Host.API.DeleteAllOf(ctx, &corev1.Pod{}, in)).To(Succeed())
	Expect(x.Host.API.DeleteAllOf(ctx, &snapshotv1.VolumeSnapshot{}, in)).To(Succeed())
	Expect(x.Host.API.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, in)).To(Succeed())
}

// dump prints all snapshots in all clusters.
func (s *story) dump(ctx context.Context) {
	x.Dump(ctx, GinkgoWriter, s.namespace)
	for _, c := range x.Clusters() {
		for _, kind := range []string{"volumesnapshots", "volumesnapshotcontents"} {
			out, err := x.Kubectl(ctx, c.Cluster, "get", kind, "-A", "-o", "yaml")
			GinkgoWriter.Printf("--- %s in %s (%v)\n%s\n", kind, c.Name(), err, out)
		}
	}
}

// data creates a claim and a Pod that uses it in a member.
func (s *story) data(ctx context.Context, name, node string) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	Expect(x.Host.Create(ctx, harness.Claim(s.namespace, name, controlplane.ClassHostpath))).To(Succeed())
	pod := harness.Pod(s.namespace, name, name)
	harness.OnNodes(pod, node)
	Expect(x.Host.Create(ctx, pod)).To(Succeed())
	return until[corev1.PersistentVolumeClaim](ctx, s, x.Host, name, HaveField("Status.Phase", corev1.ClaimBound))
}

// take creates a VolumeSnapshot of a claim.
func (s *story) take(ctx context.Context, name, claim, class string) *snapshotv1.VolumeSnapshot {
	GinkgoHelper()
	vs := harness.VolumeSnapshot(s.namespace, name, claim, class)
	Expect(x.Host.Create(ctx, vs)).To(Succeed())
	return vs
}

// ready takes a snapshot and waits until it is ready.
func (s *story) ready(ctx context.Context, name, claim, class string) *snapshotv1.VolumeSnapshot {
	GinkgoHelper()
	s.take(ctx, name, claim, class)
	vs, err := x.Host.AwaitSnapshot(ctx, s.namespace, name)
	Expect(err).NotTo(HaveOccurred())
	return vs
}

func contentName(vs *snapshotv1.VolumeSnapshot) string { return "snapcontent-" + string(vs.UID) }

// leaf returns the leaf VolumeSnapshot and its content in a member.
func (s *story) leaf(ctx context.Context, member, name string) (*snapshotv1.VolumeSnapshot, *snapshotv1.VolumeSnapshotContent) {
	GinkgoHelper()
	vs := until[snapshotv1.VolumeSnapshot](ctx, s, x.Member(member), name, HaveField("Status.BoundVolumeSnapshotContentName", Not(BeNil())))
	return vs, until[snapshotv1.VolumeSnapshotContent](ctx, s, x.Member(member), contentName(vs), Not(BeNil()))
}

func (s *story) remove(ctx context.Context, c *harness.Cluster, obj client.Object, name string) {
	GinkgoHelper()
	obj.SetNamespace(s.namespace)
	obj.SetName(name)
	if _, cluster := obj.(*snapshotv1.VolumeSnapshotContent); cluster {
		obj.SetNamespace("")
	}
	Expect(c.API.Delete(ctx, obj)).To(Succeed())
}

// fails matches a snapshot or content whose status has an error message with all of these parts.
func fails(parts ...string) gomegatypes.GomegaMatcher {
	matchers := make([]gomegatypes.GomegaMatcher, 0, len(parts))
	for _, part := range parts {
		matchers = append(matchers, ContainSubstring(part))
	}
	return HaveField("Status", And(Not(BeNil()), HaveField("Error", And(Not(BeNil()), HaveField("Message", HaveValue(And(matchers...)))))))
}

// until polls an object until it matches, and returns it.
func until[T any, P interface {
	*T
	client.Object
}](ctx context.Context, s *story, c *harness.Cluster, name string, match gomegatypes.GomegaMatcher) P {
	GinkgoHelper()
	return suite.Until[T, P](ctx, c, s.namespace, name, match)
}

// gone waits until an object no longer exists.
func gone[T any, P interface {
	*T
	client.Object
}](ctx context.Context, s *story, c *harness.Cluster, name string) {
	GinkgoHelper()
	suite.Gone[T, P](ctx, c, s.namespace, name)
}

// patch applies a merge patch as an admin.
func patch(ctx context.Context, c *harness.Cluster, obj client.Object, body string) {
	GinkgoHelper()
	Expect(c.API.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(body)))).To(Succeed())
}

// taken returns the claim's snapshots that exist in a member's storage.
func (s *story) taken(member, claim string) []string {
	GinkgoHelper()
	return s.book(member, claim).LiveSnapshotIDs()
}

func (s *story) book(member, claim string) *ledger.Ledger {
	GinkgoHelper()
	l, err := x.Fleet.Member(member).Ledger()
	Expect(err).NotTo(HaveOccurred())
	return l.ForClaim(s.namespace, claim)
}

// goesOn is a barrier: when a new snapshot is ready, Xylem has handled all earlier events.
func (s *story) goesOn(ctx context.Context, name, claim string) {
	GinkgoHelper()
	s.ready(ctx, name, claim, deletes)
}

func registration(ctx context.Context, name string, match gomegatypes.GomegaMatcher) *v1alpha1.ClusterRegistration {
	GinkgoHelper()
	return until[v1alpha1.ClusterRegistration](ctx, &story{}, x.Host, name, match)
}

func says(kind string, status metav1.ConditionStatus, reason string, parts ...string) gomegatypes.GomegaMatcher {
	matchers := []gomegatypes.GomegaMatcher{HaveField("Type", kind), HaveField("Status", status), HaveField("Reason", reason)}
	for _, part := range parts {
		matchers = append(matchers, HaveField("Message", ContainSubstring(part)))
	}
	return HaveField("Status.Conditions", ContainElement(And(matchers...)))
}

// isReady matches a VolumeSnapshot or content by its readiness.
func isReady(yes bool) gomegatypes.GomegaMatcher {
	return HaveField("Status", And(Not(BeNil()), HaveField("ReadyToUse", HaveValue(Equal(yes)))))
}

// noted waits for an event on one of the story's objects.
func (s *story) noted(ctx context.Context, kind, name, reason string, parts ...string) {
	GinkgoHelper()
	matchers := []gomegatypes.GomegaMatcher{HaveField("InvolvedObject.Kind", kind), HaveField("InvolvedObject.Name", name), HaveField("Reason", reason)}
	for _, part := range parts {
		matchers = append(matchers, HaveField("Message", ContainSubstring(part)))
	}
	Eventually(ctx, func(ctx context.Context) ([]corev1.Event, error) {
		var events corev1.EventList
		err := x.Host.API.List(ctx, &events)
		return events.Items, err
	}).Should(ContainElement(And(matchers...)))
}

// leafID returns the cluster ID of a member.
func leafID(ctx context.Context, member string) string {
	GinkgoHelper()
	id, err := x.Fleet.Member(member).ID(ctx)
	Expect(err).NotTo(HaveOccurred())
	return id
}

func handleOf(content *snapshotv1.VolumeSnapshotContent) string {
	if content.Status == nil {
		return ""
	}
	return ptr.Deref(content.Status.SnapshotHandle, "")
}
