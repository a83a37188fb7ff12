package manifests_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
)

const (
	// memberAccount is the user that the manager is to a member's API server.
	memberAccount = "system:serviceaccount:xylem-system:xylem"
	// someHost is the cluster ID of a host.
	someHost = "0d6c2a35-0000-4000-8000-000000000001"
)

// inMember is a client of the member for a user of some groups.
func inMember(user string, groups ...string) client.Client {
	GinkgoHelper()
	config, err := fleet.Member("member").RESTConfig(controlplane.Direct)
	Expect(err).NotTo(HaveOccurred())
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	}
	return clientOf(config)
}

// stamped puts the whole stamp of a host on an object.
func stamped(o client.Object) {
	root := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		root = ns + "/" + root
	}
	label(v1alpha1.LabelHost, someHost)(o)
	label(v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)(o)
	annotate(v1alpha1.AnnotationRoot, root)(o)
	annotate(v1alpha1.AnnotationRootUID, "some-uid")(o)
}

func unstamped(client.Object) {}

// leafPod is one as root_pod makes them.
func leafPod(namespace string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := pod(namespace)
	no := false
	p.Spec.AutomountServiceAccountToken = &no
	for _, f := range change {
		f(p)
	}
	return p
}

var _ = Describe("The policies of a member", Ordered, func() {
	var (
		memberAdmin, account, other client.Client
		// made by the account's stamp, handed by label alone, foreign.
		made, handed, foreign string
	)

	newNamespace := func(ctx context.Context, prefix string, change func(client.Object)) string {
		GinkgoHelper()
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: unique(prefix)}}
		change(ns)
		Expect(memberAdmin.Create(ctx, ns)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, ns)).To(Succeed()) }, NodeTimeout(settle))
		Eventually(ctx, func(ctx context.Context) error {
			return memberAdmin.Get(ctx, client.ObjectKey{Namespace: ns.Name, Name: "default"}, &corev1.ServiceAccount{})
		}).Should(Succeed())
		return ns.Name
	}

	BeforeAll(func(ctx SpecContext) {
		memberAdmin = inMember("")
		// Masters, so that only admission is in the account's way.
		account = inMember(memberAccount, "system:masters")
		other = inMember("other", "tenants")
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "tenants-of-everything"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"", "coordination.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "tenants"}},
		}
		for _, o := range []client.Object{role, binding} {
			Expect(memberAdmin.Create(ctx, o)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, o)).To(Succeed()) }, NodeTimeout(settle))
		}
		made = newNamespace(ctx, "made", stamped)
		handed = newNamespace(ctx, "handed", label(v1alpha1.LabelHost, someHost))
		foreign = newNamespace(ctx, "foreign", unstamped)
		By("waiting until the policies are in force")
		Eventually(ctx, func(ctx context.Context) error {
			return account.Create(ctx, claim(foreign), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("Xylem's account")))
		forged := claim(foreign)
		stamped(forged)
		Eventually(ctx, func(ctx context.Context) error {
			return other.Create(ctx, forged.DeepCopy(), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("stamps.xylem.io")))
	}, NodeTimeout(2*settle))

	It("have expressions that the API server finds nothing wrong with", func(ctx SpecContext) {
		for _, name := range []string{"xylem-account", "xylem-stamps"} {
			Eventually(ctx, func(g Gomega) {
				var policy admissionv1.ValidatingAdmissionPolicy
				g.Expect(memberAdmin.Get(ctx, client.ObjectKey{Name: name}, &policy)).To(Succeed())
				g.Expect(policy.Status.ObservedGeneration).To(Equal(policy.Generation))
				g.Expect(policy.Status.TypeChecking).NotTo(BeNil())
				g.Expect(policy.Status.TypeChecking.ExpressionWarnings).To(BeEmpty())
			}).Should(Succeed())
		}
	}, SpecTimeout(settle))

	It("let the account make what carries the stamp, where it may", func(ctx SpecContext) {
		for _, o := range []client.Object{
			claim(made), claim(handed), leafPod(made), leafPod(handed),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: "config"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: "secret"}, StringData: map[string]string{"a": "b"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: someHost}},
		} {
			stamped(o)
			Expect(account.Create(ctx, o, client.DryRunAll)).To(Succeed(), "%T", o)
		}
	}, SpecTimeout(settle))

	It("let the account have the next token of its own, and nobody else's", func(ctx SpecContext) {
		other := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "other"}}
		Expect(memberAdmin.Create(ctx, other)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, other)).To(Succeed()) }, NodeTimeout(settle))
		self := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "xylem"}}
		ask := func(of *corev1.ServiceAccount, life time.Duration, bound *authenticationv1.BoundObjectReference) error {
			return account.SubResource("token").Create(ctx, of, &authenticationv1.TokenRequest{
				Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(life.Seconds())), BoundObjectRef: bound},
			})
		}
		const day = 24 * time.Hour
		Expect(ask(self, day, nil)).To(Succeed())
		Expect(ask(self, 7*day, nil)).To(Succeed())
		denied := MatchError(And(ContainSubstring("xylem-account"), ContainSubstring("tokens of its own alone, for a week at most")))
		Expect(ask(other, day, nil)).To(denied)
		Expect(ask(self, 7*day+time.Second, nil)).To(denied)
		Expect(ask(self, day, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: "s"})).To(denied)
	}, SpecTimeout(settle))

	DescribeTable("let the account make nothing else", func(ctx SpecContext, object func() client.Object, stamp func(client.Object)) {
		o := object()
		stamp(o)
		Expect(account.Create(ctx, o, client.DryRunAll)).To(MatchError(And(
			ContainSubstring("xylem-account"), ContainSubstring("denied request"))))
	},
		Entry("a claim without a stamp", SpecTimeout(settle), func() client.Object { return claim(made) }, unstamped),
		Entry("a claim with half a stamp", SpecTimeout(settle), func() client.Object { return claim(made) }, label(v1alpha1.LabelHost, someHost)),
		Entry("a claim whose stamp names another root", SpecTimeout(settle), func() client.Object { return claim(made) }, func(o client.Object) {
			stamped(o)
			annotate(v1alpha1.AnnotationRoot, "victim/claim")(o)
		}),
		Entry("a claim of another host than its namespace", SpecTimeout(settle), func() client.Object { return claim(made) }, func(o client.Object) {
			stamped(o)
			label(v1alpha1.LabelHost, "another")(o)
		}),
		Entry("a claim in a stranger's namespace", SpecTimeout(settle), func() client.Object { return claim(foreign) }, stamped),
		Entry("a Pod in a stranger's namespace", SpecTimeout(settle), func() client.Object { return leafPod(foreign) }, stamped),
		Entry("a Pod in kube-system", SpecTimeout(settle), func() client.Object { return leafPod("kube-system") }, stamped),
		Entry("a Secret in kube-public", SpecTimeout(settle), func() client.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "s"}}
		}, stamped),
		Entry("a Secret in its own namespace", SpecTimeout(settle), func() client.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "s"}}
		}, stamped),
		Entry("a Pod in default, which nobody handed over", SpecTimeout(settle), func() client.Object { return leafPod("default") }, stamped),
		Entry("a Pod with the member's token", SpecTimeout(settle), func() client.Object { return pod(made) }, stamped),
		Entry("a Pod that projects the member's token", SpecTimeout(settle), func() client.Object {
			return leafPod(made, func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}}},
				}}}}
			})
		}, stamped),
		Entry("a Pod on a node of its choice", SpecTimeout(settle), func() client.Object {
			return leafPod(made, func(p *corev1.Pod) { p.Spec.NodeName = "control-plane" })
		}, stamped),
		Entry("a Secret that is a service account's token", SpecTimeout(settle), func() client.Object {
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: "s", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
				Type:       corev1.SecretTypeServiceAccountToken,
			}
		}, stamped),
		Entry("a volume", SpecTimeout(settle), func() client.Object { return volume("new") }, stamped),
		Entry("a namespace without a stamp", SpecTimeout(settle), func() client.Object {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
		}, unstamped),
		Entry("a namespace like the cluster's own", SpecTimeout(settle), func() client.Object {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-new"}}
		}, stamped),
		Entry("a Lease of another name", SpecTimeout(settle), func() client.Object {
			return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "other"}}
		}, stamped),
		Entry("a Lease elsewhere", SpecTimeout(settle), func() client.Object {
			return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: someHost}}
		}, stamped),
		Entry("a service account", SpecTimeout(settle), func() client.Object {
			return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: "new"}}
		}, stamped),
		Entry("a role", SpecTimeout(settle), func() client.Object {
			return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
		}, stamped),
	)

	It("let the account change and delete nothing but what carries its stamp", func(ctx SpecContext) {
		for _, tc := range []struct {
			object client.Object
			stamp  func(client.Object)
			ours   bool
		}{
			{claim(made), stamped, true},
			{claim(foreign), unstamped, false},
			{claim(handed), label(v1alpha1.LabelHost, someHost), false},
			{leafPod(made), stamped, true},
			{leafPod(foreign), unstamped, false},
		} {
			tc.stamp(tc.object)
			Expect(memberAdmin.Create(ctx, tc.object)).To(Succeed())
			forge := func(o client.Object) { stamped(o); annotate("example.com/a", "b")(o) }
			err := changed(ctx, account, false, tc.object, forge)
			Expect(changed(ctx, account, true, tc.object, forge)).NotTo(Succeed(), "its status is the cluster's")
			deleted := account.Delete(ctx, tc.object, client.DryRunAll)
			for _, err := range []error{err, deleted} {
				if tc.ours {
					Expect(err).NotTo(HaveOccurred(), "%T in %s", tc.object, tc.object.GetNamespace())
				} else {
					Expect(err).To(MatchError(ContainSubstring("what carries its stamp")))
				}
			}
		}
		for name, ours := range map[string]bool{made: true, handed: false, foreign: false, "kube-system": false, v1alpha1.DefaultNamespace: false} {
			var ns corev1.Namespace
			Expect(memberAdmin.Get(ctx, client.ObjectKey{Name: name}, &ns)).To(Succeed())
			err := changed(ctx, account, false, &ns, label("pod-security.kubernetes.io/enforce", "baseline"))
			deleted := account.Delete(ctx, &ns, client.DryRunAll)
			Expect(err == nil).To(Equal(ours), "%s: %v", name, err)
			Expect(deleted == nil).To(Equal(ours), "%s: %v", name, deleted)
		}
	}, SpecTimeout(settle))

	DescribeTable("let the account do to volumes what stamping, holding and releasing them takes",
		func(ctx SpecContext, before func(*corev1.PersistentVolume), change func(*corev1.PersistentVolume), allowed bool) {
			pv := volume(unique("pv"))
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			before(pv)
			Expect(memberAdmin.Create(ctx, pv)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, pv)).To(Succeed()) }, NodeTimeout(settle))
			next := pv.DeepCopy()
			change(next)
			err := account.Patch(ctx, next, client.MergeFrom(pv), client.DryRunAll)
			if allowed {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			Expect(err).To(MatchError(ContainSubstring("Xylem's account")))
		},
		Entry("stamp and hold", SpecTimeout(settle), plainVolume, func(p *corev1.PersistentVolume) {
			stamped(p)
			annotate(v1alpha1.AnnotationReclaimPolicy, "Delete")(p)
			p.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, true),
		Entry("hold without a stamp", SpecTimeout(settle), plainVolume, func(p *corev1.PersistentVolume) {
			p.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, false),
		Entry("stamp another host's", SpecTimeout(settle), func(p *corev1.PersistentVolume) {
			stamped(p)
			label(v1alpha1.LabelHost, "another")(p)
		}, func(p *corev1.PersistentVolume) { stamped(p) }, false),
		Entry("have destroyed what was to be", SpecTimeout(settle), heldVolume("Delete"), func(p *corev1.PersistentVolume) {
			p.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}, true),
		Entry("have destroyed what was to be kept", SpecTimeout(settle), heldVolume("Retain"), func(p *corev1.PersistentVolume) {
			p.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}, false),
		Entry("have destroyed what is a stranger's", SpecTimeout(settle), func(p *corev1.PersistentVolume) {
			p.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, func(p *corev1.PersistentVolume) {
			stamped(p)
			annotate(v1alpha1.AnnotationReclaimPolicy, "Delete")(p)
			p.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}, false),
		Entry("point it at a claim", SpecTimeout(settle), heldVolume("Delete"), pointed, true),
		Entry("point a stranger's at a claim", SpecTimeout(settle), plainVolume, func(p *corev1.PersistentVolume) {
			stamped(p)
			pointed(p)
		}, false),
		Entry("let everybody have it", SpecTimeout(settle), func(p *corev1.PersistentVolume) {
			heldVolume("Delete")(p)
			pointed(p)
		}, func(p *corev1.PersistentVolume) { p.Spec.ClaimRef = nil }, false),
		Entry("grow it", SpecTimeout(settle), heldVolume("Delete"), func(p *corev1.PersistentVolume) {
			p.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi")
		}, false),
		Entry("mount it otherwise", SpecTimeout(settle), heldVolume("Delete"), func(p *corev1.PersistentVolume) {
			p.Spec.MountOptions = []string{"suid"}
		}, false),
		Entry("give it another class", SpecTimeout(settle), heldVolume("Delete"), func(p *corev1.PersistentVolume) {
			p.Spec.StorageClassName = "other"
		}, false),
		Entry("take the stamp off", SpecTimeout(settle), heldVolume("Delete"), func(p *corev1.PersistentVolume) { p.Labels = nil }, false),
		Entry("change others' labels", SpecTimeout(settle), heldVolume("Delete"), func(p *corev1.PersistentVolume) { label("example.com/a", "b")(p) }, false),
		Entry("change others' annotations", SpecTimeout(settle), heldVolume("Delete"), func(p *corev1.PersistentVolume) {
			annotate("pv.kubernetes.io/provisioned-by", "other")(p)
		}, false),
		Entry("change finalizers", SpecTimeout(settle), heldVolume("Delete"), func(p *corev1.PersistentVolume) {
			p.Finalizers = append(p.Finalizers, "example.com/hold")
		}, false),
	)

	It("let nobody else in the member pass for Xylem, but who may write stamps", func(ctx SpecContext) {
		for _, o := range []client.Object{
			claim(foreign), pod(foreign), volume("forged"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "forged"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: foreign, Name: "forged"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: foreign, Name: "forged"}},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: someHost}},
		} {
			if o.GetNamespace() == foreign {
				o.SetName("forged")
			}
			Expect(other.Create(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll)).To(Succeed(), "%T without a stamp", o)
			for _, stamp := range []func(client.Object){label(v1alpha1.LabelHost, someHost), annotate(v1alpha1.AnnotationRoot, "a/b")} {
				forged := o.DeepCopyObject().(client.Object)
				stamp(forged)
				Expect(other.Create(ctx, forged, client.DryRunAll)).To(MatchError(ContainSubstring("stamps.xylem.io")), "%T", o)
				forged = o.DeepCopyObject().(client.Object)
				stamp(forged)
				Expect(memberAdmin.Create(ctx, forged, client.DryRunAll)).To(Succeed(), "%T", o)
			}
		}
		By("changing, removing and adding keys of what is there")
		pv := volume(unique("stamped"))
		stamped(pv)
		Expect(memberAdmin.Create(ctx, pv)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberAdmin.Delete(ctx, pv)).To(Succeed()) }, NodeTimeout(settle))
		for _, change := range []func(client.Object){
			annotate(v1alpha1.AnnotationRoot, "victim/claim"), annotate(v1alpha1.AnnotationRootUID, ""),
			label(v1alpha1.LabelHost, "another"), annotate(v1alpha1.AnnotationReclaimPolicy, "Delete"),
		} {
			for _, status := range []bool{false, true} {
				Expect(changed(ctx, other, status, pv, change)).To(MatchError(ContainSubstring("stamps.xylem.io")), "status: %t", status)
			}
		}
		Expect(changed(ctx, other, false, pv.DeepCopy(), label("example.com/a", "b"))).To(Succeed())
	}, SpecTimeout(settle))
})

func plainVolume(*corev1.PersistentVolume) {}

// heldVolume is one that was mirrored; its provisioner had given it a policy.
func heldVolume(policy string) func(*corev1.PersistentVolume) {
	return func(p *corev1.PersistentVolume) {
		stamped(p)
		annotate(v1alpha1.AnnotationReclaimPolicy, policy)(p)
		p.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
}

func pointed(p *corev1.PersistentVolume) {
	p.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "some", Name: strings.ToLower(p.Name), UID: "claim-uid"}
}
