package stories_test

import (
	"context"
	"net"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/config"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// vaultAudience is the audience of a token that is not for the API server.
const vaultAudience = "vault.example.com"

// apiServer tells a registration how the member's Pods reach the host's API server.
func apiServer(ctx context.Context, name string) {
	GinkgoHelper()
	way, err := x.Host.RESTConfig(controlplane.Direct)
	Expect(err).NotTo(HaveOccurred())
	cr := registration(ctx, name, Not(BeNil()))
	patch(ctx, x.Host, cr, `{"spec":{"apiServer":{"url":"`+way.Host+`"}}}`)
	DeferCleanup(noAPIServer, name, NodeTimeout(settle))
	Expect(x.AwaitReady(ctx, name)).To(Succeed())
}

// noAPIServer undoes apiServer.
func noAPIServer(ctx SpecContext, name string) {
	patch(ctx, x.Host, &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}, `{"spec":{"apiServer":null}}`)
	Expect(x.AwaitReady(ctx, name)).To(Succeed())
}

// actingAs lets the manager act as a virtual node, as `kubectl xylem register --node-identity` does.
func actingAs(ctx context.Context, node string) {
	GinkgoHelper()
	role, binding, err := config.NodeIdentity("story-"+node, []string{node}, v1alpha1.DefaultNamespace, "xylem-controller-manager")
	Expect(err).NotTo(HaveOccurred())
	inHost(ctx, role)
	inHost(ctx, binding)
}

// account creates a ServiceAccount that may get Pods in the story's namespace.
func (s *story) account(ctx context.Context, name string) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: s.namespace, Name: name}
	for _, obj := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: name}}},
	} {
		Expect(x.Host.API.Create(ctx, obj)).To(Succeed())
	}
}

func runningAs(account string) podOption {
	return func(p *corev1.Pod) { p.Spec.ServiceAccountName = account }
}

// projectingToken adds a volume with a token for an audience, as Vault's agents use.
func projectingToken(p *corev1.Pod) {
	seconds := int64(600)
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "vault", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: vaultAudience, ExpirationSeconds: &seconds, Path: "vault-token"}}},
	}}})
}

// insideOf returns a client with which a container of the leaf Pod reaches the API server, like rest.InClusterConfig: from its
// environment and the files in its volumes. It also returns the contents of the Pod's volumes by path.
func insideOf(ctx context.Context, s *story, leaf *corev1.Pod) (*rest.Config, map[string]string) {
	GinkgoHelper()
	files := map[string]string{}
	for _, v := range leaf.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.Secret == nil {
				continue
			}
			secret := until[corev1.Secret](ctx, s, x.Member(two), source.Secret.Name, Not(BeNil()))
			for _, item := range source.Secret.Items {
				Expect(secret.Data).To(HaveKey(item.Key))
				files[item.Path] = string(secret.Data[item.Key])
			}
		}
	}
	environment := map[string]string{}
	for _, e := range leaf.Spec.Containers[0].Env {
		environment[e.Name] = e.Value
	}
	return &rest.Config{
		Host:            "https://" + net.JoinHostPort(environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]),
		BearerToken:     files[corev1.ServiceAccountTokenKey],
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(files[corev1.ServiceAccountRootCAKey])},
	}, files
}

// whoIs returns the user that the host recognizes in a token.
func whoIs(ctx context.Context, token string, audiences ...string) authenticationv1.TokenReviewStatus {
	GinkgoHelper()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
	Expect(x.Host.API.Create(ctx, review)).To(Succeed())
	return review.Status
}

func apiAccess(status corev1.ConditionStatus) gomegatypes.GomegaMatcher {
	return HaveField("Status.Conditions", ContainElement(And(HaveField("Type", v1alpha1.PodAPIAccess), HaveField("Status", status))))
}

