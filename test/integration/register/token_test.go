package register_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/test/integration/harness"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// renewAfter makes the manager renew tokens after a few seconds if they have the shortest lifetime
// that an API server grants, which is ten minutes.
const renewAfter = "--renew-tokens-after=0.005"

// seen contains all tokens that token has returned.
var seen []string

// token returns the token in a registration's Secret.
func token(ctx context.Context, name string) string {
	GinkgoHelper()
	t := access.KubeconfigToken(secret(ctx, name).Data[v1alpha1.KubeconfigKey])
	Expect(t).NotTo(BeEmpty())
	seen = append(seen, t)
	return t
}

// renewed waits until the token has changed and the manager uses the new one, and returns it.
func renewed(ctx context.Context, name, than string) string {
	GinkgoHelper()
	now := than
	Eventually(ctx, func(g Gomega) {
		now = token(ctx, name)
		g.Expect(now).NotTo(Equal(than))
		said, ok := access.ParseAccountToken(now)
		g.Expect(ok).To(BeTrue())
		g.Expect(registration(ctx, name).Status.TokenExpires).NotTo(BeNil())
		g.Expect(registration(ctx, name).Status.TokenExpires.Unix()).To(Equal(said.Expires.Unix()))
	}).WithContext(ctx).Should(Succeed())
	return now
}

func condition(ctx context.Context, name, kind string) *metav1.Condition {
	GinkgoHelper()
	return meta.FindStatusCondition(registration(ctx, name).Status.Conditions, kind)
}

// asked returns the number of tokens that the manager has requested from member one.
func asked(ctx context.Context) int {
	GinkgoHelper()
	requests, err := x.Member(one).Audit().Since(ctx, 0)
	Expect(err).NotTo(HaveOccurred())
	n := 0
	for _, r := range requests.By("system:serviceaccount:xylem-system:" + account(ctx)) {
		if r.Verb == "create" && r.Resource == "serviceaccounts/token" {
			n++
		}
	}
	return n
}

