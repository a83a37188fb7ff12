package stories_test

import (
	"context"
	"fmt"
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"google.golang.org/grpc/codes"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// notedOn waits for an event on a cluster-scoped object in the host.
func notedOn(ctx context.Context, kind, name, reason string, parts ...string) {
	GinkgoHelper()
	(&story{namespace: metav1.NamespaceDefault}).noted(ctx, kind, name, reason, parts...)
}

func orphaned(volume, reason string) gomegatypes.GomegaMatcher {
	return And(
		HaveField("Status.Orphans", ContainElement(And(HaveField("Volume", volume), HaveField("Reason", reason)))),
		HaveField("Status.Volumes.Orphaned", BeNumerically(">=", 1)),
		says(v1alpha1.ConditionVolumesAccounted, metav1.ConditionFalse, v1alpha1.ReasonOrphanedVolumes))
}

func notOrphaned(volume string) gomegatypes.GomegaMatcher {
	return And(HaveField("Status.Orphans", Not(ContainElement(HaveField("Volume", volume)))),
		says(v1alpha1.ConditionVolumesAccounted, metav1.ConditionTrue, v1alpha1.ReasonAllAccounted))
}

// data creates a claim with a Pod in the first member, and returns the name of its volume.
func (s *story) data(ctx context.Context, options ...claimOption) string {
	GinkgoHelper()
	s.claim(ctx, "data", options...)
	s.pod(ctx, "app", using("data"), on(nodeOne))
	s.running(ctx, "app", nodeOne)
	return s.bound(ctx, "data").Spec.VolumeName
}

// forget removes the claim, its Pod and its volume from the host while the manager is stopped, as a
// restore from an older backup would.
func (s *story) forget(ctx context.Context, volume string) {
	GinkgoHelper()
	Expect(x.Manager.Kill()).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(x.Manager.Start(ctx)).To(Succeed())
		Expect(x.AwaitReady(ctx, one)).To(Succeed())
	}, NodeTimeout(settle))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "app"}}
	Expect(x.Host.API.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
	lose(ctx, volume)
	s.deleteClaim(ctx, "data")
	gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data")
	gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
}

// asManager returns a client of the host that acts as the manager, for changes that the host's
// policies do not allow admins to make.
func asManager() client.Client {
	GinkgoHelper()
	config, err := x.Host.RESTConfig(controlplane.Direct)
	Expect(err).NotTo(HaveOccurred())
	config.Impersonate = rest.ImpersonationConfig{UserName: harness.HostUser}
	api, err := client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	return api
}

// lose deletes a host PV and its finalizers, as if a part of etcd were lost.
func lose(ctx context.Context, volume string) {
	GinkgoHelper()
	api := asManager()
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}
	Expect(api.Delete(ctx, pv)).To(Succeed())
	Expect(api.Patch(ctx, pv, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
}

// rewind makes the host's record of the fence older than the fence in the member, as a restore of
// the host would.
func rewind(ctx context.Context) {
	GinkgoHelper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "fence-" + idOf(ctx, x.Member(one))}}
	patch(ctx, x.Host, lease, fmt.Sprintf(`{"metadata":{"annotations":{%q:"0",%q:null}}}`, v1alpha1.AnnotationFenceEpoch, v1alpha1.AnnotationFenceEpoch+"-next"))
}

func (s *story) back(ctx context.Context) {
	GinkgoHelper()
	Expect(x.Manager.Start(ctx)).To(Succeed())
	Expect(x.AwaitReady(ctx, one)).To(Succeed())
}

// destroyOrphan destroys an orphan as the member's admin.
func (s *story) destroyOrphan(ctx context.Context, volume string) {
	GinkgoHelper()
	member := x.Member(one)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}
	patch(ctx, member, pv, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data"}}
	Expect(client.IgnoreNotFound(member.API.Delete(ctx, claim))).To(Succeed())
	gone[corev1.PersistentVolume](ctx, s, member, volume)
	registration(ctx, one, notOrphaned(volume))
}

