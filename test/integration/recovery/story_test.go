package recovery_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
type story struct {
	namespace string
	later     int
}

// begin creates the story's namespace, and registers the cleanup.
func begin(ctx context.Context) *story {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "walk-"}}
	Expect(x.Host.API.Create(ctx, ns)).To(Succeed())
	Expect(x.Host.AwaitNamespace(ctx, ns.Name)).To(Succeed())
	s := &story{namespace: ns.Name}
	DeferCleanup(s.end, NodeTimeout(settle))
	return s
}

func (s *story) end(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		x.Dump(ctx, GinkgoWriter, s.namespace)
	}
	in := client.InNamespace(s.namespace)
	Expect(x.Host.API.DeleteAllOf(ctx, &corev1.Pod{}, in)).To(Succeed())
	Expect(x.Host.API.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, in)).To(Succeed())
}

func (s *story) claim(ctx context.Context, name, volume string) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	claim := s.newClaim(name, volume)
	Expect(x.Host.API.Create(ctx, claim)).To(Succeed())
	return claim
}

func (s *story) newClaim(name, volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(controlplane.ClassHostpath),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			VolumeName:       volume,
		},
	}
}

type podOption = func(*corev1.Pod)

// never sets restartPolicy Never, like a Job.
func never(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyNever }

// using makes the Pod use a claim with another name.
func using(claim string) podOption {
	return func(pod *corev1.Pod) { pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = claim }
}

// pod creates a Pod on a node. The Pod uses the claim with the same name.
func (s *story) pod(ctx context.Context, name, node string, options ...podOption) {
	GinkgoHelper()
	pod := harness.Pod(s.namespace, name, name)
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	for _, option := range options {
		option(pod)
	}
	Expect(x.Host.API.Create(ctx, pod)).To(Succeed())
}

// ends completes a Pod's leaf in a member, and waits until the Pod is Succeeded in the host.
func (s *story) ends(ctx context.Context, member, name string) *corev1.Pod {
	GinkgoHelper()
	leaf := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	annotateIn(ctx, x.Member(member), leaf, controlplane.AnnotationComplete, "true")
	return until[corev1.Pod](ctx, s, x.Host, name, phase(corev1.PodSucceeded))
}

// use creates a claim and its Pod on a node, waits until the Pod runs, and returns the name of
// the volume.
func (s *story) use(ctx context.Context, name, node string, options ...podOption) string {
	GinkgoHelper()
	s.claim(ctx, name, "")
	s.pod(ctx, name, node, options...)
	s.running(ctx, name)
	return s.bound(ctx, name).Spec.VolumeName
}

// goesOn proves that Xylem serves a member, and is a barrier: when a new claim is bound in the
// member, Xylem has handled all earlier events.
func (s *story) goesOn(ctx context.Context, node string) {
	GinkgoHelper()
	s.later++
	s.use(ctx, fmt.Sprintf("later-%d", s.later), node)
}

func (s *story) remove(ctx context.Context, name string) {
	GinkgoHelper()
	s.removeFrom(ctx, x.Host, name)
}

func (s *story) removeFrom(ctx context.Context, c *harness.Cluster, name string) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: s.namespace, Name: name}
	Expect(client.IgnoreNotFound(c.API.Delete(ctx, &corev1.Pod{ObjectMeta: meta}))).To(Succeed())
	Expect(c.API.Delete(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: meta})).To(Succeed())
}

func (s *story) running(ctx context.Context, name string) *corev1.Pod {
	GinkgoHelper()
	return until[corev1.Pod](ctx, s, x.Host, name, And(phase(corev1.PodRunning), HaveField("Status.Conditions",
		ContainElement(And(HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))))))
}

func (s *story) bound(ctx context.Context, name string) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	return until[corev1.PersistentVolumeClaim](ctx, s, x.Host, name, phase(corev1.ClaimBound))
}

func phase(p any) gomegatypes.GomegaMatcher { return HaveField("Status.Phase", Equal(p)) }

