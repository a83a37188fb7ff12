package stories_test

import (
	"context"
	"fmt"
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// story runs in its own namespace in the host. Xylem pushes the namespace's objects to the members.
type story struct {
	namespace string
	// lost is a member that was wiped, so its disks cannot be accounted for.
	lost string
	// made is the title, in internal/MISTAKES.md, of the mistake that the story makes.
	made string
}

// begin creates the story's namespace, and registers the cleanup, which dumps all objects after a
// failure, deletes the story's objects, and compares the namespace with the members' disks.
func begin(ctx context.Context) *story {
	GinkgoHelper()
	return beginIn(ctx, "")
}

func beginIn(ctx context.Context, namespace string) *story {
	GinkgoHelper()
	if namespace != "" {
		gone[corev1.Namespace](ctx, &story{namespace: namespace}, x.Host, namespace) // wait for the end of another story
	}
	s := &story{namespace: newNamespace(ctx, namespace)}
	DeferCleanup(s.end, NodeTimeout(2*storyTime))
	return s
}

func (s *story) end(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		x.Dump(ctx, GinkgoWriter, s.namespace)
	}
	s.oracle(ctx)
	s.cleanUp(ctx)
	s.oracle(ctx)
	Expect(x.Host.API.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})).To(Succeed())
}

// oracle checks I1: every disk created for the namespace belongs to an existing claim, or to a
// volume that must be retained.
func (s *story) oracle(ctx context.Context) {
	GinkgoHelper()
	for _, m := range x.Members() {
		if m.Name() == s.lost {
			continue
		}
		Eventually(ctx, func(g Gomega) {
			book, err := m.Ledger()
			g.Expect(err).NotTo(HaveOccurred())
			for id, disk := range book.Live() {
				if disk.ClaimNamespace == s.namespace {
					g.Expect(s.wanted(ctx, m, disk.PVName)).To(BeTrue(), "disk %s of claim %s/%s in %s: no object needs it (I1)", id, disk.ClaimNamespace, disk.ClaimName, m.Name())
				}
			}
		}).WithContext(ctx).Should(Succeed())
	}
}

// wanted reports whether a disk's volume belongs to an existing root claim, or is retained by the
// host or by the member.
func (s *story) wanted(ctx context.Context, m *harness.Cluster, volume string) bool {
	GinkgoHelper()
	var leaf corev1.PersistentVolume
	if err := m.API.Get(ctx, client.ObjectKey{Name: volume}, &leaf); err != nil {
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		return false
	}
	if leaf.Annotations[v1alpha1.AnnotationReclaimPolicy] == string(corev1.PersistentVolumeReclaimRetain) {
		return true // the member's own policy
	}
	var hosts corev1.PersistentVolumeList
	Expect(x.Host.API.List(ctx, &hosts)).To(Succeed())
	for i := range hosts.Items {
		pv := &hosts.Items[i]
		if pv.Spec.CSI == nil || !strings.HasSuffix(pv.Spec.CSI.VolumeHandle, "/"+volume) && !strings.HasSuffix(pv.Annotations[v1alpha1.AnnotationVolume], "/"+volume) {
			continue
		}
		if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
			return true
		}
		if ref := pv.Spec.ClaimRef; ref != nil {
			var claim corev1.PersistentVolumeClaim
			err := x.Host.API.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &claim)
			if err == nil && claim.UID == ref.UID {
				return true
			}
		}
	}
	return false
}

// cleanUp deletes the namespace's objects and waits until they are gone. Deleting the namespace
// itself would take longer.
func (s *story) cleanUp(ctx context.Context) {
	GinkgoHelper()
	in := client.InNamespace(s.namespace)
	for _, owner := range []client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &batchv1.Job{}} {
		Expect(x.Host.API.DeleteAllOf(ctx, owner, in, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	}
	Eventually(ctx, func(g Gomega) {
		// Repeat the deletion, because controllers may still create objects.
		for _, obj := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
			g.Expect(x.Host.API.DeleteAllOf(ctx, obj, in)).To(Succeed())
		}
		g.Expect(s.left(ctx, x.Host)).To(BeEmpty())
	}).WithContext(ctx).WithTimeout(storyTime).Should(Succeed())
}

// left returns the names of the Pods and claims in the story's namespace in a cluster.
func (s *story) left(ctx context.Context, c *harness.Cluster) []string {
	var names []string
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}} {
		Expect(c.API.List(ctx, list, client.InNamespace(s.namespace))).To(Succeed())
		items, err := meta.ExtractList(list)
		Expect(err).NotTo(HaveOccurred())
		for _, item := range items {
			names = append(names, fmt.Sprintf("%T %s", item, item.(client.Object).GetName()))
		}
	}
	return names
}

// Objects, and their changes before creation.

type (
	claimOption = func(*corev1.PersistentVolumeClaim)
	podOption   = func(*corev1.Pod)
)