var _ = Describe("A leaf volume without a root", func() {
	It("is reported by name, and Xylem never destroys it, even if another claim takes over its claim's name (I1, I2)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx)
		s.forget(ctx, volume)
		s.back(ctx)

		registration(ctx, one, orphaned(volume, v1alpha1.ReasonRootGone))
		notedOn(ctx, "ClusterRegistration", one, "OrphanedVolume", volume, s.namespace+"/data", "spec.volumeName")
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return metric(ctx, fmt.Sprintf("xylem_orphaned_volumes{cluster=%q}", one))
		}).Should(Equal("1"))

		By("creating a claim with the same name: it gets its own disk")
		s.data(ctx)
		Expect(s.bound(ctx, "data").Spec.VolumeName).NotTo(Equal(volume))
		registration(ctx, one, orphaned(volume, v1alpha1.ReasonRootReplaced))
		Expect(s.book(one, "data").LiveIDs()).To(HaveLen(2))

		By("destroying the orphan as the member's admin, who is allowed to do so")
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}
		patch(ctx, x.Member(one), pv, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		gone[corev1.PersistentVolume](ctx, s, x.Member(one), volume)
		registration(ctx, one, notOrphaned(volume))
	}, SpecTimeout(storyTime))

	It("counts as unknown, not as absent, while Xylem cannot read the member (I2)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx, ofClass(classRetainHost))
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		host := until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeReleased))
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data")
		Expect(x.Host.API.Delete(ctx, host)).To(Succeed())
		gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
		registration(ctx, one, orphaned(volume, v1alpha1.ReasonRootGone))

		proxy := x.Fleet.Member(one).Proxy()
		Expect(proxy.SetMode(controlplane.Cut)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
			Expect(x.AwaitReady(ctx, one)).To(Succeed())
		}, NodeTimeout(settle))
		registration(ctx, one, And(
			says(v1alpha1.ConditionVolumesAccounted, metav1.ConditionUnknown, v1alpha1.ReasonNotAccounted, "could not compare", volume),
			HaveField("Status.Volumes.Orphaned", BeNumerically(">=", 1))))
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return metric(ctx, fmt.Sprintf("xylem_orphaned_volumes{cluster=%q}", one))
		}).Should(BeEmpty())

		Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
		registration(ctx, one, orphaned(volume, v1alpha1.ReasonRootGone))
		s.destroyOrphan(ctx, volume)
	}, SpecTimeout(storyTime))

	DescribeTable("is reported if a provisioner finishes it late for a withdrawn claim, even in a foreign namespace (I1, I8)", func(ctx SpecContext, forget func(context.Context)) {
		s := begin(ctx)
		member := x.Member(one)
		By("creating a foreign claim's volume in the same namespace: it is not an orphan")
		Expect(member.API.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace, Labels: map[string]string{v1alpha1.LabelHost: idOf(ctx, x.Host)}}})).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(member.API.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})).To(Succeed())
		}, NodeTimeout(settle))
		own := s.ownVolume(ctx, member)

		stall := csidriver.Fault{Method: ledger.CreateVolume, Claim: s.namespace + "/data", Stall: true, After: true}
		Expect(x.Fleet.Member(one).SetFaults(stall)).To(Succeed())
		DeferCleanup(func() { Expect(x.Fleet.Member(one).SetFaults()).To(Succeed()) })
		s.claim(ctx, "data", ofClass(classRetained))
		s.pod(ctx, "app", using("data"), on(nodeOne))
		Eventually(ctx, func() int { return s.book(one, "data").Calls(ledger.CreateVolume) }).Should(BeNumerically(">", 0))
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		gone[corev1.PersistentVolumeClaim](ctx, s, member, "data")
		forget(ctx)
		Expect(x.Fleet.Member(one).SetFaults()).To(Succeed())

		var late string
		Eventually(ctx, func(g Gomega) {
			var volumes corev1.PersistentVolumeList
			g.Expect(member.API.List(ctx, &volumes)).To(Succeed())
			late = ""
			for _, pv := range volumes.Items {
				if ref := pv.Spec.ClaimRef; ref != nil && ref.Namespace == s.namespace && ref.Name == "data" {
					late = pv.Name
				}
			}
			g.Expect(late).NotTo(BeEmpty())
		}).WithContext(ctx).Should(Succeed())
		cr := registration(ctx, one, orphaned(late, v1alpha1.ReasonWithdrawnLate))
		Expect(cr.Status.Orphans).NotTo(ContainElement(HaveField("Volume", own)))
		for _, volume := range []string{late, own} {
			patch(ctx, member, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
			gone[corev1.PersistentVolume](ctx, s, member, volume)
		}
		registration(ctx, one, notOrphaned(late))
	},
		Entry("with a record of the withdrawal in both clusters", suite.Slow, SpecTimeout(storyTime), func(context.Context) {}),
		Entry("without a record in the host, as after a restore", suite.Slow, SpecTimeout(storyTime), func(ctx context.Context) {
			annotateLease(ctx, x.Host, "fence-"+idOf(ctx, x.Member(one)), "null")
		}),
		Entry("with an overwritten record in the member", suite.Slow, SpecTimeout(storyTime), func(ctx context.Context) {
			annotateLease(ctx, x.Member(one), idOf(ctx, x.Host), `"{"`)
		}),
	)
})

