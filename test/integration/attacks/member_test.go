package attacks_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
)

// stamp sets a root's complete stamp on an object.
func stamp(ctx context.Context, obj client.Object, root string, uid types.UID) {
	GinkgoHelper()
	obj.SetLabels(map[string]string{v1alpha1.LabelHost: hostID(ctx), v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue})
	obj.SetAnnotations(map[string]string{v1alpha1.AnnotationRoot: root, v1alpha1.AnnotationRootUID: string(uid)})
}

// static returns a PV as a member's admin would create it.
func static(name, namespace, claim string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              class,
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: namespace, Name: claim},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/kubernetes/pki"}},
		},
	}
}

// removed deletes an object and its finalizers at the end of the spec.
func removed(c client.Client, obj client.Object) {
	DeferCleanup(remove, c, obj, NodeTimeout(settle))
}

// remove deletes an object, and returns once it no longer exists, because other attacks use the
// same names. By then, Xylem may have created its own object with that name.
func remove(ctx SpecContext, c client.Client, obj client.Object) {
	uid := obj.GetUID()
	Expect(client.IgnoreNotFound(c.Delete(ctx, obj))).To(Succeed())
	Expect(client.IgnoreNotFound(patched(ctx, c, obj, `{"metadata":{"finalizers":null}}`))).To(Succeed())
	Eventually(ctx, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return apierrors.IsNotFound(err) || obj.GetUID() != uid, client.IgnoreNotFound(err)
	}).Should(BeTrue(), "%T %s must be removed", obj, obj.GetName())
}

var _ = Describe("A tenant of a member tries", func() {
	It("to impersonate one of the victim's leaves, or to hide Pods from Xylem's count of foreign Pods: forged stamps", func(ctx SpecContext) {
		m := newTenant(ctx, x.Member(one), "resident")
		for _, obj := range []client.Object{
			m.claim("data"), m.pod("app", "", nil),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: "config"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: "secret"}},
		} {
			stamp(ctx, obj, victim.namespace+"/data", victim.claim.UID)
			Expect(m.api.Create(ctx, obj)).To(forbidden, "%T", obj)
			obj.SetAnnotations(nil)
			obj.SetLabels(map[string]string{v1alpha1.LabelHost: hostID(ctx)})
			Expect(m.api.Create(ctx, obj)).To(forbidden, "%T", obj)
		}
	}, SpecTimeout(attackTime))

	It("to get objects that Xylem will push for the victim: a namespace of the same name, which the attacker creates first and hands over", func(ctx SpecContext) {
		user := somebody(x.Member(one), "namespace-maker")
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "namespace-maker"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces", "secrets"}, Verbs: []string{"create", "get", "list", "patch"}}},
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "namespace-maker"}},
		}
		for _, o := range []client.Object{role, binding} {
			Expect(x.Member(one).API.Create(ctx, o)).To(Succeed())
			removed(x.Member(one).API, o)
		}
		a := attacker(ctx) // the tenant whom the attack targets
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace, Labels: map[string]string{v1alpha1.LabelHost: hostID(ctx)}}}
		Eventually(ctx, func(ctx context.Context) error { return user.Create(ctx, ns.DeepCopy()) }).
			Should(MatchError(ContainSubstring("stamps.xylem.io")))
		plain := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}
		Expect(user.Create(ctx, plain)).To(Succeed())
		removed(x.Member(one).API, plain)
		Expect(patched(ctx, user, plain, `{"metadata":{"labels":{"xylem.io/host":"`+hostID(ctx)+`"}}}`)).To(forbidden)

		Expect(a.api.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "mine"}, StringData: map[string]string{"a": "b"}})).To(Succeed())
		pod := a.pod("app", nodeOne, nil, func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "mine"}}}}
		})
		Expect(a.api.Create(ctx, pod)).To(Succeed())
		a.told(ctx, pod, "NamespaceConflict", one)
		nothingIn(ctx, x.Member(one), a.namespace)
	}, SpecTimeout(attackTime))
})

