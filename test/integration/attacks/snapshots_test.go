package attacks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
)

const beingDeleted = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted"

// tenantsTakeSnapshots returns a ClusterRole that allows namespace admins to take snapshots.
func tenantsTakeSnapshots() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "tenants-take-snapshots", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-admin": "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{snapshotv1.GroupName}, Resources: []string{"volumesnapshots", "volumesnapshots/status"}, Verbs: []string{rbacv1.VerbAll}}},
	}
}

// operator creates the operator of the host's backups: a user who can write all
// VolumeSnapshotContents of the host, but no objects of members.
func operator(ctx context.Context) client.Client {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "backups-"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{snapshotv1.GroupName}, Resources: []string{"volumesnapshotcontents", "volumesnapshotcontents/status"}, Verbs: []string{rbacv1.VerbAll}},
	}}
	Expect(x.Host.API.Create(ctx, role)).To(Succeed())
	removed(x.Host.API, role)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role.Name}},
	}
	Expect(x.Host.API.Create(ctx, binding)).To(Succeed())
	removed(x.Host.API, binding)
	user := somebody(x.Host, role.Name)
	Eventually(ctx, func(ctx context.Context) error { return user.List(ctx, &snapshotv1.VolumeSnapshotContentList{}) }).Should(Succeed())
	return user
}

// taken contains the objects of a ready snapshot in the host and in member one.
type taken struct {
	of                *person
	claim             string
	root, leaf        *snapshotv1.VolumeSnapshot
	content, leafHeld *snapshotv1.VolumeSnapshotContent
}

func (p *person) volumeSnapshot(name, claim string) *snapshotv1.VolumeSnapshot {
	return harness.VolumeSnapshot(p.namespace, name, claim, snapshots)
}

// takes takes a snapshot of a claim in member one.
func (p *person) takes(ctx context.Context, name, claim string, change ...func(*snapshotv1.VolumeSnapshot)) *taken {
	GinkgoHelper()
	vs := p.volumeSnapshot(name, claim)
	for _, f := range change {
		f(vs)
	}
	Eventually(ctx, func(ctx context.Context) error { return p.api.Create(ctx, vs) }).Should(Succeed(), "the API server may enforce the permission with a delay")
	root, err := x.Host.AwaitSnapshot(ctx, p.namespace, name)
	Expect(err).NotTo(HaveOccurred())
	s := &taken{of: p, claim: claim, root: root}
	s.content = must[snapshotv1.VolumeSnapshotContent](ctx, x.Host, "", *root.Status.BoundVolumeSnapshotContentName)
	s.leaf = must[snapshotv1.VolumeSnapshot](ctx, x.Member(one), p.namespace, name)
	s.leafHeld = must[snapshotv1.VolumeSnapshotContent](ctx, x.Member(one), "", "snapcontent-"+string(s.leaf.UID))
	return s
}

// handle returns the driver's handle of the snapshot.
func (s *taken) handle() string { return *s.leafHeld.Status.SnapshotHandle }

// live returns the claim's snapshots that exist in member one's storage.
func (s *taken) live() []string {
	GinkgoHelper()
	return s.of.book(one, s.claim).LiveSnapshotIDs()
}

func (p *person) book(member, claim string) *ledger.Ledger {
	GinkgoHelper()
	book, err := x.Fleet.Member(member).Ledger()
	Expect(err).NotTo(HaveOccurred())
	return book.ForClaim(p.namespace, claim)
}

