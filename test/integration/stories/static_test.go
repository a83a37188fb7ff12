package stories_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	accounts "github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// disk is an existing volume in a member, with a capacity of 1Gi.
type disk struct {
	member *harness.Cluster
	// name and uid identify the volume's PV. namespace is the namespace of its earlier claim.
	name, namespace string
	uid             types.UID
}

// disk creates a volume as the member's admin would, with a foreign claim that is then deleted.
func (s *story) disk(ctx context.Context, member string, policy corev1.PersistentVolumeReclaimPolicy) *disk {
	GinkgoHelper()
	m := x.Member(member)
	d := &disk{member: m, namespace: "own-" + s.namespace}
	Expect(client.IgnoreAlreadyExists(m.CreateNamespace(ctx, d.namespace))).To(Succeed())
	claim := harness.Claim(d.namespace, "own", classRetained)
	claim.GenerateName, claim.Name = "own-", ""
	Expect(m.API.Create(ctx, claim)).To(Succeed())
	pod := harness.Pod(d.namespace, claim.Name, claim.Name)
	Expect(m.API.Create(ctx, pod)).To(Succeed())
	own := &story{namespace: d.namespace}
	d.name = until[corev1.PersistentVolumeClaim](ctx, own, m, claim.Name, phase(corev1.ClaimBound)).Spec.VolumeName
	Expect(m.API.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
	Expect(m.API.Delete(ctx, claim)).To(Succeed())
	until[corev1.PersistentVolume](ctx, own, m, d.name, phase(corev1.VolumeReleased))
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: d.name}}
	patch(ctx, m, pv, `{"spec":{"claimRef":null}}`)
	d.uid = until[corev1.PersistentVolume](ctx, own, m, d.name, phase(corev1.VolumeAvailable)).UID
	// Do not set the policy earlier, because the provisioner would delete a Released volume.
	patch(ctx, m, pv, fmt.Sprintf(`{"spec":{"persistentVolumeReclaimPolicy":%q}}`, policy))
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // A cleanup has a context of its own.
		Expect(client.IgnoreNotFound(m.API.Delete(ctx, pv))).To(Succeed())
		Expect(client.IgnoreNotFound(m.API.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.namespace}}))).To(Succeed())
	}, NodeTimeout(settle))
	return d
}

// consent labels the volume for the host, as the member's admin does to allow its adoption.
func (d *disk) consent(ctx context.Context) {
	GinkgoHelper()
	patch(ctx, d.member, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: d.name}}, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelHost, idOf(ctx, x.Host)))
}

// now reads the member's PV.
func (d *disk) now(ctx context.Context) *corev1.PersistentVolume {
	GinkgoHelper()
	var pv corev1.PersistentVolume
	Expect(d.member.API.Get(ctx, client.ObjectKey{Name: d.name}, &pv)).To(Succeed())
	return &pv
}

// asks creates a host PV that requests the disk, as the host's admin would.
func (d *disk) asks(ctx context.Context, name string, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	GinkgoHelper()
	id := idOf(ctx, d.member)
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: classRetained,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: v1alpha1.ProvisionerName, VolumeHandle: id + "/" + d.name,
			}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.LabelClusterID, Operator: corev1.NodeSelectorOpIn, Values: []string{id}}},
			}}}},
		},
	}
	for _, f := range change {
		f(pv)
	}
	Expect(x.Host.API.Create(ctx, pv)).To(Succeed())
	DeferCleanup(deleted(x.Host, pv.DeepCopy()), NodeTimeout(settle)) //nolint:contextcheck // A cleanup has a context of its own.
	return pv
}

// taken waits until a host PV represents the disk, and the disk has the stamp and policy
// Retain.
func (s *story) taken(ctx context.Context, d *disk, name string) {
	GinkgoHelper()
	until[corev1.PersistentVolume](ctx, s, x.Host, name, And(
		HaveField("Labels", HaveKeyWithValue(v1alpha1.LabelClusterID, idOf(ctx, d.member))),
		HaveField("Annotations", HaveKeyWithValue(v1alpha1.AttributeLeafUID, string(d.uid))),
		HaveField("Finalizers", ContainElement(v1alpha1.FinalizerLeafVolume))))
	until[corev1.PersistentVolume](ctx, s, d.member, d.name, And(
		HaveField("Labels", HaveKeyWithValue(v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)),
		HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain),
		phase(corev1.VolumeReleased)))
}

