package attacks_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	// sharedDriver is the driver whose volumes a member shares. sharedSecret is a Secret in kube-system
	// to which copies may refer.
	sharedDriver, sharedSecret = "shared.example.com", "driver-credentials"
	// copyName is the name of a copy.
	copyName = "xylem-copy-stolen"
)

// copied sets the stamp of a copy on a PV or a claim.
func copied(ctx context.Context, obj client.Object) {
	GinkgoHelper()
	obj.SetLabels(map[string]string{v1alpha1.LabelHost: hostID(ctx), v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue})
	obj.SetAnnotations(map[string]string{v1alpha1.AnnotationCopyOf: "pvc-1", v1alpha1.AnnotationCopyOfUID: "pv-uid", v1alpha1.AnnotationCopyFor: "claim-uid"})
}

// copyClaim returns the claim of a copy.
func copyClaim(ctx context.Context, namespace string) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	claim := (&person{namespace: namespace}).claim("data", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Spec.AccessModes = copyName, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	})
	copied(ctx, claim)
	return claim
}

// copyVolume returns a copy for a claim, as Xylem creates it.
func copyVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	GinkgoHelper()
	pv := static(copyName, claim.Namespace, claim.Name)
	pv.Spec.ClaimRef.UID, pv.Spec.AccessModes = claim.UID, claim.Spec.AccessModes
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]}
	allowed := &corev1.SecretReference{Namespace: metav1.NamespaceSystem, Name: sharedSecret}
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: sharedDriver, VolumeHandle: "handle", VolumeAttributes: map[string]string{"csi.storage.k8s.io/pvc/name": "data"},
		ControllerPublishSecretRef: allowed, ControllerExpandSecretRef: allowed,
		NodeStageSecretRef: allowed, NodePublishSecretRef: allowed, NodeExpandSecretRef: allowed,
	}}
	copied(ctx, pv)
	return pv
}

// shares grants the part shared in member one, until the end of the spec.
func shares(ctx context.Context, api client.Client) {
	GinkgoHelper()
	m := x.Member(one)
	part, err := harness.SharedPart([]string{sharedDriver}, []string{metav1.NamespaceSystem + "/" + sharedSecret})
	Expect(err).NotTo(HaveOccurred())
	for _, obj := range part {
		Expect(m.API.Create(ctx, obj)).To(Succeed())
		DeferCleanup(deleted, obj, NodeTimeout(settle))
	}
	claim := copyClaim(ctx, victim.namespace)
	claim.UID = "any"
	Eventually(ctx, func(ctx context.Context) error {
		return api.Create(ctx, copyVolume(ctx, claim), client.DryRunAll)
	}).Should(Succeed())
}

// handedOver creates a namespace that member one's admin hands to the host.
func handedOver(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "sharing-", Labels: map[string]string{v1alpha1.LabelHost: hostID(ctx)}}}
	Expect(x.Member(one).API.Create(ctx, ns)).To(Succeed())
	DeferCleanup(deleted, ns, NodeTimeout(settle))
	return ns.Name
}

// deleted deletes an object in member one, and does not wait until it is gone.
func deleted(ctx SpecContext, obj client.Object) {
	Expect(x.Member(one).API.Delete(ctx, obj)).To(Succeed())
}

// denied matches an error that the member's API server returns instead of allowing a request.
func denied(words string) types.GomegaMatcher {
	return And(forbidden, MatchError(ContainSubstring(words)))
}