// annotateLease overwrites a Lease's record of withdrawn claims with a JSON value.
func annotateLease(ctx context.Context, cluster *harness.Cluster, name, value string) {
	GinkgoHelper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: name}}
	Expect(cluster.API.Get(ctx, client.ObjectKeyFromObject(lease), lease)).To(Succeed())
	Expect(lease.Annotations).To(HaveKey(v1alpha1.AnnotationWithdrawn))
	patch(ctx, cluster, lease, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.AnnotationWithdrawn, value))
}

// naming makes a claim request a volume by name.
func naming(volume string) claimOption {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }
}

// adopted waits until the re-created claim is bound to the volume and a Pod that uses the claim
// runs, and verifies that no other disk was created.
func (s *story) adopted(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume string) {
	GinkgoHelper()
	s.bound(ctx, "data")
	until[corev1.PersistentVolume](ctx, s, x.Host, volume, And(phase(corev1.VolumeBound),
		HaveField("Spec.ClaimRef.UID", claim.UID), HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)))
	until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, And(phase(corev1.VolumeBound),
		HaveField("Annotations", HaveKeyWithValue(v1alpha1.AnnotationRootUID, string(claim.UID))),
		HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)))
	until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", And(phase(corev1.ClaimBound), HaveField("Spec.VolumeName", volume)))
	s.noted(ctx, "PersistentVolumeClaim", "data", "VolumeAdopted", volume)
	s.pod(ctx, "again", using("data"))
	s.running(ctx, "again", nodeOne)
	Expect(s.book(one, "data").Count(ledger.CreateVolume)).To(Equal(1))
	registration(ctx, one, notOrphaned(volume))
}

// allow allows claims to adopt a volume, as an admin of the host does.
func allow(ctx context.Context, volume string) {
	GinkgoHelper()
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: one}}
	patch(ctx, x.Host, cr, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationAdopt, volume))
	DeferCleanup(disallow, NodeTimeout(settle))
}

func disallow(ctx SpecContext) {
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: one}}
	patch(ctx, x.Host, cr, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, v1alpha1.AnnotationAdopt))
	Expect(x.AwaitReady(ctx, one)).To(Succeed())
}

