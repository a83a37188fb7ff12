package manifests_test

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

const (
	beingCreated = "snapshot.storage.kubernetes.io/volumesnapshot-being-created"
	contentBound = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
)

// snapshotContent returns a VolumeSnapshotContent of a driver, as a snapshot-controller creates it.
func snapshotContent(driver string, change ...func(client.Object)) client.Object {
	return built(&snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: unique("snapcontent")},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			Driver: driver, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete, VolumeSnapshotClassName: ptr.To("some-class"),
			Source:            snapshotv1.VolumeSnapshotContentSource{VolumeHandle: ptr.To("some-volume")},
			VolumeSnapshotRef: corev1.ObjectReference{Namespace: "team", Name: "snap", UID: "some-uid"},
		},
	}, change...)
}

func leafContent(change ...func(client.Object)) client.Object {
	return snapshotContent("ebs.csi.aws.com", change...)
}

func hostContent(change ...func(client.Object)) client.Object {
	return snapshotContent(v1alpha1.ProvisionerName, change...)
}

func keptBy(policy snapshotv1.DeletionPolicy) func(client.Object) {
	return func(o client.Object) { o.(*snapshotv1.VolumeSnapshotContent).Spec.DeletionPolicy = policy }
}

// of moves a content's VolumeSnapshot to a namespace.
func of(namespace string) func(client.Object) {
	return func(o client.Object) {
		o.(*snapshotv1.VolumeSnapshotContent).Spec.VolumeSnapshotRef.Namespace = namespace
	}
}

// snapshotStamped sets a host's stamp on a leaf content, and records its original deletion policy.
func snapshotStamped(policy snapshotv1.DeletionPolicy) func(client.Object) {
	return func(o client.Object) {
		stamped(o)
		annotate(v1alpha1.AnnotationRoot, "team/snap")(o)
		annotate(v1alpha1.AnnotationDeletionPolicy, string(policy))(o)
	}
}

func all(changes ...func(client.Object)) func(client.Object) {
	return func(o client.Object) {
		for _, change := range changes {
			change(o)
		}
	}
}

func volumeSnapshot(namespace string, change ...func(client.Object)) client.Object {
	return built(&snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: unique("snap")},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To("data")}},
	}, change...)
}