var _ = Describe("A token stolen from a member that shares volumes", func() {
	It("cannot create copies unless the member's admin lists a driver", func(ctx SpecContext) {
		api, namespace := thief(ctx), handedOver(ctx)
		claim := copyClaim(ctx, namespace)
		claim.UID = "any"
		Expect(api.Create(ctx, copyVolume(ctx, claim), client.DryRunAll)).To(denied(`cannot create resource "persistentvolumes"`))
		Expect(api.Create(ctx, copyClaim(ctx, namespace), client.DryRunAll)).To(denied("only if an admin of this cluster allows the account to create persistentvolumes"))
		Expect(api.Delete(ctx, victim.leaf.DeepCopy(), client.DryRunAll)).To(denied(`cannot delete resource "persistentvolumes"`))
	}, SpecTimeout(attackTime))

	It("can create and delete only copies with that driver, and cannot change them", func(ctx SpecContext) {
		api, m, namespace := thief(ctx), x.Member(one), handedOver(ctx)
		shares(ctx, api)
		By("stopping the manager, which would delete copies of a volume that does not exist")
		Expect(x.Manager.Stop()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Manager.Start(ctx)).To(Succeed()) }, NodeTimeout(settle))

		By("creating the claim of a copy")
		for what, tc := range map[string]struct {
			change func(*corev1.PersistentVolumeClaim)
			words  string
		}{
			"without a copy":                          {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "" }, "copy's name in spec.volumeName"},
			"for another volume":                      {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pvc-1" }, "copy's name in spec.volumeName"},
			"with half a stamp":                       {func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, v1alpha1.AnnotationCopyFor) }, "A new copy must have all of them"},
			"that also has a root":                    {func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationRoot] = namespace + "/data" }, "neither xylem.io/root nor"},
			"without labels":                          {func(c *corev1.PersistentVolumeClaim) { c.Labels = nil }, "labels xylem.io/host"},
			"in a namespace that was not handed over": {func(c *corev1.PersistentVolumeClaim) { c.Namespace = metav1.NamespaceDefault }, "only in namespaces with the same label"},
		} {
			c := copyClaim(ctx, namespace)
			tc.change(c)
			Expect(api.Create(ctx, c, client.DryRunAll)).To(denied(tc.words), what)
		}
		claim := copyClaim(ctx, namespace)
		Expect(api.Create(ctx, claim)).To(Succeed())

		By("creating the copy")
		foreign := &corev1.SecretReference{Namespace: victim.namespace, Name: sharedSecret}
		const secrets, metadata, own = `allow the account to "use" "secrets.xylem.io"`, "only volumes that are copies of shared volumes", "policy Retain, and only the access modes"
		for what, tc := range map[string]struct {
			change func(*corev1.PersistentVolume)
			words  string
		}{
			"with another driver": {func(p *corev1.PersistentVolume) { p.Spec.CSI.Driver = "other.example.com" }, `copies of volumes of CSI driver "other.example.com" for claims in namespace "` + namespace + `". An admin of this cluster can allow the account to "share"`},
			"without a driver": {func(p *corev1.PersistentVolume) {
				p.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
			}, own},
			"with policy Delete": {func(p *corev1.PersistentVolume) {
				p.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			}, own},
			"with an exclusive mode": {func(p *corev1.PersistentVolume) {
				p.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			}, own},
			"without a claimRef":                  {func(p *corev1.PersistentVolume) { p.Spec.ClaimRef = nil }, "in the claimRef, with its UID"},
			"without the claimRef's UID":          {func(p *corev1.PersistentVolume) { p.Spec.ClaimRef.UID = "" }, "in the claimRef, with its UID"},
			"for a claim in kube-system":          {func(p *corev1.PersistentVolume) { p.Spec.ClaimRef.Namespace = metav1.NamespaceSystem }, "outside the cluster's system namespaces"},
			"for a claim in xylem-system":         {func(p *corev1.PersistentVolume) { p.Spec.ClaimRef.Namespace = v1alpha1.DefaultNamespace }, "outside the cluster's system namespaces"},
			"without labels":                      {func(p *corev1.PersistentVolume) { p.Labels = nil }, "labels xylem.io/host"},
			"without a stamp":                     {func(p *corev1.PersistentVolume) { p.Annotations = nil }, metadata},
			"with half a stamp":                   {func(p *corev1.PersistentVolume) { p.Annotations[v1alpha1.AnnotationCopyOfUID] = "" }, "A new copy must have all of them"},
			"with a root":                         {func(p *corev1.PersistentVolume) { p.Annotations[v1alpha1.AnnotationRoot] = namespace + "/data" }, "neither xylem.io/root nor"},
			"with a root's UID":                   {func(p *corev1.PersistentVolume) { p.Annotations[v1alpha1.AnnotationRootUID] = "uid" }, "neither xylem.io/root nor"},
			"with an original policy":             {func(p *corev1.PersistentVolume) { p.Annotations[v1alpha1.AnnotationReclaimPolicy] = "Delete" }, metadata},
			"with a provisioner in an annotation": {func(p *corev1.PersistentVolume) { p.Annotations["pv.kubernetes.io/provisioned-by"] = sharedDriver }, metadata},
			"with a provisioner's name":           {func(p *corev1.PersistentVolume) { p.Name = "pvc-1" }, metadata},
			"with a finalizer":                    {func(p *corev1.PersistentVolume) { p.Finalizers = []string{"example.com/hold"} }, metadata},
			"with an owner": {func(p *corev1.PersistentVolume) {
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "gone", UID: "gone"}}
			}, "owner references"},
			"as an inline volume": {func(p *corev1.PersistentVolume) { p.Spec.CSI.VolumeAttributes["csi.storage.k8s.io/ephemeral"] = "true" }, "describe a Pod"},
			"as an inline volume, of a driver that ignores the case": {func(p *corev1.PersistentVolume) { p.Spec.CSI.VolumeAttributes["CSI.storage.k8s.io/Ephemeral"] = "true" }, "describe a Pod"},
			"with a mount option that mounts something else":         {func(p *corev1.PersistentVolume) { p.Spec.MountOptions = []string{"nosuid, Bind"} }, "mount options"},
			"as a volume of another Pod": {func(p *corev1.PersistentVolume) {
				p.Spec.CSI.VolumeAttributes["csi.storage.k8s.io/pod.namespace"] = "kube-system"
			}, "describe a Pod"},
			"as another service account": {func(p *corev1.PersistentVolume) {
				p.Spec.CSI.VolumeAttributes["csi.storage.k8s.io/serviceAccount.name"] = "admin"
			}, "describe a Pod"},
			"with a foreign Secret for attach":  {func(p *corev1.PersistentVolume) { p.Spec.CSI.ControllerPublishSecretRef = foreign }, secrets},
			"with a foreign Secret to resize":   {func(p *corev1.PersistentVolume) { p.Spec.CSI.ControllerExpandSecretRef = foreign }, secrets},
			"with a foreign Secret for staging": {func(p *corev1.PersistentVolume) { p.Spec.CSI.NodeStageSecretRef = foreign }, secrets},
			"with a foreign Secret for mounts":  {func(p *corev1.PersistentVolume) { p.Spec.CSI.NodePublishSecretRef = foreign }, secrets},
			"with a foreign Secret on the node": {func(p *corev1.PersistentVolume) { p.Spec.CSI.NodeExpandSecretRef = foreign }, victim.namespace + "/" + sharedSecret},
		} {
			pv := copyVolume(ctx, claim)
			tc.change(pv)
			Expect(api.Create(ctx, pv, client.DryRunAll)).To(denied(tc.words), what)
		}
		pv := copyVolume(ctx, claim)
		Expect(api.Create(ctx, pv)).To(Succeed())
		removed(m.API, pv.DeepCopy())
		Eventually(ctx, func(ctx context.Context) (corev1.PersistentVolumePhase, error) {
			return pv.Status.Phase, m.API.Get(ctx, client.ObjectKeyFromObject(pv), pv)
		}).Should(Equal(corev1.VolumeBound))

		By("changing the copy")
		for patch, words := range map[string]string{
			`{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`:                  "may not change the spec of a copy",
			`{"spec":{"capacity":{"storage":"1Pi"}}}`:                              "may not change the spec of a copy",
			`{"spec":{"claimRef":{"name":"another","uid":"u"}}}`:                   "may not change the spec of a copy",
			`{"spec":{"mountOptions":["suid"]}}`:                                   "may not change the spec of a copy",
			`{"metadata":{"annotations":{"xylem.io/root":"a/b"}}}`:                 "or set its root",
			`{"metadata":{"annotations":{"xylem.io/copy-of":null}}}`:               "may not change the annotations xylem.io/copy-of",
			`{"metadata":{"annotations":{"xylem.io/copy-of-uid":"another"}}}`:      "may not change the annotations xylem.io/copy-of",
			`{"metadata":{"annotations":{"xylem.io/copy-for":"another"}}}`:         "may not change the annotations xylem.io/copy-of",
			`{"metadata":{"finalizers":null}}`:                                     "only its stamp in the metadata",
			`{"metadata":{"annotations":{"pv.kubernetes.io/provisioned-by":"x"}}}`: "only its stamp in the metadata",
		} {
			Expect(patched(ctx, api, pv.DeepCopy(), patch)).To(denied(words), patch)
		}
		Expect(patched(ctx, api, claim.DeepCopy(), `{"metadata":{"annotations":{"xylem.io/copy-of":"another"}}}`)).To(denied("may not change the annotations xylem.io/copy-of"))

		By("deleting volumes that are not copies, and turning them into copies")
		stranger := static("strangers", "strangers-ns", "precious")
		Expect(m.API.Create(ctx, stranger)).To(Succeed())
		removed(m.API, stranger)
		stamp := `{"metadata":{"labels":{"xylem.io/host":"` + hostID(ctx) + `","app.kubernetes.io/managed-by":"xylem"},"annotations":{"xylem.io/copy-of":"a","xylem.io/copy-of-uid":"b","xylem.io/copy-for":"c"}}}`
		for _, other := range []*corev1.PersistentVolume{stranger, victim.leaf} {
			Expect(api.Delete(ctx, other.DeepCopy(), client.DryRunAll)).To(denied("except copies of shared volumes with policy Retain"))
			Expect(patched(ctx, api, other.DeepCopy(), stamp)).To(denied("may not change the annotations xylem.io/copy-of"))
		}

		By("deleting a copy whose policy somebody else has changed, and changing more than the policy back")
		Expect(patched(ctx, m.API, pv.DeepCopy(), `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)).To(Succeed())
		Expect(api.Delete(ctx, pv.DeepCopy(), client.DryRunAll)).To(denied("except copies of shared volumes with policy Retain"))
		for patch, words := range map[string]string{
			`{"spec":{"persistentVolumeReclaimPolicy":"Recycle"}}`:                                                 "may not change the spec of a copy",
			`{"spec":{"persistentVolumeReclaimPolicy":"Retain","capacity":{"storage":"1Pi"}}}`:                     "may not change the spec of a copy",
			`{"spec":{"persistentVolumeReclaimPolicy":"Retain","claimRef":null}}`:                                  "may not change the spec of a copy",
			`{"spec":{"persistentVolumeReclaimPolicy":"Retain"},"metadata":{"annotations":{"xylem.io/root":"a"}}}`: "or set its root",
		} {
			Expect(patched(ctx, api, pv.DeepCopy(), patch)).To(denied(words), patch)
		}
		Expect(patched(ctx, api, pv.DeepCopy(), `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)).To(Succeed())

		By("deleting the claim and the copy, as Xylem does")
		Expect(api.Delete(ctx, claim)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (corev1.PersistentVolumePhase, error) {
			return pv.Status.Phase, m.API.Get(ctx, client.ObjectKeyFromObject(pv), pv)
		}).Should(Equal(corev1.VolumeReleased))
		Expect(api.Delete(ctx, pv)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return m.API.Get(ctx, client.ObjectKeyFromObject(pv), pv) }).ShouldNot(Succeed())
	}, SpecTimeout(attackTime))
})
