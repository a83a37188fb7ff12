package snapshots_test

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// budgeted is the number of objects for which requests are compared with a budget.
const budgeted = 8

// probed waits until each member has been probed again. By then, earlier events are processed.
func probed(ctx context.Context) {
	GinkgoHelper()
	host, err := x.Fleet.Host.ID(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, m := range x.Members() {
		var lease coordinationv1.Lease
		key := client.ObjectKey{Namespace: v1alpha1.DefaultNamespace, Name: host}
		Expect(m.API.Get(ctx, key, &lease)).To(Succeed())
		before := lease.ResourceVersion
		Eventually(ctx, func(ctx context.Context) (string, error) {
			err := m.API.Get(ctx, key, &lease)
			return lease.ResourceVersion, err
		}).ShouldNot(Equal(before))
	}
}

// spend performs the steps of an operation on several objects, which prepare creates, and compares
// Xylem's requests for them with a budget. If the manager loses its Link to the member meanwhile, because
// the member is too slow, its controllers start again and make more requests, so spend repeats this with
// other objects.
func (s *story) spend(ctx context.Context, what, member string, allowed harness.Budget, prepare func(i int), steps ...func(i int)) {
	GinkgoHelper()
	for attempt := range 3 {
		first := attempt * budgeted
		for i := range budgeted {
			prepare(first + i)
		}
		probed(ctx)
		account, err := x.Account(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, step := range steps {
			for i := range budgeted {
				step(first + i)
			}
		}
		probed(ctx)
		spent, err := x.Spent(ctx, account, s.namespace, x.Member(member))
		Expect(err).NotTo(HaveOccurred())
		typical, err := x.Typical(ctx, account, s.namespace, x.Member(member), budgeted)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry(fmt.Sprintf("%s, %d times", what, budgeted), fmt.Sprintf("%v; for most of them at least: %v", spent, typical))
		if !harness.Restarted(spent) {
			Expect(allowed.Exceeded(spent, typical, budgeted)).To(BeEmpty(), "%s: %v", what, spent)
			return
		}
	}
	Fail("the manager lost its Link to member " + member + " each time")
}

var _ = Describe("The cost", func() {
	It("of a snapshot is within its budget of requests", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		name := func(i int) string { return fmt.Sprintf("snap-%d", i) }
		contents := map[int]string{}
		taken := func(i int) {
			contents[i] = contentName(until[snapshotv1.VolumeSnapshot](ctx, s, x.Host, name(i), isReady(true)))
		}
		s.spend(ctx, "a snapshot, from creation to ready", one, harness.Budget{
			// If the member's snapshot-controller or sidecar reports an error before it retries, Xylem
			// mirrors the error too.
			"host patch volumesnapshotcontents": 3, "host patch volumesnapshotcontents/status": 3,
			"member create volumesnapshots": 1, "member patch volumesnapshotcontents": 1,
			// The snapshot-controllers and the sidecar write to the contents at the same time.
			// After such a write, the proof for the leaf's creation reads the content again.
			"host conflict volumesnapshotcontents": 1, "member conflict volumesnapshotcontents": 3, "host list volumesnapshotcontents": 2,
		}, func(int) {}, func(i int) { s.take(ctx, name(i), "data", deletes) }, taken)
		s.spend(ctx, "a snapshot, from its deletion until it is destroyed", one, harness.Budget{
			"host patch volumesnapshotcontents": 2, "member patch volumesnapshotcontents": 1, "member delete volumesnapshots": 1,
			"host list volumesnapshots": 2, "host list volumesnapshotcontents": 2, "member list volumesnapshots": 1, "member list volumesnapshotcontents": 2,
			"host list persistentvolumeclaims": 2, // nobody may need the data
		}, func(i int) {
			if contents[i] == "" {
				s.take(ctx, name(i), "data", deletes)
				taken(i)
			}
		}, func(i int) { s.remove(ctx, x.Host, &snapshotv1.VolumeSnapshot{}, name(i)) }, func(i int) {
			gone[snapshotv1.VolumeSnapshot](ctx, s, x.Host, name(i))
			gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Host, contents[i])
			gone[snapshotv1.VolumeSnapshotContent](ctx, s, x.Member(one), contents[i])
			delete(contents, i)
		})
		Expect(s.taken(one, "data")).To(HaveLen(len(contents))) // none, unless the creation was repeated
	}, SpecTimeout(storyTime))

	It("of a restore is within its budget of requests", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeTwo)
		s.write(two, "data", s.goldenData())
		// Each claim has its own snapshot. The member's provisioner writes to the snapshot that it
		// restores, so simultaneous restores of one snapshot would conflict, and each conflict
		// would emit an event.
		name, golden := func(i int) string { return fmt.Sprintf("copy-%d", i) }, func(i int) string { return fmt.Sprintf("golden-%d", i) }
		s.spend(ctx, "a restore and its Pod, from apply to Running", two, harness.Budget{
			"host patch persistentvolumeclaims": 3, "host create persistentvolumes": 1, "host create events": 1, "host patch pods/status": 2,
			"host get persistentvolumeclaims": 1, "host get pods": 1, "host list volumesnapshots": 1, "host list volumesnapshotcontents": 1,
			"member create persistentvolumeclaims": 2, "member patch persistentvolumes": 1, "member create pods": 1,
			"member list volumesnapshots": 1, "member list volumesnapshotcontents": 1,
		}, func(i int) { s.ready(ctx, golden(i), "data", deletes) }, func(i int) {
			s.restore(ctx, name(i), golden(i))
		}, func(i int) {
			// If the scheduler and Xylem write to a claim at the same time, the scheduler may lose its nomination
			// of the Pod's node, and then waits for ten minutes.
			until[corev1.PersistentVolumeClaim](ctx, s, x.Host, name(i), HaveField("Annotations", HaveKey(v1alpha1.AnnotationSource)))
			s.uses(ctx, name(i), nodeTwo, name(i))
		}, func(i int) {
			s.running(ctx, name(i), nodeTwo)
			s.restored(ctx, name(i))
			until[corev1.PersistentVolumeClaim](ctx, s, x.Host, name(i), HaveField("Annotations", Not(HaveKey(v1alpha1.AnnotationSteeredTo))))
		})
	}, SpecTimeout(storyTime))
})

var _ = Describe("Metrics", func() {
	It("count a member's snapshots by state, including orphans", func(ctx SpecContext) {
		s := begin(ctx)
		s.data(ctx, "data", nodeOne)
		s.ready(ctx, "snap", "data", deletes)
		for _, series := range []string{
			`xylem_snapshots{cluster="cluster38",state="ready"} [1-9]`, `xylem_snapshots{cluster="cluster38",state="pending"} \d`,
			`xylem_snapshots{cluster="cluster38",state="deleting"} \d`, `xylem_orphaned_snapshots{cluster="cluster38"} \d`,
		} {
			Eventually(ctx, func(ctx context.Context) (string, error) {
				return harness.Served(ctx, x.Manager.MetricsURL())
			}).Should(MatchRegexp("(?m)^" + series))
		}
	}, SpecTimeout(storyTime))
})