// unharmed expects the snapshot and its objects to be unchanged.
func (s *taken) unharmed(ctx context.Context) {
	GinkgoHelper()
	root := must[snapshotv1.VolumeSnapshot](ctx, x.Host, s.of.namespace, s.root.Name)
	Expect(root.UID).To(Equal(s.root.UID))
	Expect(root.DeletionTimestamp).To(BeNil())
	Expect(root.Status).To(Equal(s.root.Status))
	content := must[snapshotv1.VolumeSnapshotContent](ctx, x.Host, "", s.content.Name)
	Expect(content.UID).To(Equal(s.content.UID))
	Expect(content.Annotations).To(Equal(s.content.Annotations))
	Expect(content.Status.SnapshotHandle).To(Equal(s.content.Status.SnapshotHandle))
	leaf := must[snapshotv1.VolumeSnapshotContent](ctx, x.Member(one), "", s.leafHeld.Name)
	Expect(leaf.UID).To(Equal(s.leafHeld.UID))
	Expect(leaf.Spec).To(Equal(s.leafHeld.Spec))
	Expect(leaf.Status).To(Equal(s.leafHeld.Status))
	Expect(s.live()).To(ConsistOf(s.handle()))
}

// forge writes a status as an admin of the object's cluster can.
func forge(ctx context.Context, c client.Client, obj client.Object, status string) {
	GinkgoHelper()
	Expect(c.Status().Patch(ctx, obj.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`)))).To(Succeed())
}

// insist forges a status, and forges it again whenever the member's controllers correct it, until
// stop is called. The csi-snapshotter reads the driver again whenever it handles a content that is
// not ready, for example because of an earlier event.
func insist(ctx context.Context, c client.Client, obj client.Object, status string) (stop func()) {
	GinkgoHelper()
	forge(ctx, c, obj, status)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))
		for ctx.Err() == nil {
			// An error ends with the next attempt, and the story asserts the effect.
			_ = c.Status().Patch(ctx, obj.DeepCopyObject().(client.Object), patch)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	stop = func() { cancel(); <-ended }
	DeferCleanup(stop)
	return stop
}

// held waits until the host's VolumeSnapshotContent matches.
func (s *taken) held(ctx context.Context, match gomegatypes.GomegaMatcher) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (*snapshotv1.VolumeSnapshotContent, error) {
		return get[snapshotv1.VolumeSnapshotContent](ctx, x.Host, "", s.content.Name)
	}).Should(match)
}

func failing(words ...string) gomegatypes.GomegaMatcher {
	return HaveField("Status", And(HaveField("ReadyToUse", HaveValue(BeFalse())), HaveField("Error", And(Not(BeNil()), HaveField("Message", HaveValue(allOf(words)))))))
}

func usable() gomegatypes.GomegaMatcher {
	return HaveField("Status", And(HaveField("ReadyToUse", HaveValue(BeTrue())), HaveField("Error", BeNil())))
}

// restore returns a claim whose data source is a VolumeSnapshot in its namespace.
func (p *person) restore(name, snapshot string) *corev1.PersistentVolumeClaim {
	return harness.FromSnapshot(p.claim(name), snapshot)
}

// wants creates a claim, and a Pod that uses it in any member.
func (p *person) wants(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	Expect(p.api.Create(ctx, claim)).To(Succeed())
	Expect(p.api.Create(ctx, harness.Pod(p.namespace, claim.Name, claim.Name))).To(Succeed())
}

// neverMade expects that no member's driver received a request to create a disk for a claim. It
// waits for a barrier in each member first.
func (p *person) neverMade(ctx context.Context, claim string) {
	GinkgoHelper()
	barrier(ctx)
	for _, member := range []string{one, two} {
		Expect(p.book(member, claim).Calls(ledger.CreateVolume)).To(BeZero(), "in %s", member)
	}
}

// contains expects the disk of a claim in member one to hold certain data.
func (p *person) contains(claim, data string) {
	GinkgoHelper()
	disks := p.book(one, claim).LiveIDs()
	Expect(disks).To(HaveLen(1))
	Expect(csidriver.ReadData(x.Fleet.Member(one).DriverDir(), disks[0])).To(Equal(data))
}

// fills writes data to the disk of a claim in member one.
func (p *person) fills(claim, data string) {
	GinkgoHelper()
	disks := p.book(one, claim).LiveIDs()
	Expect(disks).To(HaveLen(1))
	Expect(csidriver.WriteData(x.Fleet.Member(one).DriverDir(), disks[0], data)).To(Succeed())
}

var _ = Describe("A member's admin uses snapshots to try", func() {
	It("to get or destroy another tenant's data: a leaf content with the handle of the victim's snapshot", func(ctx SpecContext) {
		a, m := attacker(ctx), x.Member(one)
		a.runs(ctx, "data", nodeOne)
		own := a.takes(ctx, "snap", "data")
		const replaced = "is not the one that was taken"
		forge(ctx, m.API, own.leafHeld, fmt.Sprintf(`{"snapshotHandle":%q}`, victim.taken.handle()))
		own.held(ctx, failing(one, replaced))

		By("restoring a claim from the snapshot")
		a.wants(ctx, a.restore("copy", "snap"))
		a.told(ctx, a.claim("copy"), v1alpha1.ReasonSourceNotReady, replaced)
		a.neverMade(ctx, "copy")
		for _, obj := range []client.Object{a.pod("copy", "", nil), a.claim("copy")} {
			Expect(a.api.Delete(ctx, obj)).To(Succeed())
		}

		By("trying to destroy the victim's snapshot with the attacker's VolumeSnapshot")
		Expect(a.api.Delete(ctx, own.root)).To(Succeed())
		own.held(ctx, And(HaveField("DeletionTimestamp", Not(BeNil())), failing(replaced, "The deletion of the VolumeSnapshot in the host then continues")))
		barrier(ctx)
		victim.unharmed(ctx)
		Expect(own.live()).To(ConsistOf(own.handle()))

		By("correcting the handle, after which Xylem destroys the attacker's own snapshot")
		forge(ctx, m.API, own.leafHeld, fmt.Sprintf(`{"snapshotHandle":%q}`, own.handle()))
		Eventually(ctx, own.live).Should(BeEmpty())
		Eventually(ctx, func(ctx context.Context) error {
			_, err := get[snapshotv1.VolumeSnapshotContent](ctx, x.Host, "", own.content.Name)
			return err
		}).Should(Satisfy(apierrors.IsNotFound))
	}, SpecTimeout(attackTime))

	It("to get another tenant's data: a leaf VolumeSnapshot that is bound to the victim's content", func(ctx SpecContext) {
		a, m := attacker(ctx), x.Member(one)
		a.runs(ctx, "data", nodeOne)
		a.fills("data", "the attacker's own")
		own := a.takes(ctx, "snap", "data")
		forge(ctx, m.API, own.leaf, fmt.Sprintf(`{"boundVolumeSnapshotContentName":%q}`, victim.taken.leafHeld.Name))
		a.wants(ctx, a.restore("copy", "snap"))
		a.told(ctx, a.claim("copy"), v1alpha1.ReasonSourceNotReady, one, "is bound to a different VolumeSnapshotContent")
		a.neverMade(ctx, "copy")

		By("correcting the binding, after which the claim gets the attacker's own data")
		forge(ctx, m.API, own.leaf, fmt.Sprintf(`{"boundVolumeSnapshotContentName":%q,"readyToUse":true}`, own.leafHeld.Name))
		a.running(ctx, "copy")
		a.contains("copy", "the attacker's own")

		By("deleting the VolumeSnapshot while it is bound to the victim's content")
		forge(ctx, m.API, own.leaf, fmt.Sprintf(`{"boundVolumeSnapshotContentName":%q}`, victim.taken.leafHeld.Name))
		Expect(a.api.Delete(ctx, own.root)).To(Succeed())
		// The member's snapshot-controller reads the forged status and decides whether to delete
		// the attacker's own snapshot.
		barrier(ctx)
		victim.unharmed(ctx)
	}, SpecTimeout(attackTime))

	It("to make objects grow, controllers fail, and terminals interpret escape sequences in the host: huge sizes, times and errors", func(ctx SpecContext) {
		a, m := attacker(ctx), x.Member(one)
		a.runs(ctx, "data", nodeOne)
		own := a.takes(ctx, "snap", "data")
		size := own.leafHeld.Status.RestoreSize
		hostile, err := json.Marshal("\x1b[31mhacked\u202e\n\n" + strings.Repeat("x", 100<<10))
		Expect(err).NotTo(HaveOccurred())
		stop := insist(ctx, m.API, own.leafHeld, fmt.Sprintf(`{"restoreSize":%d,"creationTime":%[1]d,"readyToUse":false,"error":{"message":%s,"time":"2099-01-01T00:00:00Z"}}`, int64(math.MaxInt64), hostile))
		plain := HaveValue(And(ContainSubstring("hacked"), Not(ContainSubstring("\x1b")), Not(ContainSubstring("\u202e")), WithTransform(length, BeNumerically("<=", 4096))))
		own.held(ctx, HaveField("Status", And(HaveField("Error.Message", plain), HaveField("RestoreSize", HaveValue(BeEquivalentTo(math.MaxInt64))))))
		shown, err := json.Marshal(must[snapshotv1.VolumeSnapshotContent](ctx, x.Host, "", own.content.Name))
		Expect(err).NotTo(HaveOccurred())
		Expect(len(shown)).To(BeNumerically("<", 16<<10))
		a.wants(ctx, a.restore("copy", "snap"))
		a.told(ctx, a.claim("copy"), v1alpha1.ReasonSourceNotReady, "hacked")
		copied := must[corev1.PersistentVolumeClaim](ctx, x.Host, a.namespace, "copy")
		Expect(copied.Size()).To(BeNumerically("<", 8<<10))

		By("reporting readiness with an impossible size")
		stop()
		forge(ctx, m.API, own.leafHeld, `{"readyToUse":true,"error":null}`)
		a.told(ctx, a.claim("copy"), v1alpha1.ReasonSourceMismatch, "requests 1Gi", "create it again with")
		a.neverMade(ctx, "copy")

		By("correcting the size")
		forge(ctx, m.API, own.leafHeld, fmt.Sprintf(`{"restoreSize":%d,"creationTime":%d}`, *size, *own.leafHeld.Status.CreationTime))
		a.running(ctx, "copy")
	}, SpecTimeout(attackTime))

	It("to change a volume's mode, so that a kernel interprets a tenant's data: the sourceVolumeMode of a leaf content", func(ctx SpecContext) {
		Expect(patched(ctx, x.Member(one).API, victim.taken.leafHeld, `{"spec":{"sourceVolumeMode":"Block"}}`)).To(Satisfy(apierrors.IsInvalid))
		a := attacker(ctx)
		a.runs(ctx, "data", nodeOne)
		own := a.takes(ctx, "snap", "data")
		By("allowing the change only in the member, although the host's admin must also allow it")
		const allow = `{"metadata":{"annotations":{"snapshot.storage.kubernetes.io/allow-volume-mode-change":"true"}}}`
		Expect(patched(ctx, x.Member(one).API, own.leafHeld, allow)).To(Succeed())
		raw := a.restore("raw", "snap")
		raw.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
		Expect(a.api.Create(ctx, raw)).To(Succeed())
		a.told(ctx, raw, v1alpha1.ReasonSourceMismatch, "volumeMode Block", "allow-volume-mode-change=true", own.content.Name, own.leafHeld.Name)
		Expect(patched(ctx, a.api, own.content, allow)).To(forbidden)
		a.neverMade(ctx, "raw")
	}, SpecTimeout(attackTime))

	It("to make Xylem destroy a snapshot elsewhere, or other data: VolumeSnapshots with forged stamps", func(ctx SpecContext) {
		m := x.Member(two)
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: victim.namespace}}
		stamp(ctx, ns, victim.namespace, "some")
		Expect(m.API.Create(ctx, ns)).To(Succeed())
		removed(m.API, ns)
		By("using the stamp of the victim's snapshot, in another member")
		twin := victim.volumeSnapshot(victim.taken.root.Name, "data")
		stamp(ctx, twin, victim.namespace+"/"+twin.Name, victim.taken.root.UID)
		Expect(m.API.Create(ctx, twin)).To(Succeed())
		removed(m.API, twin)
		By("using the stamp of a deleted root, with real data")
		r := newTenant(ctx, m, "resident")
		Expect(m.API.Create(ctx, harness.Claim(r.namespace, "own", controlplane.ClassFast))).To(Succeed())
		lying := harness.VolumeSnapshot(r.namespace, "own", "own", snapshots)
		Eventually(ctx, func(ctx context.Context) (corev1.PersistentVolumeClaimPhase, error) {
			c, err := get[corev1.PersistentVolumeClaim](ctx, m, r.namespace, "own")
			return c.Status.Phase, err
		}).Should(Equal(corev1.ClaimBound))
		Expect(m.API.Create(ctx, lying)).To(Succeed())
		ready, err := m.AwaitSnapshot(ctx, r.namespace, "own")
		Expect(err).NotTo(HaveOccurred())
		before := ready.DeepCopy()
		stamp(ctx, ready, r.namespace+"/own", "gone")
		Expect(m.API.Patch(ctx, ready, client.MergeFrom(before))).To(Succeed())
		content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: *ready.Status.BoundVolumeSnapshotContentName}}
		removed(m.API, content)

		By("checking that the data is kept and counted as orphaned")
		Eventually(ctx, func(ctx context.Context) ([]v1alpha1.OrphanedSnapshot, error) {
			cr, err := get[v1alpha1.ClusterRegistration](ctx, x.Host, "", two)
			return cr.Status.OrphanedSnapshots, err
		}).Should(ContainElement(HaveField("Content", content.Name)))
		barrier(ctx)
		Expect(must[snapshotv1.VolumeSnapshotContent](ctx, m, "", content.Name)).To(And(
			HaveField("DeletionTimestamp", BeNil()), HaveField("Spec.DeletionPolicy", snapshotv1.VolumeSnapshotContentRetain)))
		book, err := x.Fleet.Member(two).Ledger()
		Expect(err).NotTo(HaveOccurred())
		Expect(book.ForClaim(r.namespace, "own").LiveSnapshotIDs()).To(HaveLen(1))
	}, SpecTimeout(attackTime))
})

var _ = Describe("A tenant of the host uses snapshots to try", func() {
	It("to take the identity of the victim's snapshot, or change a placement: annotations and labels of a VolumeSnapshot", func(ctx SpecContext) {
		a := attacker(ctx)
		a.runs(ctx, "data", nodeOne)
		second := must[v1alpha1.ClusterRegistration](ctx, x.Host, "", two).Status.ClusterID
		own := a.takes(ctx, "snap", "data", func(vs *snapshotv1.VolumeSnapshot) {
			stamp(ctx, vs, victim.namespace+"/nightly", victim.taken.root.UID)
			for key, value := range map[string]string{
				v1alpha1.AnnotationPlacedIn: second, v1alpha1.AnnotationAbandon: "true", v1alpha1.AttributeHandle: victim.taken.handle(),
				v1alpha1.AnnotationLeafSnapshotUID: string(victim.taken.leaf.UID), v1alpha1.AttributeLeafUID: string(victim.taken.leafHeld.UID),
				v1alpha1.AnnotationDeletionPolicy: "Delete", beingDeleted: "yes",
			} {
				vs.Annotations[key] = value
			}
		})
		Expect(own.leaf.Annotations).To(And(HaveKeyWithValue(v1alpha1.AnnotationRoot, a.namespace+"/snap"), HaveKeyWithValue(v1alpha1.AnnotationRootUID, string(own.root.UID)),
			Not(HaveKey(v1alpha1.AnnotationPlacedIn)), Not(HaveKey(v1alpha1.AttributeHandle)), Not(HaveKey(beingDeleted))))
		Expect(own.content.Annotations).To(HaveKeyWithValue(v1alpha1.AttributeHandle, own.handle()))
		Expect(own.live()).To(ConsistOf(own.handle()))
		Expect(own.handle()).NotTo(Equal(victim.taken.handle()))
		own.held(ctx, usable())
	}, SpecTimeout(attackTime))

	It("to get the victim's data: a VolumeSnapshot whose status refers to the victim's content", func(ctx SpecContext) {
		a := attacker(ctx)
		vs := a.volumeSnapshot("snap", "none")
		Expect(a.api.Create(ctx, vs)).To(Succeed())
		forge(ctx, a.api, vs, fmt.Sprintf(`{"boundVolumeSnapshotContentName":%q,"readyToUse":true,"error":null}`, victim.taken.content.Name))
		a.wants(ctx, a.restore("copy", "snap"))
		a.told(ctx, a.claim("copy"), v1alpha1.ReasonSourceNotReady, `snapshot "snap"`)
		a.neverMade(ctx, "copy")
		Expect(a.api.Delete(ctx, vs)).To(Succeed())
	}, SpecTimeout(attackTime))

	It("to copy the victim's data: a source in the victim's namespace, and the victim's VolumeSnapshotContent", func(ctx SpecContext) {
		a := attacker(ctx)
		crossing := a.claim("crossing")
		crossing.Spec.DataSourceRef = &corev1.TypedObjectReference{
			APIGroup: ptr.To(snapshotv1.GroupName), Kind: "VolumeSnapshot", Namespace: &victim.namespace, Name: victim.taken.root.Name,
		}
		// A host without the feature gate drops this reference, so the claim gets an empty volume.
		a.wants(ctx, crossing)
		a.wants(ctx, a.restore("like", victim.taken.root.Name))
		a.told(ctx, a.claim("like"), v1alpha1.ReasonSourceNotReady, "does not exist in this namespace")
		a.neverMade(ctx, "like")
		for _, m := range x.Members() {
			leaf, err := get[corev1.PersistentVolumeClaim](ctx, m, a.namespace, "crossing")
			if err == nil {
				Expect(leaf.Spec.DataSource).To(BeNil())
				Expect(leaf.Spec.DataSourceRef).To(BeNil())
			}
		}
		content := victim.taken.content.DeepCopy()
		Expect(a.api.Get(ctx, client.ObjectKeyFromObject(content), content)).To(forbidden)
		Expect(patched(ctx, a.api, content, `{"metadata":{"annotations":{"xylem.io/abandon":"true"}}}`)).To(forbidden)
		Expect(a.api.Delete(ctx, content)).To(forbidden)
		Expect(a.api.Delete(ctx, victim.taken.root)).To(forbidden)
	}, SpecTimeout(attackTime))
})

var _ = Describe("The operator of the host's backups tries", func() {
	It("to get another tenant's data: records, handles and statuses of contents", func(ctx SpecContext) {
		user, a := operator(ctx), attacker(ctx)
		a.runs(ctx, "data", nodeOne)
		a.fills("data", "the attacker's own")
		own := a.takes(ctx, "snap", "data")
		for _, key := range []string{v1alpha1.AttributeHandle, v1alpha1.AttributeLeafUID, v1alpha1.AnnotationLeafSnapshotUID, v1alpha1.AnnotationPlacedIn} {
			Expect(patched(ctx, user, own.content, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, victim.taken.content.Annotations[key]+"x"))).To(forbidden, key)
		}
		By("writing the victim's handle into the status")
		forge(ctx, user, own.content, fmt.Sprintf(`{"snapshotHandle":%q,"restoreSize":1}`, *victim.taken.content.Status.SnapshotHandle))
		own.held(ctx, HaveField("Status.SnapshotHandle", Equal(own.content.Status.SnapshotHandle)))
		a.wants(ctx, a.restore("copy", "snap"))
		a.running(ctx, "copy")
		a.contains("copy", "the attacker's own")
	}, SpecTimeout(attackTime))

	It("to destroy a snapshot that its user keeps: a content that is deleted and annotated as being deleted", func(ctx SpecContext) {
		user, a := operator(ctx), attacker(ctx)
		a.runs(ctx, "data", nodeOne)
		own := a.takes(ctx, "snap", "data")
		Expect(patched(ctx, user, own.content, `{"metadata":{"annotations":{"`+beingDeleted+`":"yes"}}}`)).To(Succeed())
		Expect(user.Delete(ctx, own.content)).To(Succeed())
		barrier(ctx)
		own.held(ctx, HaveField("DeletionTimestamp", Not(BeNil())))
		Expect(own.live()).To(ConsistOf(own.handle()))
		Expect(must[snapshotv1.VolumeSnapshotContent](ctx, x.Member(one), "", own.leafHeld.Name).Spec.DeletionPolicy).To(Equal(snapshotv1.VolumeSnapshotContentRetain))
		By("deleting the VolumeSnapshot as its user, which destroys the snapshot")
		Expect(a.api.Delete(ctx, own.root)).To(Succeed())
		Eventually(ctx, own.live).Should(BeEmpty())
	}, SpecTimeout(attackTime))
})

var _ = Describe("A token stolen from a member", func() {
	It("cannot destroy or read foreign snapshots, or forge a driver's response", func(ctx SpecContext) {
		api, m := thief(ctx), x.Member(one)
		theirs := &snapshotv1.VolumeSnapshotContent{
			ObjectMeta: metav1.ObjectMeta{Name: "strangers-snapshot"},
			Spec: snapshotv1.VolumeSnapshotContentSpec{
				Driver: "other.example.com", DeletionPolicy: snapshotv1.VolumeSnapshotContentRetain,
				Source: snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: ptr.To("precious")}, VolumeSnapshotRef: corev1.ObjectReference{Namespace: "default", Name: "precious"},
			},
		}
		Expect(m.API.Create(ctx, theirs)).To(Succeed())
		removed(m.API, theirs)
		precious := harness.VolumeSnapshot("default", "precious", "", "")
		precious.Spec = snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &theirs.Name}}
		Expect(m.API.Create(ctx, precious)).To(Succeed())
		removed(m.API, precious)

		stamps := fmt.Sprintf(`"metadata":{"labels":{"xylem.io/host":%q,"app.kubernetes.io/managed-by":"xylem"},"annotations":{"xylem.io/root":"default/precious","xylem.io/root-uid":"u","xylem.io/deletion-policy":%%q}}`, hostID(ctx))
		for what, body := range map[string]string{
			"destroy it":                          `{"spec":{"deletionPolicy":"Delete"}}`,
			"stamp it with its own policy":        `{` + fmt.Sprintf(stamps, "Retain") + `}`,
			"stamp it with policy Delete":         `{` + fmt.Sprintf(stamps, "Delete") + `}`,
			"stamp and destroy it":                `{` + fmt.Sprintf(stamps, "Delete") + `,"spec":{"deletionPolicy":"Delete"}}`,
			"announce its deletion to the driver": `{"metadata":{"annotations":{"` + beingDeleted + `":"yes"}}}`,
		} {
			Expect(patched(ctx, api, theirs, body)).To(forbidden, what)
		}
		Expect(api.Delete(ctx, theirs)).To(forbidden)
		Expect(api.Delete(ctx, precious)).To(forbidden)

		By("importing the snapshot into one of Xylem's namespaces, where a claim could be restored from it")
		imported := victim.volumeSnapshot("imported", "")
		stamp(ctx, imported, victim.namespace+"/imported", "u")
		imported.Spec = snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &theirs.Name}}
		Expect(api.Create(ctx, imported)).To(forbidden)
		content := theirs.DeepCopy()
		content.ObjectMeta = metav1.ObjectMeta{Name: "imported"}
		stamp(ctx, content, victim.namespace+"/imported", "u")
		Expect(api.Create(ctx, content)).To(forbidden)
		By("impersonating the driver")
		for _, obj := range []client.Object{victim.taken.leafHeld, victim.taken.leaf} {
			Expect(api.Status().Patch(ctx, obj.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(`{"status":{"readyToUse":false}}`)))).To(forbidden)
		}
	}, SpecTimeout(attackTime))
})