var _ = Describe("The policies on snapshots", Ordered, func() {
	const (
		may, mayNot  = true, false
		whole, state = false, true
		keep         = snapshotv1.VolumeSnapshotContentRetain
		destroy      = snapshotv1.VolumeSnapshotContentDelete
	)
	var manager, tenant, memberAdmin, account client.Client
	var handed, foreign string

	entry := func(what string, args ...any) TableEntry {
		return Entry(what, append([]any{SpecTimeout(settle)}, args...)...)
	}
	judge := func(err error, allowed bool, denied string) {
		GinkgoHelper()
		if allowed {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(MatchError(ContainSubstring(denied)))
	}
	made := func(ctx context.Context, c client.Client, o client.Object) client.Object {
		GinkgoHelper()
		Expect(c.Create(ctx, o)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(changed(ctx, c, false, o, func(o client.Object) { o.SetFinalizers(nil) }))).To(Succeed())
			Expect(client.IgnoreNotFound(c.Delete(ctx, o))).To(Succeed())
		}, NodeTimeout(settle))
		return o
	}

	BeforeAll(func(ctx SpecContext) {
		Expect(fleet.Host.InstallSnapshotCRDs(ctx)).To(Succeed())
		Expect(fleet.Member("member").InstallSnapshotCRDs(ctx)).To(Succeed())
		manager, tenant = as(managerAccount), as("tenant")
		memberAdmin, account = inMember(""), inMember(memberAccount, "system:masters")
		handed, foreign = unique("handed"), unique("foreign")
		for name, change := range map[string]func(client.Object){handed: label(v1alpha1.LabelHost, someHost), foreign: unstamped} {
			ns := built(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, change)
			Expect(memberAdmin.Create(ctx, ns)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, ns)).To(Succeed()) }, NodeTimeout(settle))
		}
		By("waiting until the policies cover the snapshot kinds and are in force")
		probe := volumeSnapshot("default")
		Eventually(ctx, func(ctx context.Context) error {
			return manager.Create(ctx, probe.DeepCopyObject().(client.Object), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("Xylem's account may")))
		Eventually(ctx, func(ctx context.Context) error {
			return account.Create(ctx, volumeSnapshot(foreign), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("Xylem's account")))
	}, NodeTimeout(2*settle))

	DescribeTable("limit what the manager may change in the host's VolumeSnapshotContents", func(ctx SpecContext, allowed, status bool, object func(...func(client.Object)) client.Object, change func(client.Object)) {
		judge(changed(ctx, manager, status, made(ctx, admin, object()), change), allowed, "Xylem's account may")
	},
		entry("the annotations that a csi-snapshotter sets", may, whole, hostContent, all(annotate(v1alpha1.AnnotationPlacedIn, "member"), annotate(beingCreated, "yes"))),
		entry("another annotation", mayNot, whole, hostContent, annotate("example.com/a", "b")),
		entry("a label", mayNot, whole, hostContent, label("example.com/a", "b")),
		entry("the policy, from Delete to Retain", may, whole, hostContent, keptBy(keep)),
		entry("the policy, from Retain to Delete", mayNot, whole, func(...func(client.Object)) client.Object { return hostContent(keptBy(keep)) }, keptBy(destroy)),
		entry("the status", may, state, hostContent, func(o client.Object) {
			o.(*snapshotv1.VolumeSnapshotContent).Status = &snapshotv1.VolumeSnapshotContentStatus{ReadyToUse: ptr.To(true)}
		}),
		entry("the driver's finalizer of an existing content", mayNot, whole, func(...func(client.Object)) client.Object {
			return hostContent(func(o client.Object) { o.SetFinalizers([]string{contentBound}) })
		}, func(o client.Object) { o.SetFinalizers(nil) }),
		entry("a content of another driver", mayNot, whole, leafContent, annotate(v1alpha1.AnnotationPlacedIn, "member")),
		entry("the status of a content of another driver", mayNot, state, leafContent, func(o client.Object) {
			o.(*snapshotv1.VolumeSnapshotContent).Status = &snapshotv1.VolumeSnapshotContentStatus{ReadyToUse: ptr.To(true)}
		}),
	)

	It("do not allow the manager to create or delete snapshots in the host", func(ctx SpecContext) {
		vs := made(ctx, admin, volumeSnapshot("default"))
		for _, err := range []error{
			manager.Create(ctx, volumeSnapshot("default"), client.DryRunAll), manager.Create(ctx, hostContent(), client.DryRunAll),
			manager.Delete(ctx, vs, client.DryRunAll), manager.Delete(ctx, made(ctx, admin, hostContent()), client.DryRunAll),
			changed(ctx, manager, false, vs, label("example.com/a", "b")),
		} {
			judge(err, mayNot, "Xylem's account may")
		}
	}, SpecTimeout(settle))

	It("allow only Xylem to record the location of a snapshot, and an admin to abandon one", func(ctx SpecContext) {
		content := made(ctx, admin, hostContent())
		judge(changed(ctx, tenant, false, content, annotate(v1alpha1.AnnotationPlacedIn, "member")), mayNot, "only Xylem may write")
		judge(changed(ctx, tenant, false, content, annotate(v1alpha1.AttributeHandle, "stolen")), mayNot, "only Xylem may write")
		judge(changed(ctx, tenant, false, content, annotate(v1alpha1.AnnotationAbandon, "true")), may, "")
	}, SpecTimeout(settle))

	DescribeTable("limit which VolumeSnapshots Xylem's account in a member may create", func(ctx SpecContext, allowed bool, change func(client.Object), in *string) {
		judge(account.Create(ctx, volumeSnapshot(*in, change), client.DryRunAll), allowed, "Xylem's account")
	},
		entry("a stamped snapshot of a claim", may, stamped, &handed),
		entry("a snapshot without a stamp", mayNot, unstamped, &handed),
		entry("a snapshot in a namespace of another host", mayNot, stamped, &foreign),
		entry("a snapshot of an existing content", mayNot, all(stamped, func(o client.Object) {
			o.(*snapshotv1.VolumeSnapshot).Spec.Source = snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: ptr.To("theirs")}
		}), &handed),
	)

	DescribeTable("limit what Xylem's account in a member may change in VolumeSnapshotContents", func(ctx SpecContext, allowed bool, before, change func(client.Object)) {
		judge(changed(ctx, account, false, made(ctx, memberAdmin, leafContent(before)), change), allowed, "Xylem's account")
	},
		entry("the stamp, and policy Retain", may, unstamped, all(snapshotStamped(destroy), keptBy(keep))),
		entry("the stamp of another snapshot", mayNot, unstamped, all(snapshotStamped(destroy), annotate(v1alpha1.AnnotationRoot, "team/other"))),
		entry("the stamp of a snapshot in a system namespace", mayNot, of("kube-system"), all(snapshotStamped(destroy), annotate(v1alpha1.AnnotationRoot, "kube-system/snap"), keptBy(keep))),
		entry("the stamp of a snapshot in Xylem's own namespace", mayNot, of(v1alpha1.DefaultNamespace), all(snapshotStamped(destroy), annotate(v1alpha1.AnnotationRoot, v1alpha1.DefaultNamespace+"/snap"), keptBy(keep))),
		entry("the stamp without the recorded policy", mayNot, unstamped, all(snapshotStamped(destroy), annotate(v1alpha1.AnnotationDeletionPolicy, ""))),
		entry("the stamp with a wrong recorded policy", mayNot, keptBy(keep), snapshotStamped(destroy)),
		entry("the policy without a stamp", mayNot, unstamped, keptBy(keep)),
		entry("the stamp on an imported content", mayNot, func(o client.Object) {
			o.(*snapshotv1.VolumeSnapshotContent).Spec.Source = snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: ptr.To("theirs")}
		}, snapshotStamped(destroy)),
		entry("another host's stamp", mayNot, all(snapshotStamped(destroy), label(v1alpha1.LabelHost, "another")), label(v1alpha1.LabelHost, someHost)),
		entry("the recorded policy", mayNot, all(snapshotStamped(keep), keptBy(keep)), annotate(v1alpha1.AnnotationDeletionPolicy, string(destroy))),
		entry("the policy to Delete, if the original policy was Delete", may, all(snapshotStamped(destroy), keptBy(keep)), keptBy(destroy)),
		entry("the policy to Delete, if the original policy was Retain", mayNot, all(snapshotStamped(keep), keptBy(keep)), keptBy(destroy)),
		entry("the policy to Delete, without a stamp", mayNot, keptBy(keep), keptBy(destroy)),
		entry("the finalizers", mayNot, all(snapshotStamped(destroy), keptBy(keep), func(o client.Object) { o.SetFinalizers([]string{contentBound}) }),
			func(o client.Object) { o.SetFinalizers(nil) }),
		entry("the annotation that announces the deletion", mayNot, snapshotStamped(destroy), annotate("snapshot.storage.kubernetes.io/volumesnapshot-being-deleted", "yes")),
		entry("the reference to the VolumeSnapshot", mayNot, snapshotStamped(destroy), of("another")),
	)

	DescribeTable("limit which VolumeSnapshotContents Xylem's account in a member may delete", func(ctx SpecContext, allowed bool, before func(client.Object)) {
		judge(account.Delete(ctx, made(ctx, memberAdmin, leafContent(before)), client.DryRunAll), allowed, "Xylem's account")
	},
		entry("a content that may be destroyed", may, snapshotStamped(destroy)),
		entry("a content that Xylem retains", mayNot, all(snapshotStamped(destroy), keptBy(keep))),
		entry("a content that the member retains", mayNot, all(snapshotStamped(keep), keptBy(keep))),
		entry("a content whose policy was changed to Delete", mayNot, snapshotStamped(keep)),
		entry("a content without a stamp", mayNot, unstamped),
	)

	It("allow Xylem's account in a member to delete only its host's VolumeSnapshots", func(ctx SpecContext) {
		judge(account.Delete(ctx, made(ctx, memberAdmin, volumeSnapshot(foreign)), client.DryRunAll), mayNot, "Xylem's account")
		judge(account.Delete(ctx, made(ctx, memberAdmin, volumeSnapshot(handed, stamped)), client.DryRunAll), may, "")
	}, SpecTimeout(settle))
})