var _ = Describe("A claim that is re-created with the name of its earlier volume", func() {
	It("gets the volume if the host has lost both, while the leaf claim stays bound and no other claim can request the volume (I2, I3, I8)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx)
		leaf := until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", phase(corev1.ClaimBound))
		s.forget(ctx, volume)
		rewind(ctx)
		s.back(ctx)
		registration(ctx, one, says(v1alpha1.ConditionConnected, metav1.ConditionTrue, v1alpha1.ReasonHostRestored))
		registration(ctx, one, orphaned(volume, v1alpha1.ReasonRootGone))

		By("requesting the volume from another namespace, and with a claim of another name")
		other := begin(ctx)
		other.claim(ctx, "data", naming(volume))
		s.claim(ctx, "other", naming(volume))
		s.barrier(ctx, nodeOne)
		for _, claim := range []*corev1.PersistentVolumeClaim{
			until[corev1.PersistentVolumeClaim](ctx, other, x.Host, "data", phase(corev1.ClaimPending)),
			until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "other", phase(corev1.ClaimPending)),
		} {
			Expect(ours(claim.Annotations)).To(BeEmpty())
		}
		_, err := read[corev1.PersistentVolume](ctx, s, x.Host, volume)
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)

		By("requesting the volume with the claim itself")
		s.adopted(ctx, s.claim(ctx, "data", naming(volume)), volume)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", HaveField("UID", leaf.UID))

		By("confirming the restore as an admin")
		suite.ConfirmRestore(ctx, x, one, v1alpha1.ReasonHostRestored)
	}, SpecTimeout(storyTime))

	It("gets the volume in a re-created namespace when an admin allows it (I8)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx)
		s.forget(ctx, volume)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
		Expect(x.Host.API.Delete(ctx, namespace)).To(Succeed())
		gone[corev1.Namespace](ctx, s, x.Host, s.namespace)
		newNamespace(ctx, s.namespace)
		s.back(ctx)
		claim := s.claim(ctx, "data", naming(volume))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells(v1alpha1.ReasonAdoptionUnconfirmed, volume, v1alpha1.AnnotationAdopt))
		_, err := read[corev1.PersistentVolume](ctx, s, x.Host, volume)
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		allow(ctx, "some-other, "+volume)
		s.adopted(ctx, claim, volume)
	}, SpecTimeout(storyTime))

	It("gets a retained volume whose host PV was deleted, when an admin allows it (I8)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx, ofClass(classRetainHost))
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		host := until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeReleased))
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data")
		Expect(x.Host.API.Delete(ctx, host)).To(Succeed())
		gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
		By("requesting more than the capacity of the volume")
		s.claim(ctx, "data", ofClass(classRetainHost), naming(volume), ofSize("5Gi"))
		s.shown(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonVolumeMismatch, volume, "the volume's capacity is 1Gi, but the claim requests 5Gi")
		s.deleteClaim(ctx, "data")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data")

		By("creating a claim that the volume satisfies, after the member's admin removed the volume's claimRef")
		claimRef := func(to string) {
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}
			Expect(x.Member(one).API.Patch(ctx, pv, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"claimRef":`+to+`}}`)))).To(Succeed())
		}
		claimRef("null")
		until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, phase(corev1.VolumeAvailable))
		claim := s.claim(ctx, "data", ofClass(classRetainHost), naming(volume))
		s.shown(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonVolumeMismatch, volume, "Available, not Released")

		By("binding another claim with the same name to it, as a user of the member")
		leaf, err := read[corev1.PersistentVolume](ctx, s, x.Member(one), volume)
		Expect(err).NotTo(HaveOccurred())
		other := s.newClaim("data", ofClass(leaf.Spec.StorageClassName), naming(volume))
		Expect(x.Member(one).API.Create(ctx, other)).To(Succeed())
		s.shown(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonVolumeMismatch, volume, s.namespace+"/data", "which Xylem did not create")
		Expect(x.Member(one).API.Delete(ctx, other)).To(Succeed())
		until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, phase(corev1.VolumeReleased))
		claimRef("null")
		until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, phase(corev1.VolumeAvailable))
		claimRef(fmt.Sprintf(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","namespace":%q,"name":"data","uid":"of-an-earlier-claim"}`, s.namespace))
		s.shown(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonAdoptionUnconfirmed, volume)
		allow(ctx, placement.AdoptAllVolumes)
		s.adopted(ctx, claim, volume)
	}, SpecTimeout(storyTime))

	It("reports that the volume that it names does not exist, as its Pod does (I6)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "data", naming("no-such-volume"))
		s.pod(ctx, "app", on(nodeOne), using("data"))
		s.shown(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonVolumeNotFound, "no-such-volume")
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonVolumeNotFound, "no-such-volume")
	}, SpecTimeout(storyTime))

	It("reports that the volume that it names does not exist, although it was placed before it named one (I6)", func(ctx SpecContext) {
		s := begin(ctx)
		member := x.Fleet.Member(one)
		Expect(member.SetFaults(csidriver.Fault{Method: ledger.CreateVolume, Claim: s.namespace + "/data", Code: codes.Unavailable, Message: "not yet"})).To(Succeed())
		DeferCleanup(func() { Expect(member.SetFaults()).To(Succeed()) })
		claim := s.claim(ctx, "data")
		s.pod(ctx, "app", on(nodeOne), using("data"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", HaveField("Annotations", HaveKey(v1alpha1.AnnotationPlacedIn)))
		patch(ctx, x.Host, claim, `{"spec":{"volumeName":"no-such-volume"}}`)
		s.shown(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonVolumeNotFound, one, "no-such-volume")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data")
	}, SpecTimeout(storyTime))

	It("gets the volume once no other member has a volume with the same name and stamp (I8)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx)
		leaf := until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, phase(corev1.VolumeBound))
		s.forget(ctx, volume)
		rival := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: volume, Labels: leaf.Labels, Annotations: leaf.Annotations}, Spec: leaf.Spec,
		}
		rival.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		inMember(ctx, x.Member(two), rival)
		s.back(ctx)
		registration(ctx, one, orphaned(volume, v1alpha1.ReasonRootGone))
		registration(ctx, two, orphaned(volume, v1alpha1.ReasonRootGone))
		allow(ctx, volume)
		claim := s.claim(ctx, "data", naming(volume))
		s.noted(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonAmbiguousVolume, volume, one, two)
		s.barrier(ctx, nodeOne)
		Expect(until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", phase(corev1.ClaimPending)).Annotations).NotTo(HaveKey(v1alpha1.AnnotationPlacedIn))

		By("restarting the manager, which has forgotten what the other member has")
		Expect(x.Manager.Kill()).To(Succeed())
		Expect(x.Manager.Start(ctx)).To(Succeed())
		Expect(x.AwaitReady(ctx, one)).To(Succeed())
		Expect(x.AwaitReady(ctx, two)).To(Succeed())
		s.barrier(ctx, nodeOne)
		Expect(until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", phase(corev1.ClaimPending)).Annotations).NotTo(HaveKey(v1alpha1.AnnotationPlacedIn))

		Expect(x.Member(two).API.Delete(ctx, rival)).To(Succeed())
		registration(ctx, two, notOrphaned(volume))
		s.adopted(ctx, claim, volume)
	}, SpecTimeout(storyTime))

	It("gets the volume once the class exists again", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		class := hostClass("comes-back", classMirror)
		inHost(ctx, class)
		volume := s.data(ctx, ofClass(class.Name))
		s.forget(ctx, volume)
		Expect(x.Host.API.Delete(ctx, class.DeepCopy())).To(Succeed())
		gone[storagev1.StorageClass](ctx, s, x.Host, class.Name)
		s.back(ctx)
		registration(ctx, one, orphaned(volume, v1alpha1.ReasonRootGone))
		allow(ctx, volume)
		claim := s.claim(ctx, "data", ofClass(class.Name), naming(volume))
		s.barrier(ctx, nodeOne)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", phase(corev1.ClaimPending))
		Expect(x.Host.API.Create(ctx, hostClass(class.Name, classMirror))).To(Succeed())
		s.adopted(ctx, claim, volume)
	}, SpecTimeout(storyTime))
})

