package controlplane_test

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
)

// snapshotStory is a story in a cluster with VolumeSnapshots.
type snapshotStory struct {
	story
	client snapshots.Interface
}

func withSnapshots(ctx context.Context, c *controlplane.Cluster) snapshotStory {
	client, err := c.SnapshotClient()
	Expect(err).NotTo(HaveOccurred())
	return snapshotStory{in(ctx, c), client}
}

// disk creates a claim that is bound immediately, writes to its disk, and returns the volume's ID.
func (s snapshotStory) disk(ctx context.Context, claim, data string) string {
	s.claim(ctx, claim, controlplane.ClassFast, "1Gi")
	id := s.volumeOf(ctx, claim)
	Expect(s.WriteData(id, data)).To(Succeed())
	return id
}

func (s snapshotStory) volumeOf(ctx context.Context, claim string) string {
	s.bound(ctx, claim)
	ids := s.book(claim).LiveIDs()
	Expect(ids).To(HaveLen(1))
	return ids[0]
}

func (s snapshotStory) take(ctx context.Context, name, claim, class string) {
	_, err := s.client.SnapshotV1().VolumeSnapshots(s.namespace).Create(ctx, &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: snapshotv1.VolumeSnapshotSpec{
			VolumeSnapshotClassName: &class,
			Source:                  snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (s snapshotStory) get(name string) func(context.Context) (*snapshotv1.VolumeSnapshot, error) {
	return func(ctx context.Context) (*snapshotv1.VolumeSnapshot, error) {
		return s.client.SnapshotV1().VolumeSnapshots(s.namespace).Get(ctx, name, metav1.GetOptions{})
	}
}

func haveReady(want bool) OmegaMatcher {
	return HaveField("Status", And(Not(BeNil()), HaveField("ReadyToUse", HaveValue(Equal(want)))))
}

func (s snapshotStory) ready(ctx context.Context, name string) *snapshotv1.VolumeSnapshot {
	var got *snapshotv1.VolumeSnapshot
	Eventually(ctx, func(ctx context.Context) (_ *snapshotv1.VolumeSnapshot, err error) {
		got, err = s.get(name)(ctx)
		return got, err
	}).Should(haveReady(true))
	return got
}

func (s snapshotStory) remove(ctx context.Context, name string) {
	Expect(s.client.SnapshotV1().VolumeSnapshots(s.namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	Eventually(ctx, func(ctx context.Context) bool {
		_, err := s.get(name)(ctx)
		return apierrors.IsNotFound(err)
	}).Should(BeTrue(), "snapshot %s still exists", name)
}

// taken returns the live snapshots of a claim.
func (s snapshotStory) taken(claim string) func() []string {
	return func() []string { return s.book(claim).LiveSnapshotIDs() }
}

func from(kind, name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: kind, Name: name}
		if kind == "VolumeSnapshot" {
			c.Spec.DataSource.APIGroup = ptr.To(snapshotv1.GroupName)
		}
	}
}

var _ = Describe("A cluster with snapshots and attachment", Ordered, func() {
	var cluster *controlplane.Cluster

	BeforeAll(func(ctx SpecContext) {
		var err error
		cluster, err = fleet.AddMember(ctx, controlplane.ClusterOptions{Name: "snapshots", Snapshots: true, Attach: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(cluster.SetFaults()).To(Succeed()) })
	})

	It("takes a snapshot, restores it, and clones a claim", func(ctx SpecContext) {
		s := withSnapshots(ctx, cluster)
		source := s.disk(ctx, "data", "monday")
		s.take(ctx, "nightly", "data", controlplane.ClassSnapshots)
		snapshot := s.ready(ctx, "nightly")
		Expect(snapshot.Status.RestoreSize.String()).To(Equal("1Gi"))
		entry := s.book("data").LiveSnapshots()[s.taken("data")()[0]]
		Expect(entry.VolumeSnapshot).To(Equal(s.namespace + "/nightly"))
		Expect(entry.ContentName).To(Equal(*snapshot.Status.BoundVolumeSnapshotContentName))
		Expect(s.WriteData(source, "tuesday")).To(Succeed())

		s.claim(ctx, "restored", controlplane.ClassFast, "1Gi", from("VolumeSnapshot", "nightly"))
		s.claim(ctx, "clone", controlplane.ClassFast, "2Gi", from("PersistentVolumeClaim", "data"))
		Expect(s.ReadData(s.volumeOf(ctx, "restored"))).To(Equal("monday"))
		Expect(s.ReadData(s.volumeOf(ctx, "clone"))).To(Equal("tuesday"))
		clone := s.book("clone").Live()[s.volumeOf(ctx, "clone")]
		Expect(clone.Source).To(Equal(source))

		s.remove(ctx, "nightly")
		Eventually(s.taken("data")).Should(BeEmpty())
		Expect(s.ReadData(s.volumeOf(ctx, "restored"))).To(Equal("monday"))
	})

	It("keeps a snapshot if its class has policy Retain, and binds it to another VolumeSnapshot", func(ctx SpecContext) {
		s := withSnapshots(ctx, cluster)
		s.disk(ctx, "data", "monday")
		s.take(ctx, "kept", "data", controlplane.ClassRetainedSnapshots)
		s.ready(ctx, "kept")
		s.remove(ctx, "kept")
		Expect(s.taken("data")()).To(HaveLen(1))

		content, err := s.client.SnapshotV1().VolumeSnapshotContents().Create(ctx, &snapshotv1.VolumeSnapshotContent{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "imported-"},
			Spec: snapshotv1.VolumeSnapshotContentSpec{
				Driver: controlplane.DefaultDriverName, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
				Source:            snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: ptr.To(s.taken("data")()[0])},
				VolumeSnapshotRef: corev1.ObjectReference{Namespace: s.namespace, Name: "imported"},
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = s.client.SnapshotV1().VolumeSnapshots(s.namespace).Create(ctx, &snapshotv1.VolumeSnapshot{
			ObjectMeta: metav1.ObjectMeta{Name: "imported"},
			Spec: snapshotv1.VolumeSnapshotSpec{
				Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &content.Name},
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		s.ready(ctx, "imported")
		s.remove(ctx, "imported")
		Eventually(s.taken("data")).Should(BeEmpty())
	})

	It("reports why a snapshot fails, and that it is not ready", func(ctx SpecContext) {
		s := withSnapshots(ctx, cluster)
		s.disk(ctx, "data", "monday")
		of := s.namespace + "/data"
		Expect(s.SetFaults(csidriver.Fault{
			Method: ledger.CreateSnapshot, Claim: of, Code: codes.ResourceExhausted, Message: "the array is full",
		})).To(Succeed())
		s.take(ctx, "nightly", "data", controlplane.ClassSnapshots)
		Eventually(ctx, s.get("nightly")).Should(HaveField("Status", And(Not(BeNil()),
			HaveField("Error", And(Not(BeNil()), HaveField("Message", HaveValue(ContainSubstring("the array is full"))))))))
		Expect(s.taken("data")()).To(BeEmpty())

		Expect(s.SetFaults(csidriver.Fault{Method: csidriver.MethodUpload, Claim: of})).To(Succeed())
		Eventually(ctx, s.get("nightly")).Should(And(haveReady(false), HaveField("Status.CreationTime", Not(BeNil()))))
		Expect(s.taken("data")()).To(HaveLen(1))

		Expect(s.SetFaults()).To(Succeed())
		s.ready(ctx, "nightly")
		Expect(s.book("data").Count(ledger.CreateSnapshot)).To(Equal(1))
	})

	It("attaches the volume of a Pod to its node, reports errors, and detaches it", func(ctx SpecContext) {
		s := withSnapshots(ctx, cluster)
		volume := s.disk(ctx, "data", "monday")
		pv := s.bound(ctx, "data").Spec.VolumeName
		Expect(s.SetFaults(csidriver.Fault{
			Method: ledger.PublishVolume, Claim: s.namespace + "/data", Code: codes.Internal, Message: "the cable is loose",
		})).To(Succeed())
		s.pod(ctx, "pod", "data")
		node := s.phase(ctx, "pod", corev1.PodRunning).Spec.NodeName

		attachment := func(ctx context.Context) (*storagev1.VolumeAttachment, error) {
			list, err := s.Client().StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			for _, a := range list.Items {
				if ptr.Deref(a.Spec.Source.PersistentVolumeName, "") == pv {
					return &a, nil
				}
			}
			return nil, nil
		}
		Eventually(ctx, attachment).Should(And(Not(BeNil()), HaveField("Status.AttachError",
			And(Not(BeNil()), HaveField("Message", ContainSubstring("the cable is loose"))))))

		Expect(s.SetFaults()).To(Succeed())
		Eventually(ctx, attachment).Should(And(Not(BeNil()), HaveField("Status.Attached", BeTrue()), HaveField("Spec.NodeName", node)))
		attached := func() []string { return s.book("data").Attached()[volume] }
		Expect(attached()).To(Equal([]string{node}))

		s.deletePod(ctx, "pod")
		s.gone(ctx, "pod")
		Eventually(attached).Should(BeEmpty())
		Eventually(ctx, attachment).Should(BeNil())
		s.deleteClaim(ctx, "data")
		Eventually(func() []string { return s.book("data").LiveIDs() }).Should(BeEmpty())
	})

	It("serves VolumeSnapshots in a host without storage", func(ctx SpecContext) {
		s := withSnapshots(ctx, fleet.Host)
		Expect(fleet.Host.Process(controlplane.Snapshotter)).To(BeNil())
		_, err := s.client.SnapshotV1().VolumeSnapshotClasses().Create(ctx, &snapshotv1.VolumeSnapshotClass{
			ObjectMeta: metav1.ObjectMeta{Name: "somebody"}, Driver: "somebody.example.com",
			DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		s.claim(ctx, "data", "none", "1Gi")
		s.take(ctx, "early", "data", "somebody")
		Eventually(ctx, s.get("early")).Should(HaveField("Status", And(Not(BeNil()),
			HaveField("Error", And(Not(BeNil()), HaveField("Message", HaveValue(ContainSubstring("not yet bound"))))))))
	})

	It("runs processes that a cluster without these options lacks", func() {
		for _, name := range []controlplane.ProcessName{
			controlplane.Attacher, controlplane.Snapshotter, controlplane.SnapshotController,
		} {
			Expect(member().Process(name)).To(BeNil())
			Expect(cluster.Process(name)).NotTo(BeNil())
		}
	})
})