var _ = Describe("A member's admin tries to make", func() {
	It("the victim's claim in another member use the attacker's disk: a volume and a claim with the victim's stamp", func(ctx SpecContext) {
		m := x.Member(two)
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: victim.namespace}}
		stamp(ctx, ns, victim.namespace, "some")
		Expect(m.API.Create(ctx, ns)).To(Succeed())
		removed(m.API, ns)
		pv := static("for-the-victim", victim.namespace, "data")
		stamp(ctx, pv, victim.namespace+"/data", victim.claim.UID)
		claim := victim.person.claim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = pv.Name })
		stamp(ctx, claim, victim.namespace+"/data", victim.claim.UID)
		for _, o := range []client.Object{pv, claim} {
			Expect(m.API.Create(ctx, o)).To(Succeed())
			removed(m.API, o)
		}
		By("checking that the volume is counted as an orphan")
		Eventually(ctx, func(ctx context.Context) (int32, error) {
			cr, err := get[v1alpha1.ClusterRegistration](ctx, x.Host, "", two)
			return cr.Status.Volumes.Orphaned, err
		}).Should(BeNumerically(">", 0))
		barrier(ctx)
		_, err := get[corev1.PersistentVolume](ctx, x.Host, "", pv.Name)
		Expect(err).To(Satisfy(apierrors.IsNotFound), "Xylem must not create a host PV for the volume")
	}, SpecTimeout(attackTime))

	It("an unplaced claim, which was never in this member, use the attacker's disk: a namespace that is handed over, and a volume and a bound claim with the claim's stamp", func(ctx SpecContext) {
		a := attacker(ctx)
		Expect(a.api.Create(ctx, a.claim("data"))).To(Succeed())
		root := must[corev1.PersistentVolumeClaim](ctx, x.Host, a.namespace, "data")
		m := x.Member(two)
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace, Labels: map[string]string{v1alpha1.LabelHost: hostID(ctx)}}}
		pv := static("for-"+a.namespace, a.namespace, "data")
		stamp(ctx, pv, a.namespace+"/data", root.UID)
		claim := a.claim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = pv.Name })
		stamp(ctx, claim, a.namespace+"/data", root.UID)
		for _, o := range []client.Object{ns, pv, claim} {
			Expect(m.API.Create(ctx, o)).To(Succeed())
			removed(m.API, o)
		}
		Eventually(ctx, func(ctx context.Context) (corev1.PersistentVolumeClaimPhase, error) {
			c, err := get[corev1.PersistentVolumeClaim](ctx, m, a.namespace, "data")
			return c.Status.Phase, err
		}).Should(Equal(corev1.ClaimBound))

		By("checking that the claim reports the conflict, and that nothing is created")
		a.told(ctx, root, v1alpha1.ReasonAdoptionUnconfirmed, two, v1alpha1.AnnotationAdopt)
		barrier(ctx)
		untouched := func() {
			GinkgoHelper()
			now := must[corev1.PersistentVolumeClaim](ctx, x.Host, a.namespace, "data")
			Expect(now.Annotations[v1alpha1.AnnotationPlacedIn]).NotTo(Equal(must[v1alpha1.ClusterRegistration](ctx, x.Host, "", two).Status.ClusterID))
			Expect(now.Spec.VolumeName).NotTo(Equal(pv.Name))
			_, err := get[corev1.PersistentVolume](ctx, x.Host, "", pv.Name)
			Expect(err).To(Satisfy(apierrors.IsNotFound), "Xylem must not create a host PV for the volume")
		}
		untouched()

		By("running the claim's Pod in the member that the user selects")
		Expect(a.api.Create(ctx, a.pod("data", nodeOne, []string{"data"}))).To(Succeed())
		a.running(ctx, "data")
		untouched()
	}, SpecTimeout(attackTime))

	It("the host use another tenant's claim: changed stamps (root, root-uid and host) of a leaf claim and its volume", func(ctx SpecContext) {
		a := attacker(ctx)
		a.runs(ctx, "data", nodeOne)
		m := x.Member(one)
		claim := must[corev1.PersistentVolumeClaim](ctx, m, a.namespace, "data")
		leaf := must[corev1.PersistentVolume](ctx, m, "", claim.Spec.VolumeName)
		host := must[corev1.PersistentVolume](ctx, x.Host, "", must[corev1.PersistentVolumeClaim](ctx, x.Host, a.namespace, "data").Spec.VolumeName)
		root, uid := claim.Annotations[v1alpha1.AnnotationRoot], claim.Annotations[v1alpha1.AnnotationRootUID]
		forged := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:%q}}}`, v1alpha1.AnnotationRoot, victim.namespace+"/data", v1alpha1.AnnotationRootUID, victim.claim.UID)
		right := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:%q}}}`, v1alpha1.AnnotationRoot, root, v1alpha1.AnnotationRootUID, uid)

		By("forging the volume's stamp, which Xylem corrects")
		Expect(patched(ctx, m.API, leaf, forged)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
			pv, err := get[corev1.PersistentVolume](ctx, m, "", leaf.Name)
			return pv.Annotations, err
		}).Should(HaveKeyWithValue(v1alpha1.AnnotationRootUID, uid))
		By("forging the stamps of both the claim and the volume")
		Expect(patched(ctx, m.API, claim, forged)).To(Succeed())
		Expect(patched(ctx, m.API, leaf, forged)).To(Succeed())
		barrier(ctx)
		victim.unharmed(ctx)
		after := must[corev1.PersistentVolume](ctx, x.Host, "", host.Name)
		Expect(after.Spec).To(Equal(host.Spec))
		By("forging the stamps of another host")
		Expect(patched(ctx, m.API, claim, right)).To(Succeed())
		Expect(patched(ctx, m.API, claim, `{"metadata":{"labels":{"xylem.io/host":"another"}}}`)).To(Succeed())
		Expect(patched(ctx, m.API, leaf, `{"metadata":{"labels":{"xylem.io/host":"another"}}}`)).To(Succeed())
		barrier(ctx)
		Expect(must[corev1.PersistentVolume](ctx, x.Host, "", host.Name).Spec).To(Equal(host.Spec))
		Expect(must[corev1.PersistentVolumeClaim](ctx, x.Host, a.namespace, "data").Status.Phase).To(Equal(corev1.ClaimBound))
		book, err := m.Ledger()
		Expect(err).NotTo(HaveOccurred())
		Expect(book.ForClaim(a.namespace, "data").Live()).To(HaveLen(1), "Xylem must not destroy the disk or create a second one")
		By("correcting all stamps before the cleanup")
		for _, o := range []client.Object{claim, leaf} {
			Expect(patched(ctx, m.API, o, `{"metadata":{"labels":{"xylem.io/host":"`+hostID(ctx)+`"}}}`)).To(Succeed())
			Expect(patched(ctx, m.API, o, right)).To(Succeed())
		}
	}, SpecTimeout(attackTime))

	It("the host's kubelets and controllers use a path or Secrets of the attacker's choice: a leaf volume with a hostPath, and with Secret references", func(ctx SpecContext) {
		a := attacker(ctx)
		path := static("path-"+a.namespace, a.namespace, "path")
		ref := &corev1.SecretReference{Namespace: v1alpha1.DefaultNamespace, Name: "cluster38-kubeconfig"}
		csi := static("csi-"+a.namespace, a.namespace, "csi")
		csi.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: controlplane.DefaultDriverName, VolumeHandle: strings.Repeat("h\x1b", 1000), VolumeAttributes: map[string]string{"token": "secret"},
			NodePublishSecretRef: ref, NodeStageSecretRef: ref, ControllerPublishSecretRef: ref, ControllerExpandSecretRef: ref, NodeExpandSecretRef: ref,
		}}
		csi.Spec.MountOptions = []string{"suid"}
		for _, pv := range []*corev1.PersistentVolume{path, csi} {
			Expect(x.Member(one).API.Create(ctx, pv)).To(Succeed())
			removed(x.Member(one).API, pv)
		}
		for _, name := range []string{"path", "csi"} {
			a.runs(ctx, name, nodeOne)
			claim := must[corev1.PersistentVolumeClaim](ctx, x.Host, a.namespace, name)
			host := must[corev1.PersistentVolume](ctx, x.Host, "", claim.Spec.VolumeName)
			Expect(host.Spec.HostPath).To(BeNil())
			Expect(host.Spec.MountOptions).To(BeEmpty())
			Expect(host.Spec.CSI.Driver).To(Equal(v1alpha1.ProvisionerName))
			Expect([]*corev1.SecretReference{
				host.Spec.CSI.NodePublishSecretRef, host.Spec.CSI.NodeStageSecretRef, host.Spec.CSI.ControllerPublishSecretRef,
				host.Spec.CSI.ControllerExpandSecretRef, host.Spec.CSI.NodeExpandSecretRef,
			}).To(HaveEach(BeNil()))
			Expect(host.Spec.CSI.VolumeAttributes).NotTo(HaveKey("token"))
			Expect(len(host.Spec.CSI.VolumeAttributes[v1alpha1.AttributeHandle])).To(BeNumerically("<=", 1024))
			Expect(host.Spec.CSI.VolumeAttributes[v1alpha1.AttributeHandle]).NotTo(ContainSubstring("\x1b"))
		}
	}, SpecTimeout(attackTime))

	It("the host's objects grow and its terminals interpret escape sequences: hostile statuses of a leaf Pod and claim, and hostile events", func(ctx SpecContext) {
		a := attacker(ctx)
		a.runs(ctx, "app", nodeOne)
		m := x.Member(one)
		hostile := "\x1b[31mhacked\x00\u202e" + strings.Repeat("x", 300<<10)
		pod := must[corev1.Pod](ctx, m, a.namespace, "app")
		before := pod.DeepCopy()
		pod.Status.Message, pod.Status.Reason = hostile, hostile
		pod.Status.ContainerStatuses[0].Image = hostile
		for i := range 2000 {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: corev1.PodConditionType(fmt.Sprintf("example.com/%d", i)), Status: corev1.ConditionTrue, Message: "x",
			})
		}
		Expect(m.API.Status().Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
		claim := must[corev1.PersistentVolumeClaim](ctx, m, a.namespace, "app")
		beforeClaim := claim.DeepCopy()
		claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue, Reason: "Hacked", Message: hostile}}
		Expect(m.API.Status().Patch(ctx, claim, client.MergeFrom(beforeClaim))).To(Succeed())
		now := metav1.Now()
		Expect(m.API.Create(ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: a.namespace, Name: "hostile"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: a.namespace, Name: "app", UID: pod.UID, FieldPath: hostile},
			Type:           corev1.EventTypeWarning, Reason: "Hacked", Message: hostile, Source: corev1.EventSource{Component: hostile},
			FirstTimestamp: now, LastTimestamp: now, Count: 1,
		})).To(Succeed())

		Eventually(ctx, func(g Gomega) {
			root, err := get[corev1.Pod](ctx, x.Host, a.namespace, "app")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(root.Status.Message).To(And(ContainSubstring("hacked"), Not(ContainSubstring("\x1b")), WithTransform(length, BeNumerically("<=", 4096))))
			g.Expect(root.Size()).To(BeNumerically("<", 64<<10))
			own, err := get[corev1.PersistentVolumeClaim](ctx, x.Host, a.namespace, "app")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(own.Status.Conditions).To(ContainElement(HaveField("Message", And(ContainSubstring("hacked"), Not(ContainSubstring("\x1b")), WithTransform(length, BeNumerically("<=", 4096))))))
			var events corev1.EventList
			g.Expect(x.Host.API.List(ctx, &events, client.InNamespace(a.namespace))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(HaveField("Reason", "Hacked"), HaveField("Message", And(Not(ContainSubstring("\x1b")), WithTransform(length, BeNumerically("<=", 1024)))))))
		}).WithContext(ctx).Should(Succeed())
		barrier(ctx)
	}, SpecTimeout(attackTime))

	It("the host's API server write one volume again and again: a leaf volume whose capacity alternates", func(ctx SpecContext) {
		a := attacker(ctx)
		a.runs(ctx, "data", nodeOne)
		m := x.Member(one)
		leaf := must[corev1.PersistentVolume](ctx, m, "", must[corev1.PersistentVolumeClaim](ctx, m, a.namespace, "data").Spec.VolumeName)
		host := must[corev1.PersistentVolumeClaim](ctx, x.Host, a.namespace, "data").Spec.VolumeName
		writes, err := x.Host.API.Watch(ctx, &corev1.PersistentVolumeList{}, client.MatchingFields{metav1.ObjectNameField: host})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(writes.Stop)
		var seen atomic.Int32
		go func() {
			for range writes.ResultChan() {
				seen.Add(1)
			}
		}()
		resized := func(ctx context.Context, gi int) {
			GinkgoHelper()
			Expect(patched(ctx, m.API, leaf, fmt.Sprintf(`{"spec":{"capacity":{"storage":"%dGi"}}}`, gi))).To(Succeed())
		}
		hasSize := func(ctx context.Context, gi int) {
			GinkgoHelper()
			Eventually(ctx, func(ctx context.Context) (int64, error) {
				pv, err := get[corev1.PersistentVolume](ctx, x.Host, "", host)
				return pv.Spec.Capacity.Storage().Value(), err
			}).Should(BeEquivalentTo(gi << 30))
		}
		By("resizing it a few times, which the host follows at once")
		for gi := 2; gi <= 4; gi++ {
			resized(ctx, gi)
			hasSize(ctx, gi)
		}
		By("resizing it many times")
		const changes = 200
		for i := range changes {
			resized(ctx, 5+i%2)
		}
		resized(ctx, 1)
		hasSize(ctx, 1)
		barrier(ctx)
		Expect(seen.Load()).To(And(BeNumerically(">", 3), BeNumerically("<", changes/4)), "writes of the host PV")
	}, SpecTimeout(attackTime))

	It("the virtual node have hostile names and numbers, copied from the member's nodes", func(ctx SpecContext) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "hostile"}}
		m := x.Member(two)
		Expect(m.API.Create(ctx, node)).To(Succeed())
		removed(m.API, node)
		before := node.DeepCopy()
		node.Status.NodeInfo.Architecture = "arm64\x1b " + strings.Repeat("x", 100)
		node.Status.NodeInfo.OperatingSystem = "../../etc"
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
		Expect(m.API.Status().Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
		barrier(ctx)
		virtual := must[corev1.Node](ctx, x.Host, "", nodeTwo)
		Expect(virtual.Labels[corev1.LabelOSStable]).NotTo(ContainSubstring("etc"))
		Expect(virtual.Labels[corev1.LabelArchStable]).NotTo(ContainSubstring("x"))
	}, SpecTimeout(attackTime))
})

func length(s string) int { return len(s) }