var _ = Describe("An object that was deleted by accident", func() {
	It("is re-created: a host PV, so that its claim is Bound again, and a leaf claim for its existing volume (I2, I3)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx)
		claim := s.bound(ctx, "data")

		By("deleting the host PV and removing its finalizers")
		before := until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeBound))
		lose(ctx, volume)
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, And(HaveField("UID", Not(Equal(before.UID))), phase(corev1.VolumeBound),
			HaveField("Spec.ClaimRef.UID", claim.UID), HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)))
		s.noted(ctx, "PersistentVolumeClaim", "data", "VolumeRecreated", volume)
		s.bound(ctx, "data")

		By("deleting the leaf Pod, then the leaf claim")
		s.deletePod(ctx, "app")
		gone[corev1.Pod](ctx, s, x.Member(one), "app")
		leaf := until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", phase(corev1.ClaimBound))
		Expect(x.Member(one).API.Delete(ctx, leaf)).To(Succeed())
		until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", And(HaveField("UID", Not(Equal(leaf.UID))),
			phase(corev1.ClaimBound), HaveField("Spec.VolumeName", volume)))

		By("deleting the leaf volume, after which Xylem reports the loss and provisions no other volume")
		lost := until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, phase(corev1.VolumeBound))
		Expect(x.Member(one).API.Delete(ctx, lost)).To(Succeed())
		patch(ctx, x.Member(one), lost, `{"metadata":{"finalizers":null}}`)
		gone[corev1.PersistentVolume](ctx, s, x.Member(one), volume)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells("VolumeLost", volume))
		Expect(s.book(one, "data").Count(ledger.CreateVolume)).To(Equal(1))
		s.lost = one
	}, SpecTimeout(storyTime))

	It("is reported if it cannot be re-created: a host PV whose leaf volume is also being deleted (I6)", func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx)
		leaf := until[corev1.PersistentVolume](ctx, s, x.Member(one), volume, phase(corev1.VolumeBound))
		Expect(x.Member(one).API.Delete(ctx, leaf)).To(Succeed())
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells(v1alpha1.ReasonVolumeTerminating, volume))
		lose(ctx, volume)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(phase(corev1.ClaimLost), tells(v1alpha1.ReasonVolumeTerminating, volume, "does not exist in the host")))

		By("removing the finalizers of the leaf volume, then those of the leaf claim")
		patch(ctx, x.Member(one), leaf, `{"metadata":{"finalizers":null}}`)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells(v1alpha1.ReasonVolumeLost, volume, one, "no longer exists there"))
		claim := until[corev1.PersistentVolumeClaim](ctx, s, x.Member(one), "data", phase(corev1.ClaimLost))
		Expect(x.Member(one).API.Delete(ctx, claim)).To(Succeed())
		patch(ctx, x.Member(one), claim, `{"metadata":{"finalizers":null}}`)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells(v1alpha1.ReasonVolumeLost, volume, one, "no counterpart of the claim"))
		Expect(s.book(one, "data").Count(ledger.CreateVolume)).To(Equal(1))
		s.lost = one
	}, SpecTimeout(storyTime))

	It("is reported if somebody edits it: a host PV whose claimRef names another claim, which an admin can correct or delete", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx)
		claim := s.bound(ctx, "data")
		host := until[corev1.PersistentVolume](ctx, s, x.Host, volume, phase(corev1.VolumeBound))
		claimRef := func(name string, uid types.UID) {
			patch(ctx, x.Host, host, fmt.Sprintf(`{"spec":{"claimRef":{"namespace":%q,"name":%q,"uid":%q}}}`, s.namespace, name, uid))
		}
		claimRef("other", "none")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(phase(corev1.ClaimLost), tells(v1alpha1.ReasonVolumeMismatch, volume, one, s.namespace+"/other", string(claim.UID))))
		claimRef("data", claim.UID)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(phase(corev1.ClaimBound), Not(tells(v1alpha1.ReasonVolumeMismatch))))

		By("changing it again, then deleting it, after which Xylem re-creates it")
		claimRef("other", "none")
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(phase(corev1.ClaimLost), tells(v1alpha1.ReasonVolumeMismatch)))
		Expect(x.Host.API.Delete(ctx, host)).To(Succeed())
		until[corev1.PersistentVolume](ctx, s, x.Host, volume, And(HaveField("UID", Not(Equal(host.UID))), phase(corev1.VolumeBound), HaveField("Spec.ClaimRef.UID", claim.UID)))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(phase(corev1.ClaimBound), Not(tells(v1alpha1.ReasonVolumeMismatch))))
		Expect(s.book(one, "data").Count(ledger.CreateVolume)).To(Equal(1))
	}, SpecTimeout(storyTime))
})