// read reads an object in the story's namespace, or a cluster-scoped object.
func read[T any, P interface {
	*T
	client.Object
}](ctx context.Context, s *story, c *harness.Cluster, name string) (P, error) {
	return suite.Read[T, P](ctx, c, s.namespace, name)
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

// connected matches a registration by its Connected condition.
func connected(status metav1.ConditionStatus, reason string, parts ...string) gomegatypes.GomegaMatcher {
	matchers := []gomegatypes.GomegaMatcher{
		HaveField("Type", v1alpha1.ConditionConnected), HaveField("Status", status), HaveField("Reason", reason),
	}
	for _, part := range parts {
		matchers = append(matchers, HaveField("Message", ContainSubstring(part)))
	}
	return HaveField("Status.Conditions", ContainElement(And(matchers...)))
}

func registration(ctx context.Context, name string, match gomegatypes.GomegaMatcher) *v1alpha1.ClusterRegistration {
	GinkgoHelper()
	return registrationIn(ctx, x.Host, name, match)
}

func registrationIn(ctx context.Context, host *harness.Cluster, name string, match gomegatypes.GomegaMatcher) *v1alpha1.ClusterRegistration {
	GinkgoHelper()
	return until[v1alpha1.ClusterRegistration](ctx, &story{}, host, name, match)
}

// well waits until a member is connected and requires no confirmation.
func well(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(x.AwaitReady(ctx, name)).To(Succeed())
	registration(ctx, name, connected(metav1.ConditionTrue, v1alpha1.ReasonConnected))
}

// annotate sets an annotation in the host, as an operator does.
func annotate(ctx context.Context, obj client.Object, key, value string) {
	GinkgoHelper()
	annotateIn(ctx, x.Host, obj, key, value)
}

func annotateIn(ctx context.Context, c *harness.Cluster, obj client.Object, key, value string) {
	GinkgoHelper()
	body := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	Expect(c.API.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(body)))).To(Succeed())
}

// told waits for an event on an object in the host.
func told(ctx context.Context, kind, name, reason string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) ([]corev1.Event, error) {
		var events corev1.EventList
		err := x.Host.API.List(ctx, &events)
		return events.Items, err
	}).Should(ContainElement(And(HaveField("InvolvedObject.Kind", kind), HaveField("InvolvedObject.Name", name), HaveField("Reason", reason))))
}

// book returns a member's ledger of disks.
func book(member string) *ledger.Ledger {
	GinkgoHelper()
	l, err := x.Fleet.Member(member).Ledger()
	Expect(err).NotTo(HaveOccurred())
	return l
}

// disks returns the existing disks in a member that belong to one of the story's claims.
func (s *story) disks(member, claim string) []string {
	return book(member).ForClaim(s.namespace, claim).LiveIDs()
}

// destroyed returns how many disks of the story's claims a member has destroyed. Other disks do not
// count, because an earlier story's cleanup may still be in progress.
func (s *story) destroyed(member string) int {
	GinkgoHelper()
	return book(member).ForNamespace(s.namespace).Count(ledger.DeleteVolume)
}

// busy writes to a cluster until its revision is far beyond a backup's revision, so that after the
// restore, the writes of the cluster's own controllers do not reach the current revision again.
func busy(ctx context.Context, c *harness.Cluster) {
	GinkgoHelper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "busy-"}}
	Expect(c.API.Create(ctx, config)).To(Succeed())
	for i := range 500 {
		body := fmt.Sprintf(`{"data":{"n":"%d"}}`, i)
		Expect(c.API.Patch(ctx, config, client.RawPatch("application/merge-patch+json", []byte(body)))).To(Succeed())
	}
	Expect(c.API.Delete(ctx, config)).To(Succeed())
}

// probesRarely runs another manager instead, which probes once a minute and whose epoch does not end.
func probesRarely(ctx context.Context) *harness.Manager {
	GinkgoHelper()
	holder := func() string { return ptr.Deref(suite.Fence(ctx, x, one).Spec.HolderIdentity, "") }
	earlier := holder()
	Expect(x.Manager.Stop()).To(Succeed())
	manager, err := x.AnotherManager(ctx, "one-epoch", x.Fleet.Host, "--fence-epoch-interval=24h", "--fence-duration=3m", "--probe-interval=1m")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(replaceManager, manager, NodeTimeout(settle))
	Expect(manager.Start(ctx)).To(Succeed())
	// A busy manager may end without releasing the fence, which then expires after its duration.
	Eventually(ctx, holder).WithTimeout(storyTime).Should(And(Not(BeEmpty()), Not(Equal(earlier))))
	well(ctx, one)
	well(ctx, two)
	return manager
}

// replaceManager runs the usual manager again.
func replaceManager(ctx SpecContext, manager *harness.Manager) {
	Expect(manager.Stop()).To(Succeed())
	Expect(x.Manager.Start(ctx)).To(Succeed())
}

// recorded waits until the host's record of a member's fence lists a released or missing object.
func recorded(ctx context.Context, clusterID, part string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (string, error) { return suite.LetGo(ctx, x, clusterID) }).Should(ContainSubstring(part))
}