// uses waits until a claim's Pod runs with the disk, and verifies that no other disk was
// provisioned.
func (s *story) uses(ctx context.Context, d *disk, claim, pod, volume string) {
	GinkgoHelper()
	s.running(ctx, pod, nodeOne)
	Expect(s.bound(ctx, claim).Spec.VolumeName).To(Equal(volume))
	until[corev1.PersistentVolumeClaim](ctx, s, d.member, claim, And(phase(corev1.ClaimBound), HaveField("Spec.VolumeName", d.name)))
	var events corev1.EventList
	Expect(x.Host.API.List(ctx, &events, client.InNamespace(s.namespace))).To(Succeed())
	Expect(events.Items).NotTo(ContainElement(And(HaveField("Reason", "FailedBinding"), HaveField("Message", HavePrefix("member ")))), "Xylem must not mirror events that occurred before it set the volume's claimRef")
	pv := d.now(ctx)
	Expect(pv.UID).To(Equal(d.uid))
	Expect(pv.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
	Expect(s.book(one, claim).Calls(ledger.CreateVolume)).To(BeZero())
}

// untouched verifies that the disk is unchanged and has no stamp.
func (d *disk) untouched(ctx context.Context) {
	GinkgoHelper()
	pv := d.now(ctx)
	Expect(pv.UID).To(Equal(d.uid))
	Expect(pv.DeletionTimestamp).To(BeNil())
	Expect(pv.Labels).NotTo(HaveKey(v1alpha1.LabelManagedBy))
	Expect(ours(pv.Annotations)).To(BeEmpty())
}

// named makes a claim request a volume by name.
func named(volume string) claimOption {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }
}

