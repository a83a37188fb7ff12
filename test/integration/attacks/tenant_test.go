package attacks_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/refs"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

var forbidden = Satisfy(apierrors.IsForbidden)

func patched(ctx context.Context, c client.Client, obj client.Object, body string) error {
	return c.Patch(ctx, obj.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(body)))
}

// ineffective asserts that the API server rejects a write to Xylem's keys, or does not let it change them.
func ineffective(err error, obj client.Object, before map[string]string, what ...any) {
	GinkgoHelper()
	if err != nil {
		Expect(err).To(forbidden, what...)
		return
	}
	after := map[string]string{}
	for _, keys := range []map[string]string{obj.GetLabels(), obj.GetAnnotations()} {
		for key, value := range keys {
			if v1alpha1.Reserved(key) {
				after[key] = value
			}
		}
	}
	Expect(after).To(Equal(before), what...)
}

// hasNoLeaf asserts that no member has an object for a claim.
func hasNoLeaf(ctx context.Context, p *person, name string) {
	GinkgoHelper()
	for _, m := range x.Members() {
		_, err := get[corev1.PersistentVolumeClaim](ctx, m, p.namespace, name)
		Expect(err).To(Satisfy(apierrors.IsNotFound), m.Name())
	}
}

var _ = Describe("A tenant of the host tries to get", func() {
	It("a claim that counts as placed in a member of their choice: stamps on new objects", func(ctx SpecContext) {
		a := attacker(ctx)
		for _, key := range []string{
			v1alpha1.AnnotationPlacedIn, v1alpha1.AnnotationRoot, v1alpha1.AnnotationRootUID, v1alpha1.AnnotationReclaimPolicy,
			v1alpha1.AnnotationVolumeUID, v1alpha1.AnnotationPushed, v1alpha1.AnnotationAbandon, v1alpha1.AnnotationConfirmRestore,
			v1alpha1.AnnotationConfirmDeregister, v1alpha1.AnnotationForceDeregister, v1alpha1.AnnotationClusterGone, v1alpha1.AnnotationFenceEpoch,
		} {
			for _, obj := range []client.Object{a.claim("forged"), a.pod("forged", nodeOne, nil)} {
				obj.SetAnnotations(map[string]string{key: hostID(ctx)})
				ineffective(a.api.Create(ctx, obj, client.DryRunAll), obj, map[string]string{}, "%s on a %T", key, obj)
			}
		}
		for _, key := range []string{v1alpha1.LabelHost, v1alpha1.LabelCluster, v1alpha1.LabelClusterID, v1alpha1.LabelVirtualNode} {
			for _, obj := range []client.Object{a.claim("forged"), a.pod("forged", nodeOne, nil)} {
				obj.SetLabels(map[string]string{key: hostID(ctx)})
				ineffective(a.api.Create(ctx, obj, client.DryRunAll), obj, map[string]string{}, "%s on a %T", key, obj)
			}
		}
	}, SpecTimeout(attackTime))

	It("a claim abandoned or moved, with its disk left behind: stamps and override annotations on existing objects", func(ctx SpecContext) {
		a := attacker(ctx)
		a.runs(ctx, "data", nodeOne)
		claim := must[corev1.PersistentVolumeClaim](ctx, x.Host, a.namespace, "data")
		for _, body := range []string{
			`{"metadata":{"annotations":{"xylem.io/placed-in":"elsewhere"}}}`,
			`{"metadata":{"annotations":{"xylem.io/abandon":"true"}}}`, `{"metadata":{"labels":{"xylem.io/host":"x"}}}`,
		} {
			Expect(patched(ctx, a.api, claim, body)).To(forbidden, body)
		}
		omitted := claim.DeepCopy()
		omitted.Annotations = nil
		ineffective(a.api.Update(ctx, omitted), omitted, map[string]string{v1alpha1.AnnotationPlacedIn: claim.Annotations[v1alpha1.AnnotationPlacedIn]}, "an omitted placement")
		pod := must[corev1.Pod](ctx, x.Host, a.namespace, "data")
		Expect(patched(ctx, a.api, pod, `{"metadata":{"annotations":{"xylem.io/root":"a/b"}}}`)).To(forbidden)
	}, SpecTimeout(attackTime))

	It("access to Xylem's own objects: volumes, nodes, registrations, capacity, leases, Secrets", func(ctx SpecContext) {
		a := attacker(ctx)
		for _, obj := range []client.Object{
			victim.volume.DeepCopy(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeOne}},
			&v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: one}},
			&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ProvisionerName}},
			&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: harness.SecretName(one)}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: victim.namespace, Name: "password"}},
			victim.claim.DeepCopy(), victim.pod.DeepCopy(),
		} {
			Expect(a.api.Delete(ctx, obj)).To(forbidden, "%T", obj)
			Expect(patched(ctx, a.api, obj, `{"metadata":{"annotations":{"xylem.io/abandon":"true","xylem.io/force-deregister":"true"}}}`)).To(forbidden, "%T", obj)
			Expect(a.api.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(forbidden, "%T", obj)
		}
		Expect(a.api.List(ctx, &storagev1.CSIStorageCapacityList{}, client.InNamespace(v1alpha1.DefaultNamespace))).To(forbidden)
	}, SpecTimeout(attackTime))

	It("a volume with an owner of their choice: a PV with a claimRef", func(ctx SpecContext) {
		a := attacker(ctx)
		pv := victim.volume.DeepCopy()
		pv.ObjectMeta = metav1.ObjectMeta{Name: "stolen"}
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: a.namespace, Name: "data"}
		Expect(a.api.Create(ctx, pv)).To(forbidden)
	}, SpecTimeout(attackTime))

	It("the victim's volume by its name: volumeName, with a selected node", func(ctx SpecContext) {
		a := attacker(ctx)
		claim := a.claim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeName = victim.volume.Name
			c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": nodeOne}
		})
		Expect(a.api.Create(ctx, claim)).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("app", nodeOne, []string{"data"}))).To(Succeed())
		barrier(ctx)
		Expect(must[corev1.PersistentVolumeClaim](ctx, x.Host, a.namespace, "data").Status.Phase).To(Equal(corev1.ClaimPending))
		leaf, err := get[corev1.PersistentVolumeClaim](ctx, x.Member(one), a.namespace, "data")
		if err == nil {
			Expect(leaf.Spec.VolumeName).NotTo(Equal(victim.leaf.Name))
		}
	}, SpecTimeout(attackTime))

	It("the victim's volume by its labels: a selector", func(ctx SpecContext) {
		a := attacker(ctx)
		Expect(a.api.Create(ctx, a.claim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelCluster: one}}
		}))).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("app", nodeOne, []string{"data"}))).To(Succeed())
		barrier(ctx)
		Expect(must[corev1.PersistentVolumeClaim](ctx, x.Host, a.namespace, "data").Spec.VolumeName).NotTo(Equal(victim.volume.Name))
	}, SpecTimeout(attackTime))

	It("a copy of the victim's data: a dataSource in another namespace", func(ctx SpecContext) {
		a := attacker(ctx)
		Expect(a.api.Create(ctx, a.claim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "data", Namespace: &victim.namespace}
		}))).To(Succeed())
		Expect(a.api.Create(ctx, a.claim("like", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "data"}
		}))).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("like", nodeOne, []string{"like"}))).To(Succeed())
		a.told(ctx, a.claim("like"), "SourceNotReady", `claim "data"`)
		hasNoLeaf(ctx, a, "like")
		// Clusters without the feature gate drop the reference to another namespace, so the claim
		// has no source. In either case, the volume must not contain the victim's data.
		Expect(a.api.Create(ctx, a.pod("app", nodeOne, []string{"data"}))).To(Succeed())
		barrier(ctx)
		leaf, err := get[corev1.PersistentVolumeClaim](ctx, x.Member(one), a.namespace, "data")
		if err == nil {
			Expect(leaf.Spec.DataSource).To(BeNil())
			Expect(leaf.Spec.DataSourceRef).To(BeNil())
		}
	}, SpecTimeout(attackTime))

	It("a member's class to which no admin has mapped a class: annotations, labels, and class names", func(ctx SpecContext) {
		a := attacker(ctx)
		const dear = controlplane.ClassFast // a member class to which no host class maps
		annotations := map[string]string{
			"volume.kubernetes.io/storage-class": dear, "storageclass.kubernetes.io/name": dear, "member-class": dear,
		}
		Expect(a.api.Create(ctx, a.claim("annotated", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations, c.Labels = annotations, map[string]string{"storage-class": dear}
		}))).To(Succeed())
		keyed := a.claim("keyed", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{v1alpha1.ParameterMemberClass: dear}
		})
		ineffective(a.api.Create(ctx, keyed, client.DryRunAll), keyed, map[string]string{}, "a parameter of a class")
		By("using one class for the quota, and another for Xylem")
		dearer := dear
		for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
			"named": func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &dearer },
			"old": func(c *corev1.PersistentVolumeClaim) {
				c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: dear}
			},
			"none": func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil },
		} {
			Expect(a.api.Create(ctx, a.claim(name, change))).To(Succeed())
			Expect(a.api.Create(ctx, a.pod(name, nodeOne, []string{name}))).To(Succeed())
		}
		Expect(a.api.Create(ctx, a.pod("annotated", nodeOne, []string{"annotated"}, func(p *corev1.Pod) { p.Annotations = annotations }))).To(Succeed())
		a.running(ctx, "annotated")
		leaf := must[corev1.PersistentVolumeClaim](ctx, x.Member(one), a.namespace, "annotated")
		Expect(leaf.Spec.StorageClassName).To(HaveValue(Equal(class)))
		Expect(must[corev1.PersistentVolume](ctx, x.Member(one), "", leaf.Spec.VolumeName).Spec.StorageClassName).To(Equal(class))
		By("also setting the selected node, because no scheduler would")
		for _, name := range []string{"named", "old", "none"} {
			Expect(patched(ctx, a.api, a.claim(name), `{"metadata":{"annotations":{"volume.kubernetes.io/selected-node":"`+nodeOne+`"}}}`)).To(Succeed())
		}
		barrier(ctx)
		for _, name := range []string{"named", "old", "none"} {
			hasNoLeaf(ctx, a, name)
		}
	}, SpecTimeout(attackTime))

	It("a member that is disconnected for everybody: quantities that Xylem rejects in the member's responses", func(ctx SpecContext) {
		a := attacker(ctx)
		huge := resource.MustParse("1e102")
		scratch := a.pod("scratch", nodeOne, nil, func(pod *corev1.Pod) {
			pod.Spec.NodeName = nodeOne
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &huge}}})
		})
		cpu := a.pod("cpu", nodeOne, nil, func(pod *corev1.Pod) {
			pod.Spec.NodeName = nodeOne
			pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: huge}
		})
		data := a.claim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": nodeOne}
			c.Spec.Resources.Requests[corev1.ResourceStorage] = huge
		})
		for _, obj := range []client.Object{scratch, cpu, data} {
			Expect(a.api.Create(ctx, obj)).To(Succeed())
		}
		a.told(ctx, scratch, v1alpha1.ReasonPodUnsupported, "spec.volumes[tmp].emptyDir.sizeLimit")
		a.told(ctx, cpu, v1alpha1.ReasonPodUnsupported, "spec.containers[", "limits[cpu]")
		a.told(ctx, data, v1alpha1.ReasonQuantityOutOfRange, "spec.resources.requests[storage]")
		By("resizing a running Pod")
		Expect(a.api.Create(ctx, a.pod("resized", nodeOne, nil, func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m")}
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
		}))).To(Succeed())
		a.running(ctx, "resized")
		resized := must[corev1.Pod](ctx, x.Host, a.namespace, "resized")
		Eventually(ctx, func(ctx context.Context) error {
			return x.Host.API.SubResource("resize").Patch(ctx, resized, client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil,
				`{"spec":{"containers":[{"name":%q,"resources":{"limits":{"cpu":"1e102"}}}]}}`, resized.Spec.Containers[0].Name)))
		}).Should(Succeed())
		Eventually(ctx, func(ctx context.Context) ([]corev1.Event, error) {
			var list corev1.EventList
			err := x.Host.API.List(ctx, &list, client.InNamespace(a.namespace))
			return list.Items, err
		}).Should(ContainElement(And(HaveField("Reason", v1alpha1.ReasonNotResized), HaveField("Message", ContainSubstring("the quantity is out of range")))))
		a.runs(ctx, "connected", nodeOne)
		hasNoLeaf(ctx, a, "data")
	}, SpecTimeout(attackTime))

	It("a disk in a member that the class excludes: selected-node", func(ctx SpecContext) {
		a := attacker(ctx)
		first, err := x.Member(one).ID(ctx)
		Expect(err).NotTo(HaveOccurred())
		held := controlplane.Class("held-"+a.namespace, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
		held.Provisioner, held.Parameters = v1alpha1.ProvisionerName, map[string]string{v1alpha1.ParameterMemberClass: controlplane.ClassFast} // this class binds immediately in that member
		held.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
			{Key: v1alpha1.LabelClusterID, Values: []string{first}},
		}}}
		Expect(x.Host.API.Create(ctx, &held)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, &held)).To(Succeed()) }, NodeTimeout(settle))
		claim := a.claim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.StorageClassName = &held.Name
			c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": nodeTwo}
		})
		Expect(a.api.Create(ctx, claim)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
			err := a.api.Get(ctx, client.ObjectKeyFromObject(claim), claim)
			return claim.Annotations, err
		}).ShouldNot(HaveKey("volume.kubernetes.io/selected-node"))
		Eventually(ctx, func(ctx context.Context) ([]corev1.Event, error) {
			var events corev1.EventList
			err := x.Host.API.List(ctx, &events, client.InNamespace(a.namespace))
			return events.Items, err
		}).Should(ContainElement(And(HaveField("Reason", "ClassKeepsOff"), HaveField("Message", And(ContainSubstring(held.Name), ContainSubstring(two))))))
		hasNoLeaf(ctx, a, "data")
		By("checking that the disk is provisioned where the class allows it")
		Expect(a.api.Create(ctx, a.pod("app", nodeOne, []string{"data"}))).To(Succeed())
		a.running(ctx, "app")
	}, SpecTimeout(attackTime))

	It("the victim's Secret, or a member's kubeconfig, by naming it in a Pod", func(ctx SpecContext) {
		a := attacker(ctx)
		names := []string{"password", harness.SecretName(one), harness.SecretName(two)}
		yes := true
		pod := a.pod("thief", nodeOne, nil)
		for _, name := range names {
			ref := corev1.LocalObjectReference{Name: name}
			pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, ref)
			main := &pod.Spec.Containers[0]
			main.EnvFrom = append(main.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref, Optional: &yes}})
			main.Env = append(main.Env, corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref, Key: "password", Optional: &yes},
			}})
			pod.Spec.Volumes = append(pod.Spec.Volumes,
				corev1.Volume{Name: "s-" + name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Optional: &yes}}},
				corev1.Volume{Name: "p-" + name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: ref, Optional: &yes}}},
				}}})
		}
		Expect(a.api.Create(ctx, pod)).To(Succeed())
		a.running(ctx, "thief")
		barrier(ctx)
		for _, name := range names {
			for _, m := range x.Members() {
				_, err := get[corev1.Secret](ctx, m, a.namespace, name)
				Expect(err).To(Satisfy(apierrors.IsNotFound), "%s in %s", name, m.Name())
			}
		}
		By("adding the victim's namespace to the Secret's name: it has no effect, and blocks nothing")
		for i, name := range []string{victim.namespace + "/password", "../../" + victim.namespace + "/secrets/password"} {
			crossing := a.pod(fmt.Sprintf("crossing-%d", i), nodeOne, nil, func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}}
			})
			Expect(a.api.Create(ctx, crossing)).To(Succeed())
			a.running(ctx, crossing.Name)
		}
	}, SpecTimeout(attackTime))

	It("a member's own Secrets and ConfigMaps, by naming them in a Pod, before and after they exist", func(ctx SpecContext) {
		a := attacker(ctx)
		Expect(a.api.Create(ctx, a.pod("first", nodeOne, nil))).To(Succeed())
		a.running(ctx, "first")
		m := x.Member(one)
		token := func(name string) *corev1.Secret {
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
				Type:       corev1.SecretTypeServiceAccountToken,
			}
		}
		own := func(name string) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name}, StringData: map[string]string{"tls.key": "the member's own"}}
		}
		// These are objects that a replicator in the member creates in each namespace, and static
		// tokens.
		for _, obj := range []client.Object{own("wildcard-tls"), token("sa-token"), token("refused")} {
			Expect(m.API.Create(ctx, obj)).To(Succeed())
		}
		Expect(a.api.Create(ctx, token("refused"))).To(Succeed())
		naming := func(name string, optional bool) func(*corev1.Pod) {
			ref := corev1.LocalObjectReference{Name: name}
			return func(p *corev1.Pod) {
				main := &p.Spec.Containers[0]
				main.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref, Optional: &optional}}}
				main.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref, Key: "k", Optional: &optional}}}}
				p.Spec.Volumes = []corev1.Volume{
					{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Optional: &optional}}},
					{Name: "p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
						Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: ref, Optional: &optional}}},
					}}},
				}
				p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{ref}
			}
		}
		By("requiring objects that the host lacks or does not copy: the Pods are not pushed, and report why")
		for name, reason := range map[string]string{"wildcard-tls": "ReferenceMissing", "sa-token": "ReferenceMissing", "refused": "SecretUnsupported"} {
			thief := a.pod("needs-"+name, nodeOne, nil, naming(name, false))
			Expect(a.api.Create(ctx, thief)).To(Succeed())
			a.told(ctx, thief, reason, name)
		}
		By("naming them as optional: the Pods run, and refer to no object of the member")
		later := "not-there-yet"
		for _, name := range []string{"wildcard-tls", "sa-token", "refused", later} {
			Expect(a.api.Create(ctx, a.pod("names-"+name, nodeOne, nil, naming(name, true)))).To(Succeed())
			a.running(ctx, "names-"+name)
		}
		Expect(m.API.Create(ctx, own(later))).To(Succeed())
		barrier(ctx)
		var leaves corev1.PodList
		Expect(m.API.List(ctx, &leaves, client.InNamespace(a.namespace))).To(Succeed())
		Expect(leaves.Items).To(HaveLen(5))
		for i := range leaves.Items {
			for _, ref := range refs.ReferencesOfPod(&leaves.Items[i]) {
				_, err := get[corev1.Secret](ctx, m, a.namespace, ref.Name)
				Expect(err).To(Satisfy(apierrors.IsNotFound), "%s names %s", leaves.Items[i].Name, ref.Name)
			}
		}
		By("getting the host's object once it exists")
		Expect(a.api.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "wildcard-tls"}, StringData: map[string]string{"k": "mine"}})).To(Succeed())
		a.running(ctx, "needs-wildcard-tls")
		leaf := must[corev1.Pod](ctx, m, a.namespace, "needs-wildcard-tls")
		copied := must[corev1.Secret](ctx, m, a.namespace, leaf.Spec.Containers[0].EnvFrom[0].SecretRef.Name)
		Expect(copied.Data).To(Equal(map[string][]byte{"k": []byte("mine")}))
		Expect(copied.Name).To(HavePrefix("wildcard-tls."))
		Expect(copied.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationRoot, a.namespace+"/wildcard-tls"))
	}, SpecTimeout(attackTime))

	It("an identity in a member: its service accounts' tokens", func(ctx SpecContext) {
		a := attacker(ctx)
		plain := a.pod("plain", nodeOne, nil)
		Expect(a.api.Create(ctx, plain)).To(Succeed())
		projected := a.pod("projected", nodeOne, nil, func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
			}}}}
		})
		Expect(a.api.Create(ctx, projected)).To(Succeed())
		token := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
			Type:       corev1.SecretTypeServiceAccountToken,
		}
		Expect(a.api.Create(ctx, token)).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("mounted", nodeOne, nil, func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "token"}}}}
		}))).To(Succeed())
		a.running(ctx, "plain")
		leaf := must[corev1.Pod](ctx, x.Member(one), a.namespace, "plain")
		Expect(leaf.Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
		Expect(leaf.Spec.ServiceAccountName).To(Equal("default"))
		Expect(leaf.Spec.Volumes).To(BeEmpty())
		a.told(ctx, projected, "PodUnsupported", "serviceAccountToken")
		barrier(ctx)
		_, err := get[corev1.Secret](ctx, x.Member(one), a.namespace, "token")
		Expect(err).To(Satisfy(apierrors.IsNotFound))
	}, SpecTimeout(attackTime))

	It("a Pod that runs earlier or elsewhere than the scheduler allows: gates, selected-node, nominatedNodeName, bindings", func(ctx SpecContext) {
		a := attacker(ctx)
		Expect(a.api.Create(ctx, a.claim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": nodeTwo}
		}))).To(Succeed())
		gated := a.pod("gated", nodeTwo, []string{"data"}, func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
			p.Status.NominatedNodeName = nodeTwo
		})
		intolerant := a.pod("intolerant", nodeTwo, []string{"data"}, func(p *corev1.Pod) { p.Spec.Tolerations = nil })
		for _, p := range []*corev1.Pod{gated, intolerant} {
			Expect(a.api.Create(ctx, p)).To(Succeed())
			Expect(a.api.Status().Patch(ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"nominatedNodeName":"`+nodeTwo+`"}}`)))).To(forbidden)
			binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: nodeTwo}}
			Expect(a.api.SubResource("binding").Create(ctx, p.DeepCopy(), binding)).To(forbidden)
		}
		barrier(ctx)
		var pods corev1.PodList
		Expect(x.Member(two).API.List(ctx, &pods, client.InNamespace(a.namespace))).To(Succeed())
		Expect(pods.Items).To(BeEmpty())
	}, SpecTimeout(attackTime))

	It("a Pod in a member's kube-public, kube-anything, or Xylem's own namespace", func(ctx SpecContext) {
		for _, name := range []string{"kube-public", "kube-anything", v1alpha1.DefaultNamespace} {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			Expect(client.IgnoreAlreadyExists(x.Host.API.Create(ctx, ns))).To(Succeed())
			a := &person{namespace: name, cluster: x.Host, api: x.Host.API}
			if name == "kube-public" {
				By("trying again after the member's admin has labelled the namespace by mistake")
				there := must[corev1.Namespace](ctx, x.Member(one), "", name)
				Expect(patched(ctx, x.Member(one).API, there, `{"metadata":{"labels":{"xylem.io/host":"`+hostID(ctx)+`"}}}`)).To(Succeed())
				DeferCleanup(func(ctx SpecContext) {
					Expect(patched(ctx, x.Member(one).API, there, `{"metadata":{"labels":{"xylem.io/host":null}}}`)).To(Succeed())
				}, NodeTimeout(settle))
			}
			pod := a.pod("intruder", nodeOne, nil, restricted)
			Eventually(ctx, func(ctx context.Context) error { return x.Host.API.Create(ctx, pod.DeepCopy()) }).Should(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				Expect(client.IgnoreNotFound(x.Host.API.Delete(ctx, pod))).To(Succeed())
			}, NodeTimeout(settle))
			a.told(ctx, pod, "NamespaceReserved", name, one)
			var pods corev1.PodList
			Expect(x.Member(one).API.List(ctx, &pods, client.InNamespace(name))).To(Succeed())
			Expect(pods.Items).To(BeEmpty())
		}
		_, err := get[corev1.Namespace](ctx, x.Member(one), "", "kube-anything")
		Expect(err).To(Satisfy(apierrors.IsNotFound))
	}, SpecTimeout(attackTime))

	It("a Pod in a member's own namespace with the same name, default or another", func(ctx SpecContext) {
		a := attacker(ctx)
		own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace, Labels: map[string]string{"team": "theirs"}}}
		Expect(x.Member(one).API.Create(ctx, own)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Member(one).API.Delete(ctx, own)).To(Succeed()) }, NodeTimeout(settle))
		Expect(a.api.Create(ctx, a.claim("data"))).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("app", nodeOne, []string{"data"}))).To(Succeed())
		a.told(ctx, a.claim("data"), "NamespaceConflict", one, a.namespace)
		inDefault := &person{namespace: "default", cluster: x.Host, api: x.Host.API}
		pod := inDefault.pod("intruder", nodeOne, nil)
		Expect(x.Host.API.Create(ctx, pod)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Host.API.Delete(ctx, pod)).To(Succeed()) }, NodeTimeout(settle))
		inDefault.told(ctx, pod.DeepCopy(), "NamespaceConflict", "default")
		for _, name := range []string{a.namespace, "default"} {
			nothingIn(ctx, x.Member(one), name)
			ns := must[corev1.Namespace](ctx, x.Member(one), "", name)
			Expect(ns.Annotations).NotTo(HaveKey(HavePrefix(v1alpha1.Prefix)))
			Expect(ns.Labels).NotTo(HaveKey(HavePrefix(v1alpha1.Prefix)))
		}
	}, SpecTimeout(attackTime))

	It("the member's nodes: hostPath, hostNetwork and privileges, from a restricted namespace", func(ctx SpecContext) {
		a := attacker(ctx, func(ns *corev1.Namespace) {
			ns.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}
		})
		a.runs(ctx, "harmless", nodeOne)
		for what, change := range map[string]func(*corev1.Pod){
			"network":   func(p *corev1.Pod) { p.Spec.HostNetwork = true },
			"processes": func(p *corev1.Pod) { p.Spec.HostPID = true },
			"privileged": func(p *corev1.Pod) {
				yes := true
				p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes}
			},
			"path": func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
			},
		} {
			Expect(a.api.Create(ctx, a.pod("evil-"+what, nodeOne, nil, change))).To(forbidden, what)
		}
		ns := must[corev1.Namespace](ctx, x.Member(one), "", a.namespace)
		Expect(ns.Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "baseline"), "checking that the member applies the same standard")
	}, SpecTimeout(attackTime))

	It("the identity of Xylem through the common label", func(ctx SpecContext) {
		a := attacker(ctx)
		managed := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}
		Expect(a.api.Create(ctx, a.claim("data", func(c *corev1.PersistentVolumeClaim) { c.Labels = managed }))).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("app", nodeOne, []string{"data"}, func(p *corev1.Pod) { p.Labels = managed }))).To(Succeed())
		a.running(ctx, "app")
		barrier(ctx)
		Expect(must[corev1.Pod](ctx, x.Host, a.namespace, "app").Labels).To(Equal(managed))
	}, SpecTimeout(attackTime))

	It("an overloaded manager: large and hostile texts in pushed objects", func(ctx SpecContext) {
		a := attacker(ctx)
		hostile := "\x1b[2J\u202e" + strings.Repeat("x", 200<<10)
		annotate := map[string]string{"example.com/large": hostile}
		Expect(a.api.Create(ctx, a.claim("data", func(c *corev1.PersistentVolumeClaim) { c.Annotations = annotate }))).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("app", nodeOne, []string{"data"}, func(p *corev1.Pod) {
			p.Annotations = annotate
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LARGE", Value: strings.Repeat("y", 600<<10)}}
		}))).To(Succeed())
		a.running(ctx, "app")
		barrier(ctx)
		log := x.Manager.Log()
		Expect(log).NotTo(ContainSubstring("\x1b[2J"))
	}, SpecTimeout(attackTime))
})

var _ = Describe("A tenant of the host tries to disconnect a member with", func() {
	// fetching makes a Pod read ConfigMaps, and binds it to member one without the scheduler.
	fetching := func(names []string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.NodeName, p.Spec.NodeSelector = nodeOne, nil
			for _, name := range names {
				p.Spec.Containers[0].EnvFrom = append(p.Spec.Containers[0].EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}})
			}
		}
	}

	It("large ConfigMaps, with many keys or long values", func(ctx SpecContext) {
		a := attacker(ctx)
		keys := map[string]string{}
		for i := range 60_000 {
			keys[strconv.Itoa(i)] = ""
		}
		var long []string
		for i := range 20 {
			name := fmt.Sprintf("long-%d", i)
			long = append(long, name)
			Expect(a.api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name}, Data: map[string]string{"a": strings.Repeat("x", 1<<20)}})).To(Succeed())
		}
		Expect(a.api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "keys"}, Data: keys})).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("keys", nodeOne, nil, fetching([]string{"keys"})))).To(Succeed())
		Expect(a.api.Create(ctx, a.pod("long", nodeOne, nil, fetching(long)))).To(Succeed())
		a.told(ctx, a.pod("keys", nodeOne, nil), v1alpha1.ReasonReferenceTooLarge, `ConfigMap "keys"`)
		a.running(ctx, "long")
		barrier(ctx)
		Expect(x.Manager.Log()).NotTo(ContainSubstring(v1alpha1.ReasonAnswersRefused))
	}, SpecTimeout(attackTime))

	It("Pods that have too many references or parts", func(ctx SpecContext) {
		a := attacker(ctx)
		var names []string
		for i := range 15_000 {
			names = append(names, strconv.Itoa(i))
		}
		for i := range 10 { // more than root_pod has workers
			Expect(a.api.Create(ctx, a.pod(fmt.Sprintf("references-%d", i), nodeOne, nil, fetching(names)))).To(Succeed())
		}
		// Empty arguments are parts that take much memory in the manager, but little time in an API server that
		// patches the Pod. It takes seconds for as many volumes.
		Expect(a.api.Create(ctx, a.pod("parts", nodeOne, nil, fetching(nil), func(p *corev1.Pod) {
			p.Spec.Containers[0].Args = make([]string, 270_000)
		}))).To(Succeed())
		for _, name := range []string{"references-0", "references-9", "parts"} {
			a.told(ctx, a.pod(name, nodeOne, nil), v1alpha1.ReasonPodUnsupported)
		}
		barrier(ctx)
		nothingIn(ctx, x.Member(one), a.namespace)
	}, SpecTimeout(attackTime))
})

// restricted makes a Pod comply with the Pod Security Standard "restricted".
func restricted(p *corev1.Pod) {
	yes, no := true, false
	p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}
