package rootconfig

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

// issuer is a client that issues tokens and records the requests.
type issuer struct {
	client.Client
	expires  metav1.Time
	accounts []string
	requests []authenticationv1.TokenRequestSpec
}

func (i *issuer) SubResource(string) client.SubResourceClient { return tokenClient{issuer: i} }

type tokenClient struct {
	client.SubResourceClient
	issuer *issuer
}

func (c tokenClient) Create(_ context.Context, account client.Object, review client.Object, _ ...client.SubResourceCreateOption) error {
	request, is := review.(*authenticationv1.TokenRequest)
	if !is {
		return errors.New("not a TokenRequest")
	}
	c.issuer.accounts, c.issuer.requests = append(c.issuer.accounts, client.ObjectKeyFromObject(account).String()), append(c.issuer.requests, request.Spec)
	request.Status.Token, request.Status.ExpirationTimestamp = "token", c.issuer.expires
	return nil
}

func podProjectingTokens() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "p1"},
		Spec: corev1.PodSpec{NodeName: here.NodeName, ServiceAccountName: "db", Volumes: []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "vault", Audience: "vault", ExpirationSeconds: new(int64(1000))}},
			},
		}}}}},
	}
}

// All of a Pod's tokens are requested for its own account and bound to it, and requested again when the first is due.
func TestReadTokens(t *testing.T) {
	there := &issuer{}
	m := here
	m.APIServer = &mirror.APIServer{Host: "10.0.0.1", Port: "6443", CABundle: []byte("ca")}
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	there.expires = metav1.NewTime(clock.Now().Add(800 * time.Second)) // less than requested
	r := &podTokens{Link: &member.Link{Member: m, Clock: clock, NodeIdentity: guarded.NewNodeIdentity(func(string) (client.Client, error) { return there, nil }, m.Registration, guarded.HostOnlyGuard{})}, Options: Options{RenewAfter: 0.5}}
	pod := podProjectingTokens()
	o := observed{key: types.NamespacedName{Namespace: "shop", Name: mirror.TokenSecretName(pod.UID)}, users: []*corev1.Pod{pod}}
	root, found, pause, err := r.readRoot(t.Context(), &o)
	if err != nil || !found || pause != 400*time.Second {
		t.Fatalf("found %t, again after %s, error %v", found, pause, err)
	}
	wantData := map[string][]byte{podspec.CAKey: []byte("ca")}
	for _, token := range podspec.TokensOfPod(pod) {
		wantData[token.Key] = []byte("token")
	}
	if diff := cmp.Diff(wantData, root.Data); diff != "" || len(wantData) != 3 {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	bound := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "app", UID: "p1"}
	want := []authenticationv1.TokenRequestSpec{
		{ExpirationSeconds: new(int64(3600)), BoundObjectRef: bound},
		{Audiences: []string{"vault"}, ExpirationSeconds: new(int64(1000)), BoundObjectRef: bound},
	}
	if diff := cmp.Diff(want, there.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"shop/db", "shop/db"}, there.accounts); diff != "" {
		t.Errorf("accounts (-want +got):\n%s", diff)
	}
}

// A Pod needs tokens only while it runs in this member, and only if the registration has apiServer.
func TestNeedsTokens(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		off    bool
		want   bool
	}{
		"a Pod that projects tokens":  {want: true},
		"no apiServer":                {off: true},
		"a Pod without tokens":        {change: func(p *corev1.Pod) { p.Spec.Volumes = nil }},
		"a Pod that is not bound yet": {change: func(p *corev1.Pod) { p.Spec.NodeName = "" }},
		"a Pod on another node":       {change: func(p *corev1.Pod) { p.Spec.NodeName = "other" }},
		"a finished Pod":              {change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }},
		"a Pod that is being deleted": {change: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, want: true},
	} {
		m := here
		if !tc.off {
			m.APIServer = &mirror.APIServer{}
		}
		pod := podProjectingTokens()
		if tc.change != nil {
			tc.change(pod)
		}
		if got := needsTokens(pod, m); got != tc.want {
			t.Errorf("%s: needs tokens: %t, want %t", name, got, tc.want)
		}
	}
}

func TestTokenProblem(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "db", errors.New(why))
	}
	notYet := forbidden(`User "system:node:kosmos-cluster38" cannot create resource "serviceaccounts/token": no relationship found`)
	for name, tc := range map[string]struct {
		err   error
		bound time.Duration
		want  string
	}{
		"the manager may not act as the node":    {forbidden(`User "manager" cannot impersonate-on:arbitrary-node:create resource "serviceaccounts/token"`), time.Second, v1alpha1.ReasonNodeIdentityMissing},
		"an older host":                          {forbidden(`User "manager" cannot impersonate resource "users" in API group ""`), time.Hour, v1alpha1.ReasonNodeIdentityMissing},
		"the authorizer does not know the Pod":   {notYet, time.Second, ""},
		"the authorizer still refuses the token": {notYet, time.Minute, v1alpha1.ReasonTokenRefused},
		"no ServiceAccount":                      {apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, "db"), time.Minute, v1alpha1.ReasonTokenRefused},
		"an overloaded host":                     {apierrors.NewTooManyRequestsError("later"), time.Minute, ""},
		"a failing host":                         {apierrors.NewInternalError(errors.New("no leader")), time.Minute, ""},
		"no connection":                          {errors.New("connection refused"), time.Minute, ""},
	} {
		pod := podProjectingTokens()
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-tc.bound))}}
		problem := (&podTokens{Link: &member.Link{Member: here, Clock: clocktesting.NewFakePassiveClock(now)}}).tokenProblem(pod, tc.err)
		got := ""
		if problem != nil {
			got = problem.Reason
		}
		if got != tc.want {
			t.Errorf("%s: reported %q, want %q", name, got, tc.want)
		}
	}
}