var _ = Describe("A re-created leaf volume", func() {
	DescribeTable("is reported and kept, because it may be the claim's own disk, even when the claim is deleted (I1, I2)", func(ctx SpecContext, change func(*corev1.PersistentVolume)) {
		s := begin(ctx)
		member := x.Member(one)
		volume := s.data(ctx)
		s.deletePod(ctx, "app")
		gone[corev1.Pod](ctx, s, member, "app")
		leaf := until[corev1.PersistentVolume](ctx, s, member, volume, phase(corev1.VolumeBound))
		again := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: volume, Labels: maps.Clone(leaf.Labels), Annotations: maps.Clone(leaf.Annotations)}, Spec: *leaf.Spec.DeepCopy(),
		}
		change(again)
		Expect(member.API.Delete(ctx, leaf)).To(Succeed())
		patch(ctx, member, leaf, `{"metadata":{"finalizers":null}}`)
		Expect(member.API.Create(ctx, again)).To(Succeed())

		By("checking that the claim reports the replacement, and that the disk is kept")
		s.noted(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonVolumeReplaced, volume)
		until[corev1.PersistentVolume](ctx, s, member, volume, And(HaveField("UID", again.UID), phase(corev1.VolumeBound),
			HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)))

		By("deleting the claim, whose volume has policy Delete")
		s.deleteClaim(ctx, "data")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data")
		gone[corev1.PersistentVolume](ctx, s, x.Host, volume)
		gone[corev1.PersistentVolumeClaim](ctx, s, member, "data")
		registration(ctx, one, orphaned(volume, v1alpha1.ReasonRootGone))
		until[corev1.PersistentVolume](ctx, s, member, volume, And(HaveField("UID", again.UID), phase(corev1.VolumeReleased), HaveField("DeletionTimestamp", BeNil())))
		Expect(s.book(one, "data").LiveIDs()).To(HaveLen(1))

		By("using the volume for the claim, as the event describes")
		allow(ctx, volume)
		claim := s.claim(ctx, "data", naming(volume))
		s.adopted(ctx, claim, volume)
	},
		Entry("by an admin, from its YAML", suite.Slow, SpecTimeout(storyTime), func(*corev1.PersistentVolume) {}),
		Entry("by its provisioner, for the same leaf claim", suite.Slow, SpecTimeout(storyTime), func(pv *corev1.PersistentVolume) {
			ours := func(key, _ string) bool {
				return strings.HasPrefix(key, v1alpha1.Prefix) || key == v1alpha1.LabelManagedBy
			}
			maps.DeleteFunc(pv.Labels, ours)
			maps.DeleteFunc(pv.Annotations, ours)
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}),
	)
})