func log() string {
	GinkgoHelper()
	content, err := os.ReadFile(x.Manager.LogPath())
	Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// links returns how many links to a member began according to a log, and how often the member was
// unreachable, as it may be if its API server is slow.
func links(log, name string) (began, unreachable int) {
	for line := range strings.Lines(log) {
		if !strings.Contains(line, fmt.Sprintf(`"cluster": %q`, name)) {
			continue
		}
		if strings.Contains(line, "\tconnected\t") {
			began++
		}
		if strings.Contains(line, "\tnot connected\t") && strings.Contains(line, fmt.Sprintf(`"reason": %q`, v1alpha1.ReasonUnreachable)) {
			unreachable++
		}
	}
	return began, unreachable
}

// refusal returns a policy that makes the host reject the manager's updates to Secrets, and the
// policy's binding.
func refusal() []client.Object {
	return suite.Denying("no-secrets", corev1.SchemeGroupVersion.WithResource("secrets"),
		admissionv1.Validation{Expression: "request.userInfo.username != '" + harness.HostUser + "'", Message: "not now"}, admissionv1.Update)
}

// renewals defines the stories about tokens. Those that are not core register the member themselves if
// make test has run the first one.
func renewals() {
	const name = "renewed"
	It("lets the manager renew the token repeatedly, without an interruption", suite.Core, SpecTimeout(storyTime), func(ctx SpecContext) {
		_, _, err := plugin(ctx, "register", name, "--member-kubeconfig", admin(one), "--token-lifetime", "10m")
		Expect(err).NotTo(HaveOccurred())
		first := token(ctx, name)
		said, ok := access.ParseAccountToken(first)
		Expect(ok).To(BeTrue())
		Expect(said.Expires.Sub(said.Issued)).To(Equal(10 * time.Minute))
		connected := condition(ctx, name, v1alpha1.ConditionConnected)
		began, lost := links(log(), name)
		Expect(began).To(BeNumerically(">", 0))
		second := renewed(ctx, name, first)
		renewed(ctx, name, second)
		Eventually(ctx, func() *metav1.Condition { return condition(ctx, name, v1alpha1.ConditionTokenFresh) }).WithContext(ctx).
			Should(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonTokenRenewed)))
		connectedNow := condition(ctx, name, v1alpha1.ConditionConnected)
		beganNow, lostNow := links(log(), name)
		Expect(beganNow-began).To(BeNumerically("<=", lostNow-lost), "only the loss of a connection may end the link")
		if lostNow == lost {
			Expect(connectedNow.LastTransitionTime).To(Equal(connected.LastTransitionTime))
		}
		use(ctx, "fresh", "kosmos-renewed")
	})

	It("is warned that a token that is still valid cannot be renewed, and can register the member again", SpecTimeout(storyTime), func(ctx SpecContext) {
		if apierrors.IsNotFound(x.Host.API.Get(ctx, client.ObjectKey{Name: name}, &v1alpha1.ClusterRegistration{})) {
			_, _, err := plugin(ctx, "register", name, "--member-kubeconfig", admin(one), "--token-lifetime", "10m")
			Expect(err).NotTo(HaveOccurred())
			renewed(ctx, name, token(ctx, name))
		}
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account(ctx)}}
		Expect(x.Member(one).API.Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
		before := role.DeepCopy()
		role.Rules = role.Rules[:1]
		Expect(x.Member(one).API.Patch(ctx, role, client.MergeFrom(before))).To(Succeed())
		Eventually(ctx, func() *metav1.Condition { return condition(ctx, name, v1alpha1.ConditionTokenFresh) }).WithContext(ctx).Should(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonTokenNotRenewed),
			HaveField("Message", And(ContainSubstring("valid until "), ContainSubstring("kubectl xylem register` for this registration again")))))
		Eventually(ctx, func(g Gomega) {
			var events eventsv1.EventList
			g.Expect(x.Host.API.List(ctx, &events)).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(HaveField("Reason", v1alpha1.ReasonTokenNotRenewed), HaveField("Regarding.Name", name))))
		}).WithContext(ctx).Should(Succeed())
		Expect(condition(ctx, name, v1alpha1.ConditionConnected).Status).To(Equal(metav1.ConditionTrue))

		_, _, err := plugin(ctx, "register", name, "--member-kubeconfig", admin(one), "--token-lifetime", "10m")
		Expect(err).NotTo(HaveOccurred())
		renewed(ctx, name, token(ctx, name))
		Eventually(ctx, func() *metav1.Condition { return condition(ctx, name, v1alpha1.ConditionTokenFresh) }).WithContext(ctx).
			Should(HaveField("Status", metav1.ConditionTrue))
	})

	It("has a working token even if the manager is killed between the member's response and the write to the Secret", SpecTimeout(storyTime), func(ctx SpecContext) {
		for _, obj := range refusal() {
			Expect(x.Host.API.Create(ctx, obj)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(x.Host.API.Delete(ctx, obj))).To(Succeed()) }, NodeTimeout(settle))
		}
		Eventually(ctx, func() *metav1.Condition { return condition(ctx, name, v1alpha1.ConditionTokenFresh) }).WithContext(ctx).
			Should(HaveField("Message", ContainSubstring("not now")))
		Expect(x.Manager.Kill()).To(Succeed())
		held, before := token(ctx, name), asked(ctx)
		for _, obj := range refusal() {
			Expect(x.Host.API.Delete(ctx, obj)).To(Succeed())
		}
		Expect(x.Manager.Start(ctx)).To(Succeed())
		renewed(ctx, name, held)
		Expect(asked(ctx)).To(BeNumerically(">", before))
		use(ctx, "killed", "kosmos-renewed")
	})

	It("can find a member's tokens only in the Secret", SpecTimeout(storyTime), func(ctx SpecContext) {
		texts := map[string]string{"the log": log()}
		for where, list := range map[string]client.ObjectList{"events": &eventsv1.EventList{}, "registrations": &v1alpha1.ClusterRegistrationList{}} {
			Expect(x.Host.API.List(ctx, list)).To(Succeed())
			text, err := json.Marshal(list)
			Expect(err).NotTo(HaveOccurred())
			texts[where] = string(text)
		}
		Expect(len(seen)).To(BeNumerically(">=", 3))
		for where, text := range texts {
			Expect(text).NotTo(BeEmpty())
			for _, t := range seen {
				Expect(strings.Contains(text, t)).To(BeFalse(), "%s must not contain a token", where)
			}
		}
		_, _, err := plugin(ctx, "deregister", name, "--yes", "--member-kubeconfig", admin(one))
		Expect(err).NotTo(HaveOccurred())
	})
}
