package proxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	type want struct {
		Request Request
		Changes bool
	}
	for target, expected := range map[string]want{
		"GET /healthz":             {},
		"GET /apis/storage.k8s.io": {},
		"GET /api/v1/pods":         {Request{Verb: "list", Resource: "pods"}, false},
		"GET /api/v1/namespaces/a/pods?watch=true": {
			Request{Verb: "watch", Resource: "pods", Namespace: "a"}, false},
		"GET /api/v1/namespaces/a": {Request{Verb: "get", Resource: "namespaces", Name: "a"}, false},
		"PUT /api/v1/namespaces/a/finalize": {
			Request{Verb: "update", Resource: "namespaces", Name: "a", Subresource: "finalize"}, true},
		"POST /api/v1/namespaces": {Request{Verb: "create", Resource: "namespaces"}, true},
		"POST /api/v1/namespaces/a/pods": {
			Request{Verb: "create", Resource: "pods", Namespace: "a"}, true},
		"POST /api/v1/namespaces/a/pods?dryRun=All": {
			Request{Verb: "create", Resource: "pods", Namespace: "a"}, false},
		"PATCH /api/v1/namespaces/a/persistentvolumeclaims/c/status": {
			Request{Verb: "patch", Resource: "persistentvolumeclaims", Namespace: "a", Name: "c", Subresource: "status"}, true},
		"DELETE /apis/cluster.xylem.io/v1alpha1/clusterregistrations/r": {
			Request{Verb: "delete", Group: "cluster.xylem.io", Resource: "clusterregistrations", Name: "r"}, true},
		"DELETE /apis/apps/v1/namespaces/a/deployments": {
			Request{Verb: "deletecollection", Group: "apps", Resource: "deployments", Namespace: "a"}, true},
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews": {
			Request{Verb: "create", Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}, false},
		"POST /api/v1/namespaces/a/serviceaccounts/s/token": {
			Request{Verb: "create", Resource: "serviceaccounts", Namespace: "a", Name: "s", Subresource: "token"}, false},
	} {
		t.Run(target, func(t *testing.T) {
			method, url, _ := strings.Cut(target, " ")
			r := httptest.NewRequest(method, url, http.NoBody)
			got := want{Request: parse(r)}
			got.Changes = changes(r, got.Request)
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestKeyHasNoNames(t *testing.T) {
	r := Request{Cluster: "host", Verb: "patch", Resource: "persistentvolumeclaims", Subresource: "status", Namespace: "a", Name: "b"}
	if got, want := r.Key(), "host patch persistentvolumeclaims/status"; got != want {
		t.Errorf("key %q, want %q", got, want)
	}
}