var _ = Describe("An existing volume of a member", func() {
	DescribeTable("can be used like a static volume in a single cluster", func(ctx SpecContext, class string, options func(name string) []claimOption, change func(s *story, pv *corev1.PersistentVolume)) {
		s := begin(ctx)
		d := s.disk(ctx, one, corev1.PersistentVolumeReclaimRetain)
		patch(ctx, d.member, d.now(ctx), fmt.Sprintf(`{"spec":{"storageClassName":%q}}`, class))
		d.consent(ctx)
		name := s.namespace + "-static"
		d.asks(ctx, name, func(pv *corev1.PersistentVolume) {
			pv.Spec.StorageClassName = class
			change(s, pv)
		})
		s.taken(ctx, d, name)
		notedOn(ctx, "PersistentVolume", name, "VolumeAdopted", d.name, one)
		s.claim(ctx, "data", append([]claimOption{ofClass(class)}, options(name)...)...)
		s.pod(ctx, "app", using("data"))
		s.uses(ctx, d, "data", "app", name)

		By("deleting the claim, and using the retained volume for another claim")
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		host := until[corev1.PersistentVolume](ctx, s, x.Host, name, phase(corev1.VolumeReleased))
		gone[corev1.PersistentVolumeClaim](ctx, s, d.member, "data")
		until[corev1.PersistentVolume](ctx, s, d.member, d.name, phase(corev1.VolumeReleased))
		patch(ctx, x.Host, host, `{"spec":{"claimRef":null}}`)
		s.claim(ctx, "again", ofClass(class), named(name))
		s.pod(ctx, "again", using("again"))
		s.uses(ctx, d, "again", "again", name)
	},
		Entry("by its name", SpecTimeout(2*storyTime), classRetained, func(name string) []claimOption { return []claimOption{named(name)} }, func(*story, *corev1.PersistentVolume) {}),
		Entry("by its claimRef", SpecTimeout(2*storyTime), classRetained, func(string) []claimOption { return nil }, func(s *story, pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: s.namespace, Name: "data"}
		}),
		// A class without a StorageClass cannot be provisioned in another member, so the
		// volume is the only one to which the claim can be bound.
		Entry("by a selector", SpecTimeout(2*storyTime), "static-only", func(name string) []claimOption {
			return []claimOption{func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": name}}
			}}
		}, func(_ *story, pv *corev1.PersistentVolume) { pv.Labels = map[string]string{"disk": pv.Name} }),
		Entry("by its class, for which no StorageClass exists", SpecTimeout(2*storyTime), "static-only", func(string) []claimOption { return nil }, func(*story, *corev1.PersistentVolume) {}),
	)

	It("is not adopted without the consent of the member's admin, and the claim reports how to get it (I4, I8)", func(ctx SpecContext) {
		s := begin(ctx)
		d := s.disk(ctx, one, corev1.PersistentVolumeReclaimRetain)
		name := s.namespace + "-static"
		d.asks(ctx, name)
		how := fmt.Sprintf("kubectl label persistentvolume %s %s=%s", d.name, v1alpha1.LabelHost, idOf(ctx, x.Host))
		notedOn(ctx, "PersistentVolume", name, "ConsentMissing", d.name, one, how)
		s.claim(ctx, "data", ofClass(classRetained), named(name))
		s.pod(ctx, "app", using("data"))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", And(phase(corev1.ClaimBound), tells("ConsentMissing", d.name, how)))
		s.noted(ctx, "PersistentVolumeClaim", "data", "ConsentMissing", how)
		s.noted(ctx, "Pod", "app", "AdoptionRefused", "data", name)
		s.barrier(ctx, nodeOne)
		d.untouched(ctx)
		gone[corev1.PersistentVolumeClaim](ctx, s, d.member, "data")

		d.consent(ctx)
		s.uses(ctx, d, "data", "app", name)
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", Not(tells("ConsentMissing")))
	}, SpecTimeout(storyTime))

	It("is not taken from a foreign claim that is bound to it (I4)", func(ctx SpecContext) {
		s := begin(ctx)
		d := s.disk(ctx, one, corev1.PersistentVolumeReclaimRetain)
		d.consent(ctx)
		user := harness.Claim(d.namespace, "user", classRetained)
		user.Spec.VolumeName = d.name
		Expect(d.member.API.Create(ctx, user)).To(Succeed())
		until[corev1.PersistentVolume](ctx, s, d.member, d.name, phase(corev1.VolumeBound))
		name := s.namespace + "-static"
		d.asks(ctx, name)
		notedOn(ctx, "PersistentVolume", name, "AdoptionRefused", d.name, one, d.namespace+"/user")
		s.claim(ctx, "data", ofClass(classRetained), named(name))
		until[corev1.PersistentVolumeClaim](ctx, s, x.Host, "data", tells("AdoptionRefused", d.namespace+"/user", "does not take the volume from that claim"))
		s.barrier(ctx, nodeOne)
		d.untouched(ctx)
		Expect(d.now(ctx).Status.Phase).To(Equal(corev1.VolumeBound))

		By("deleting the foreign claim, whose volume has policy Retain")
		Expect(d.member.API.Delete(ctx, user)).To(Succeed())
		s.pod(ctx, "app", using("data"))
		s.uses(ctx, d, "data", "app", name)
	}, SpecTimeout(storyTime))

	It("is adopted by neither of two PersistentVolumes that request it, and later requests do not replace the first adoption (I3)", func(ctx SpecContext) {
		s := begin(ctx)
		d := s.disk(ctx, one, corev1.PersistentVolumeReclaimRetain)
		first, second := s.namespace+"-first", s.namespace+"-second"
		d.asks(ctx, first)
		other := d.asks(ctx, second)
		notedOn(ctx, "PersistentVolume", first, "AdoptionRefused", second)
		notedOn(ctx, "PersistentVolume", second, "AdoptionRefused", first)
		d.consent(ctx)
		s.barrier(ctx, nodeOne)
		d.untouched(ctx)
		Expect(x.Host.API.Delete(ctx, other)).To(Succeed())
		s.taken(ctx, d, first)
		third := s.namespace + "-third"
		d.asks(ctx, third)
		notedOn(ctx, "PersistentVolume", third, "AdoptionRefused", first)
		s.claim(ctx, "data", ofClass(classRetained), named(first))
		s.pod(ctx, "app", using("data"))
		s.uses(ctx, d, "data", "app", first)
	}, SpecTimeout(storyTime))

	DescribeTable("is not adopted by a PersistentVolume that does not match it", func(ctx SpecContext, change func(*corev1.PersistentVolume), parts ...string) {
		s := begin(ctx)
		d := s.disk(ctx, one, corev1.PersistentVolumeReclaimRetain)
		d.consent(ctx)
		name := s.namespace + "-static"
		d.asks(ctx, name, change)
		notedOn(ctx, "PersistentVolume", name, "AdoptionRefused", append(parts, one)...)
		s.barrier(ctx, nodeOne)
		d.untouched(ctx)
	},
		Entry("another class", SpecTimeout(storyTime), func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = classParameter }, classRetained, classParameter, controlplane.ClassFast, "parameter"),
		Entry("a handle of a volume that does not exist", SpecTimeout(storyTime), func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle += "-not-there" }, "-not-there", "no such volume"),
	)

	It("is reported if its cluster is not registered, on the waiting Pod as well", func(ctx SpecContext) {
		s := begin(ctx)
		d := s.disk(ctx, one, corev1.PersistentVolumeReclaimRetain)
		name := s.namespace + "-static"
		d.asks(ctx, name, func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.VolumeHandle = "no-such-id/" + d.name
			pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values = []string{"no-such-id"}
		})
		notedOn(ctx, "PersistentVolume", name, "AdoptionRefused", "no registered member", "no-such-id")
		s.claim(ctx, "data", ofClass(classRetained), named(name))
		s.pod(ctx, "app", using("data"))
		s.noted(ctx, "Pod", "app", "VolumesApart", "no-such-id")
	}, SpecTimeout(storyTime))

	It("is kept if the admin deletes its PersistentVolume in the host, is an orphan if it was adopted, and can be adopted again (I1, I2)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		d := s.disk(ctx, one, corev1.PersistentVolumeReclaimDelete)
		name := s.namespace + "-static"
		before := d.asks(ctx, name, func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		})
		notedOn(ctx, "PersistentVolume", name, "ConsentMissing", d.name)
		Expect(x.Host.API.Delete(ctx, before)).To(Succeed())
		gone[corev1.PersistentVolume](ctx, s, x.Host, name)
		d.consent(ctx)
		s.barrier(ctx, nodeOne)
		d.untouched(ctx)

		after := d.asks(ctx, name, func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		})
		s.taken(ctx, d, name)
		Expect(x.Host.API.Delete(ctx, after)).To(Succeed())
		gone[corev1.PersistentVolume](ctx, s, x.Host, name)
		registration(ctx, one, orphaned(d.name, accounts.RootGone))
		notedOn(ctx, "ClusterRegistration", one, "OrphanedVolume", d.name, name, "kubectl xylem adopt")
		Expect(d.now(ctx).Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))

		d.asks(ctx, name)
		registration(ctx, one, notOrphaned(d.name))
		s.claim(ctx, "data", ofClass(classRetained), named(name))
		s.pod(ctx, "app", using("data"))
		s.uses(ctx, d, "data", "app", name)
	}, SpecTimeout(2*storyTime))

	DescribeTable("is destroyed only if both policies are Delete (I2)", func(ctx SpecContext, host, leaf corev1.PersistentVolumeReclaimPolicy, destroyed bool) {
		s := begin(ctx)
		d := s.disk(ctx, one, leaf)
		d.consent(ctx)
		name := s.namespace + "-static"
		d.asks(ctx, name, func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = host })
		s.taken(ctx, d, name)
		s.claim(ctx, "data", ofClass(classRetained), named(name))
		s.pod(ctx, "app", using("data"))
		s.uses(ctx, d, "data", "app", name)
		s.deletePod(ctx, "app")
		s.deleteClaim(ctx, "data")
		if destroyed {
			gone[corev1.PersistentVolume](ctx, s, d.member, d.name)
			gone[corev1.PersistentVolume](ctx, s, x.Host, name)
			return
		}
		pv := until[corev1.PersistentVolume](ctx, s, x.Host, name, phase(corev1.VolumeReleased))
		Expect(pv.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
		gone[corev1.PersistentVolumeClaim](ctx, s, d.member, "data")
		s.barrier(ctx, nodeOne)
		kept := d.now(ctx)
		Expect(kept.UID).To(Equal(d.uid))
		Expect(kept.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
	},
		Entry("both", SpecTimeout(storyTime), corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimDelete, true),
		Entry("only in the host", suite.Slow, SpecTimeout(storyTime), corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain, false),
		Entry("only in the member", SpecTimeout(storyTime), corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete, false),
	)

	It("is adopted even if the manager is killed after each of its writes (I6)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		d := s.disk(ctx, one, corev1.PersistentVolumeReclaimRetain)
		name := s.namespace + "-static"
		d.asks(ctx, name)
		notedOn(ctx, "PersistentVolume", name, "ConsentMissing", d.name)
		d.consent(ctx)
		until[corev1.PersistentVolume](ctx, s, x.Host, name, HaveField("Finalizers", ContainElement(v1alpha1.FinalizerLeafVolume)))
		Expect(x.Manager.Kill()).To(Succeed())
		s.back(ctx)
		s.taken(ctx, d, name)
		Expect(x.Manager.Kill()).To(Succeed())
		s.claim(ctx, "data", ofClass(classRetained), named(name))
		s.pod(ctx, "app", using("data"))
		s.bound(ctx, "data")
		s.back(ctx)
		s.uses(ctx, d, "data", "app", name)
	}, SpecTimeout(2*storyTime))

	It("is adopted again after the host was restored to a state before the adoption (I2)", suite.Slow, suite.Core, func(ctx SpecContext) {
		s := begin(ctx)
		d := s.disk(ctx, one, corev1.PersistentVolumeReclaimDelete)
		d.consent(ctx)
		name := s.namespace + "-static"
		deletes := func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}
		d.asks(ctx, name, deletes)
		s.claim(ctx, "data", ofClass(classRetained), named(name))
		s.pod(ctx, "app", using("data"))
		s.uses(ctx, d, "data", "app", name)

		By("restoring the host to a state without the claim and the Pod, and with the PersistentVolume as the admin created it")
		s.forget(ctx, name)
		d.asks(ctx, name, deletes)
		rewind(ctx)
		s.back(ctx)
		suite.ConfirmRestore(ctx, x, one, v1alpha1.ReasonHostRestored)
		s.claim(ctx, "data", ofClass(classRetained), named(name))
		s.pod(ctx, "app", using("data"))
		s.uses(ctx, d, "data", "app", name)
	}, SpecTimeout(2*storyTime))

	It("can be adopted with one command, which uses both kubeconfigs and can show the changes first", func(ctx SpecContext) {
		s := begin(ctx)
		d := s.disk(ctx, one, corev1.PersistentVolumeReclaimRetain)
		name := s.namespace + "-static"
		adopt := func(args ...string) (string, string, int) {
			return s.plugin(ctx, append([]string{"adopt", one, d.name, "--name", name, "--class", classRetained, "--claim", s.namespace + "/data"}, args...)...)
		}
		kubeconfig := x.Fleet.Member(one).KubeconfigPath()
		for _, dry := range []string{"--dry-run", "--dry-run=server"} {
			out, complaints, code := adopt("--member-kubeconfig", kubeconfig, dry)
			Expect(code).To(BeZero(), complaints)
			Expect(out).To(And(ContainSubstring(d.name), ContainSubstring("consent"), ContainSubstring("to be given"), ContainSubstring(name), ContainSubstring("to be created"), ContainSubstring("Nothing was changed")))
			d.untouched(ctx)
			gone[corev1.PersistentVolume](ctx, s, x.Host, name)
		}
		By("reporting errors")
		for complaint, args := range map[string][]string{
			"points to cluster":              {"--member-kubeconfig", x.Fleet.Member(two).KubeconfigPath()},
			"--member-kubeconfig is missing": nil,
			"the volume's StorageClass":      {"--member-kubeconfig", kubeconfig, "--class", classParameter},
			"--policy=Recycle is unknown":    {"--member-kubeconfig", kubeconfig, "--policy", "Recycle"},
			"is invalid: use NAMESPACE/NAME": {"--member-kubeconfig", kubeconfig, "--claim", "data"},
		} {
			_, complaints, code := adopt(args...)
			Expect(code).To(Equal(1))
			Expect(complaints).To(ContainSubstring(complaint))
			d.untouched(ctx)
		}

		out, complaints, code := adopt("--member-kubeconfig", kubeconfig)
		Expect(code).To(BeZero(), complaints)
		Expect(out).To(ContainSubstring("Adopted"))
		GinkgoWriter.Println(out)
		DeferCleanup(deleted(x.Host, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}), NodeTimeout(settle))
		s.claim(ctx, "data", ofClass(classRetained))
		s.pod(ctx, "app", using("data"))
		s.uses(ctx, d, "data", "app", name)

		By("running the command again without effect, and with another name, which Xylem rejects")
		_, complaints, code = adopt("--member-kubeconfig", kubeconfig)
		Expect(code).To(BeZero(), complaints)
		_, complaints, code = adopt("--member-kubeconfig", kubeconfig, "--name", name+"-2")
		Expect(code).To(Equal(1))
		Expect(complaints).To(ContainSubstring(name))
	}, SpecTimeout(storyTime))
})