func (s *story) newClaim(name string, options ...claimOption) *corev1.PersistentVolumeClaim {
	claim := harness.Claim(s.namespace, name, classMirror)
	for _, option := range options {
		option(claim)
	}
	return claim
}

func (s *story) claim(ctx context.Context, name string, options ...claimOption) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	claim := s.newClaim(name, options...)
	Expect(x.Host.API.Create(ctx, claim)).To(Succeed())
	return claim
}

func ofClass(name string) claimOption {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
}

func ofSize(size string) claimOption {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

func (s *story) newPod(name string, options ...podOption) *corev1.Pod {
	pod := harness.Pod(s.namespace, name)
	for _, option := range options {
		option(pod)
	}
	return pod
}

func podSpec() corev1.PodSpec { return harness.Pod("", "").Spec }

func (s *story) pod(ctx context.Context, name string, options ...podOption) *corev1.Pod {
	GinkgoHelper()
	pod := s.newPod(name, options...)
	Expect(x.Host.API.Create(ctx, pod)).To(Succeed())
	return pod
}

// using makes a Pod mount a claim.
func using(claim string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
}

// on makes the scheduler place a Pod on a node.
func on(node string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}},
		}}
	}
}

// boundTo sets a Pod's node, bypassing the scheduler.
func boundTo(node string) podOption { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func annotated(key, value string) podOption {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

// Reading.

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
}](ctx context.Context, s *story, c *harness.Cluster, name string, match gomegatypes.GomegaMatcher, explain ...any) P {
	GinkgoHelper()
	return suite.Until[T, P](ctx, c, s.namespace, name, match, explain...)
}

// gone waits until an object no longer exists.
func gone[T any, P interface {
	*T
	client.Object
}](ctx context.Context, s *story, c *harness.Cluster, name string) {
	GinkgoHelper()
	suite.Gone[T, P](ctx, c, s.namespace, name)
}

func phase(p any) gomegatypes.GomegaMatcher { return HaveField("Status.Phase", Equal(p)) }

// running waits until the host shows a Pod Running and Ready, on a node if given.
func (s *story) running(ctx context.Context, name string, node ...string) *corev1.Pod {
	GinkgoHelper()
	pod := until[corev1.Pod](ctx, s, x.Host, name, And(phase(corev1.PodRunning), isTrue(corev1.PodReady)))
	for _, n := range node {
		Expect(pod.Spec.NodeName).To(Equal(n))
	}
	return pod
}

// bound waits until the host shows a claim Bound.
func (s *story) bound(ctx context.Context, name string) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	return until[corev1.PersistentVolumeClaim](ctx, s, x.Host, name, phase(corev1.ClaimBound))
}

// isTrue matches a Pod whose condition of the given type is True.
func isTrue(condition corev1.PodConditionType) gomegatypes.GomegaMatcher {
	return HaveField("Status.Conditions", ContainElement(And(HaveField("Type", condition), HaveField("Status", corev1.ConditionTrue))))
}

// tells matches a Pod or claim with a Xylem condition that is False and has the given reason and
// message.
func tells(reason string, parts ...string) gomegatypes.GomegaMatcher {
	matchers := []gomegatypes.GomegaMatcher{
		WithTransform(func(c any) string {
			switch c := c.(type) {
			case corev1.PodCondition:
				return string(c.Type)
			case corev1.PersistentVolumeClaimCondition:
				return string(c.Type)
			}
			return ""
		}, HavePrefix(v1alpha1.Prefix)),
		HaveField("Status", corev1.ConditionFalse), HaveField("Reason", reason),
	}
	for _, part := range parts {
		matchers = append(matchers, HaveField("Message", ContainSubstring(part)))
	}
	return HaveField("Status.Conditions", ContainElement(And(matchers...)))
}

// noted waits for an event on one of the story's objects in the host.
func (s *story) noted(ctx context.Context, kind, name, reason string, parts ...string) {
	GinkgoHelper()
	matchers := []gomegatypes.GomegaMatcher{
		HaveField("InvolvedObject.Kind", kind), HaveField("InvolvedObject.Name", name), HaveField("Reason", reason),
		HaveField("InvolvedObject.Namespace", Or(Equal(s.namespace), BeEmpty())), // a PV has no namespace
	}
	for _, part := range parts {
		matchers = append(matchers, HaveField("Message", ContainSubstring(part)))
	}
	Eventually(ctx, hostEvents).Should(ContainElement(And(matchers...)))
}

// unwarned expects that no Warning was emitted about the story's objects in the given clusters.
func (s *story) unwarned(ctx context.Context, clusters ...*harness.Cluster) {
	GinkgoHelper()
	for _, c := range clusters {
		var events corev1.EventList
		Expect(c.API.List(ctx, &events, client.InNamespace(s.namespace))).To(Succeed())
		var warnings []string
		for _, e := range events.Items {
			if e.Type == corev1.EventTypeWarning {
				warnings = append(warnings, fmt.Sprintf("%s of %s %s by %s%s: %s", e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Source.Component, e.ReportingController, e.Message))
			}
		}
		Expect(warnings).To(BeEmpty(), "warnings in cluster %s", c.Name())
	}
}