var _ = Describe("A Pod in a member", func() {
	It("uses the host's API server as its own ServiceAccount, with tokens that Xylem renews, until it is deleted", func(ctx SpecContext) {
		s := begin(ctx)
		apiServer(ctx, two)
		actingAs(ctx, nodeTwo)
		s.account(ctx, "app")
		s.claim(ctx, "data")
		root := s.pod(ctx, "app", using("data"), on(nodeTwo), runningAs("app"), projectingToken)
		s.running(ctx, "app", nodeTwo)
		leaf := until[corev1.Pod](ctx, s, x.Member(two), "app", Not(BeNil()))

		By("reading its own Pod, like client-go in the container")
		inside, files := insideOf(ctx, s, leaf)
		c, err := client.New(inside, client.Options{Mapper: x.Host.API.RESTMapper()})
		Expect(err).NotTo(HaveOccurred())
		var own corev1.Pod
		Expect(c.Get(ctx, client.ObjectKeyFromObject(root), &own)).To(Succeed())
		Expect(own.UID).To(Equal(root.UID))
		Expect(apierrors.IsForbidden(c.List(ctx, &corev1.SecretList{}, client.InNamespace(s.namespace)))).To(BeTrue())
		user := whoIs(ctx, inside.BearerToken).User
		Expect(user.Username).To(Equal("system:serviceaccount:" + s.namespace + ":app"))
		Expect(user.Extra).To(HaveKeyWithValue("authentication.kubernetes.io/pod-uid", authenticationv1.ExtraValue{string(root.UID)}))

		By("using the other token only for its audience")
		Expect(whoIs(ctx, files["vault-token"]).Authenticated).To(BeFalse())
		Expect(whoIs(ctx, files["vault-token"], vaultAudience).Authenticated).To(BeTrue())

		By("getting new tokens before these expire, while the leaf and its Secret stay")
		tokens := mirror.TokenSecretName(root.UID)
		secret, err := read[corev1.Secret](ctx, s, x.Member(two), tokens)
		Expect(err).NotTo(HaveOccurred())
		Expect(secret.Data).To(HaveKey(podspec.CAKey))
		until[corev1.Secret](ctx, s, x.Member(two), tokens, And(
			HaveField("UID", secret.UID), HaveField("Data", Not(ContainElement(BeEquivalentTo(files["vault-token"]))))))

		By("deleting the Pod: the host no longer accepts its tokens, and the member has none")
		s.deletePod(ctx, "app")
		gone[corev1.Pod](ctx, s, x.Host, "app")
		Eventually(func() bool { // the API server remembers a valid token for ten seconds
			return apierrors.IsUnauthorized(c.Get(ctx, client.ObjectKeyFromObject(root), &own))
		}).WithContext(ctx).Should(BeTrue())
		gone[corev1.Secret](ctx, s, x.Member(two), tokens)
	}, SpecTimeout(storyTime))

	It("reports that the manager may not act as the virtual node, and gets its token once it may", func(ctx SpecContext) {
		s := begin(ctx)
		apiServer(ctx, two)
		s.pod(ctx, "app", boundTo(nodeTwo))
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonNodeIdentityMissing, nodeTwo, "--api-server")
		s.noted(ctx, "Pod", "app", v1alpha1.ReasonNodeIdentityMissing)
		actingAs(ctx, nodeTwo)
		pod := until[corev1.Pod](ctx, s, x.Host, "app", apiAccess(corev1.ConditionTrue))
		until[corev1.Secret](ctx, s, x.Member(two), mirror.TokenSecretName(pod.UID), Not(BeNil()))
	}, SpecTimeout(storyTime))

	It("reports why the host issues no token", func(ctx SpecContext) {
		s := begin(ctx)
		apiServer(ctx, two)
		actingAs(ctx, nodeTwo)
		s.account(ctx, "app")
		s.pod(ctx, "app", boundTo(nodeTwo), runningAs("app"), projectingToken)
		pod := s.running(ctx, "app")
		tokens := mirror.TokenSecretName(pod.UID)
		until[corev1.Secret](ctx, s, x.Member(two), tokens, Not(BeNil()))
		Expect(x.Host.API.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "app"}})).To(Succeed())
		s.shown(ctx, "Pod", "app", v1alpha1.ReasonTokenRefused, `ServiceAccount "app"`)
		until[corev1.Secret](ctx, s, x.Member(two), tokens, HaveField("DeletionTimestamp", BeNil()), "the last tokens stay until they expire")
	}, SpecTimeout(storyTime))

	It("gets its Secrets through the virtual node's identity, if the manager may not read Secrets (--secrets-access=Node)", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		actingAs(ctx, nodeTwo)
		role := until[rbacv1.ClusterRole](ctx, s, x.Host, "xylem-manager-role", Not(BeNil()))
		granted := role.DeepCopy()
		Expect(role.Rules[0].Resources).To(ConsistOf("configmaps", "secrets"))
		role.Rules[0].Resources = []string{"configmaps"}
		Expect(x.Host.API.Update(ctx, role)).To(Succeed())
		ordinary := x.Manager
		Expect(ordinary.Stop()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			granted.ResourceVersion = ""
			Expect(x.Host.API.Update(ctx, granted)).To(Succeed())
			x.Manager = ordinary
			Expect(x.Manager.Start(ctx)).To(Succeed())
			Expect(x.AwaitReady(ctx, one)).To(Succeed())
		}, NodeTimeout(settle))
		limited, err := x.AnotherManager(ctx, "node-access", x.Fleet.Host, "--secrets-access=Node")
		Expect(err).NotTo(HaveOccurred())
		Expect(limited.Start(ctx)).To(Succeed())
		DeferCleanup(func() { Expect(limited.Stop()).To(Succeed()) })
		x.Manager = limited

		By("copying a Secret after the host has bound the Pod, whose leaf was pushed before")
		password := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "password"}, Data: map[string][]byte{"password": []byte("one")}}
		Expect(x.Host.API.Create(ctx, password)).To(Succeed())
		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeTwo), readingSecret("password"))
		s.running(ctx, "app", nodeTwo)
		copied := s.copies(ctx)
		until[corev1.Secret](ctx, s, x.Member(two), copied.NameOfCopy("password"), HaveField("Data", password.Data))
		s.bound(ctx, "data")

		By("reporting a Secret that the host lacks, and a node as which the manager may not act")
		s.claim(ctx, "other")
		s.pod(ctx, "missing", using("other"), on(nodeTwo), readingSecret("absent"))
		s.noted(ctx, "Pod", "missing", v1alpha1.ReasonReferenceMissing, `Secret "absent"`)
		s.pod(ctx, "elsewhere", boundTo(nodeOne), readingSecret("password"))
		s.shown(ctx, "Pod", "elsewhere", v1alpha1.ReasonNodeIdentityMissing, nodeOne, "--node-identity")
		gone[corev1.Pod](ctx, s, x.Member(one), "elsewhere")
	}, SpecTimeout(storyTime))

	It("gets no token, and no variables, unless its registration has apiServer", func(ctx SpecContext) {
		s := begin(ctx)
		actingAs(ctx, nodeOne)
		s.pod(ctx, "app", boundTo(nodeOne))
		s.running(ctx, "app", nodeOne)
		leaf := until[corev1.Pod](ctx, s, x.Member(one), "app", Not(BeNil()))
		Expect(leaf.Spec.Volumes).To(BeEmpty())
		Expect(leaf.Spec.Containers[0].Env).To(BeEmpty())
		s.pod(ctx, "vault", boundTo(nodeOne), projectingToken)
		s.shown(ctx, "Pod", "vault", v1alpha1.ReasonPodUnsupported, "serviceAccountToken")
	}, SpecTimeout(storyTime))
})