// ownVolume creates a foreign claim in the story's namespace in a member, and deletes it. It
// returns the name of the volume that the claim leaves behind.
func (s *story) ownVolume(ctx context.Context, member *harness.Cluster) string {
	GinkgoHelper()
	claim := s.newClaim("own", ofClass(classRetained))
	Expect(member.API.Create(ctx, claim)).To(Succeed())
	pod := s.newPod("own", using("own"))
	Expect(member.API.Create(ctx, pod)).To(Succeed())
	volume := until[corev1.PersistentVolumeClaim](ctx, s, member, "own", phase(corev1.ClaimBound)).Spec.VolumeName
	Expect(member.API.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
	Expect(member.API.Delete(ctx, claim)).To(Succeed())
	until[corev1.PersistentVolume](ctx, s, member, volume, phase(corev1.VolumeReleased))
	return volume
}

var _ = Describe("A stuck deletion", func() {
	It("is also reported on a new Pod and claim with the same name, which wait for it", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx)
		member := x.Member(one)
		leaves := []client.Object{
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "app"}},
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data"}},
		}
		for _, leaf := range leaves {
			add := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/finalizers","value":["example.com/hold"]}]`))
			Expect(member.API.Patch(ctx, leaf, add)).To(Succeed())
		}
		release := func(ctx context.Context) {
			for _, leaf := range leaves {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				Expect(client.IgnoreNotFound(member.API.Patch(ctx, leaf, patch))).To(Succeed())
			}
		}
		DeferCleanup(release, NodeTimeout(settle))
		Expect(x.Host.API.Delete(ctx, s.newPod("app"), client.GracePeriodSeconds(0))).To(Succeed())
		gone[corev1.Pod](ctx, s, x.Host, "app")
		s.deleteClaim(ctx, "data")
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data")

		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne))
		s.noted(ctx, "PersistentVolumeClaim", "data", v1alpha1.ReasonStuckDeletion, one, "earlier PersistentVolumeClaim with this name", s.namespace+"/data")
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonStuckDeletion, one, "earlier Pod with this name", "example.com/hold")
		release(ctx)
		s.running(ctx, "app", nodeOne)
	}, SpecTimeout(storyTime))

	It("is reported with its cause: a Pod that uses the claim, a finalizer, a provisioner's error, an away member (I1)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		volume := s.data(ctx)
		member := x.Member(one)

		By("deleting a claim that a Pod still uses")
		s.deleteClaim(ctx, "data")
		s.noted(ctx, "PersistentVolumeClaim", "data", "StuckDeletion", "Pod "+s.namespace+"/app")
		registration(ctx, one, says(v1alpha1.ConditionDeletionsProgressing, metav1.ConditionFalse, v1alpha1.ReasonStuckDeletion, "Pod "+s.namespace+"/app"))
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return metric(ctx, fmt.Sprintf("xylem_stuck_deletions{cluster=%q}", one))
		}).Should(Equal("1"))

		By("adding another controller's finalizer to the Pod in the member")
		leaf := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "app"}}
		patch(ctx, member, leaf, `{"metadata":{"finalizers":["example.com/hold"]}}`)
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(member.API.Patch(ctx, leaf, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))).To(Succeed())
		}, NodeTimeout(settle))
		Expect(x.Host.API.Delete(ctx, s.newPod("app"), client.GracePeriodSeconds(1))).To(Succeed())
		s.noted(ctx, "Pod", "app", "StuckDeletion", "example.com/hold")
		s.noted(ctx, "PersistentVolumeClaim", "data", "StuckDeletion", "Pod "+s.namespace+"/app, which is being deleted", "example.com/hold")

		By("disconnecting the member")
		proxy := x.Fleet.Member(one).Proxy()
		Expect(proxy.SetMode(controlplane.Cut)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
			Expect(x.AwaitReady(ctx, one)).To(Succeed())
		}, NodeTimeout(settle))
		s.noted(ctx, "Pod", "app", "StuckDeletion", "has not been connected since")
		s.noted(ctx, "PersistentVolumeClaim", "data", "StuckDeletion", "Pod "+s.namespace+"/app, which is being deleted", "has not been connected since")
		Expect(proxy.SetMode(controlplane.Pass)).To(Succeed())
		Expect(x.AwaitReady(ctx, one)).To(Succeed())

		By("making the provisioner fail to destroy the volume")
		Expect(x.Fleet.Member(one).SetFaults(csidriver.Fault{Method: ledger.DeleteVolume, Code: codes.Internal, Message: "the disk is busy"})).To(Succeed())
		DeferCleanup(func() { Expect(x.Fleet.Member(one).SetFaults()).To(Succeed()) })
		patch(ctx, member, leaf, `{"metadata":{"finalizers":null}}`)
		gone[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data")
		notedOn(ctx, "PersistentVolume", volume, "StuckDeletion", "the disk is busy")
		registration(ctx, one, says(v1alpha1.ConditionDeletionsProgressing, metav1.ConditionFalse, v1alpha1.ReasonStuckDeletion, volume, "the disk is busy"))

		By("completing the deletion")
		Expect(x.Fleet.Member(one).SetFaults()).To(Succeed())
		s.destroyed(ctx, one, "data", volume)
		registration(ctx, one, says(v1alpha1.ConditionDeletionsProgressing, metav1.ConditionTrue, v1alpha1.ReasonProgressing))
	}, SpecTimeout(storyTime))
})