// hostEvents lists all events of the host.
func hostEvents(ctx context.Context) ([]corev1.Event, error) {
	var events corev1.EventList
	err := x.Host.API.List(ctx, &events)
	return events.Items, err
}

// recorded waits until the host's record of a member lists released objects.
func (s *story) recorded(ctx context.Context, clusterID string, parts ...string) {
	GinkgoHelper()
	line := make([]gomegatypes.GomegaMatcher, len(parts))
	for i, part := range parts {
		line[i] = ContainSubstring(part)
	}
	Eventually(ctx, func(g Gomega) {
		var record coordinationv1.Lease
		g.Expect(x.Host.API.Get(ctx, client.ObjectKey{Namespace: v1alpha1.DefaultNamespace, Name: "fence-" + clusterID}, &record)).To(Succeed())
		g.Expect(strings.Split(record.Annotations[v1alpha1.AnnotationLetGo], "\n")).To(ContainElement(And(line...)))
	}).WithContext(ctx).Should(Succeed())
}

// book returns the entries for one of the story's claims in a member's ledger.
func (s *story) book(member, claim string) *ledger.Ledger {
	GinkgoHelper()
	book, err := x.Fleet.Member(member).Ledger()
	Expect(err).NotTo(HaveOccurred())
	return book.ForClaim(s.namespace, claim)
}

// Writing.

func (s *story) deletePod(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(x.Host.API.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}})).To(Succeed())
}

func (s *story) deleteClaim(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(x.Host.API.Delete(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}})).To(Succeed())
}

// patch sends a merge patch.
func patch(ctx context.Context, c *harness.Cluster, obj client.Object, body string) {
	GinkgoHelper()
	Expect(c.API.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(body)))).To(Succeed())
}

func (s *story) grow(ctx context.Context, claim, size string) {
	GinkgoHelper()
	patch(ctx, x.Host, s.newClaim(claim), fmt.Sprintf(`{"spec":{"resources":{"requests":{"storage":%q}}}}`, size))
}

// barrier creates a claim and its Pod on a node, and waits until the Pod runs. By then, Xylem has
// handled all earlier events.
func (s *story) barrier(ctx context.Context, node string) {
	GinkgoHelper()
	barriers++
	name := fmt.Sprintf("barrier-%d", barriers)
	s.claim(ctx, name)
	s.pod(ctx, name, using(name), on(node))
	s.running(ctx, name, node)
}

// attempt creates Pods until the scheduler's decision about one of them matches, and returns that
// Pod's name. It deletes the others, about which the scheduler decided before it observed an earlier
// change of a node: it does not observe Pods and other kinds in the order of their changes.
func (s *story) attempt(ctx context.Context, match OmegaMatcher, options ...podOption) (name string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) *corev1.Pod {
		if name != "" {
			Expect(x.Host.API.Delete(ctx, s.newPod(name), client.GracePeriodSeconds(0))).To(Succeed())
		}
		barriers++
		name = fmt.Sprintf("attempt-%d", barriers)
		s.pod(ctx, name, options...)
		return until[corev1.Pod](ctx, s, x.Host, name, HaveField("Status.Conditions", ContainElement(HaveField("Type", corev1.PodScheduled))))
	}).Should(match)
	return name
}

// barrierIn waits until a member's provisioner has created a volume for a foreign claim. By then,
// the provisioner has completed or attempted its earlier work.
func (s *story) barrierIn(ctx context.Context, c *harness.Cluster, class string) {
	GinkgoHelper()
	barriers++
	claim := s.newClaim(fmt.Sprintf("barrier-%d", barriers), ofClass(class))
	claim.Namespace = metav1.NamespaceDefault
	Expect(c.API.Create(ctx, claim)).To(Succeed())
	Eventually(ctx, func(ctx context.Context) (corev1.PersistentVolumeClaimPhase, error) {
		err := c.API.Get(ctx, client.ObjectKeyFromObject(claim), claim)
		return claim.Status.Phase, err
	}).Should(Equal(corev1.ClaimBound))
	Expect(c.API.Delete(ctx, claim)).To(Succeed())
}

var barriers int

// idOf returns the ID of a cluster.
func idOf(ctx context.Context, c *harness.Cluster) string {
	GinkgoHelper()
	id, err := c.ID(ctx)
	Expect(err).NotTo(HaveOccurred())
	return id
}

// ours returns Xylem's keys in a map of labels or annotations.
func ours(m map[string]string) map[string]string {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(key, _ string) bool { return !v1alpha1.Reserved(key) })
	return m
}
