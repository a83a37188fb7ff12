package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// served returns a reader for a server with the handler. Handlers return responses that are hard
// to provoke in real API servers. The integration tests read from real ones.
func served(t *testing.T, handler http.HandlerFunc) (*inspect.Reader, *inspect.Misses) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	m := &inspect.Misses{}
	env := command.NewEnv(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}, clock.RealClock{})
	r, err := inspect.NewReader(env, &rest.Config{Host: server.URL}, "a", m, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	r.MostObjects = objectsMost
	return r, m
}

func status(w http.ResponseWriter, code int, reason metav1.StatusReason, kind string) {
	s := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "why"}
	if kind != "" {
		s.Details = &metav1.StatusDetails{Kind: kind}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(s); err != nil {
		panic(err)
	}
}

func TestPath(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   nodePath
	}{
		"healthy": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }, nodePath{Code: 200}},
		"the server is unavailable": {func(w http.ResponseWriter, _ *http.Request) {
			status(w, 503, metav1.StatusReasonServiceUnavailable, "")
		}, nodePath{Code: 503}},
		"the user has no access to nodes/proxy": {func(w http.ResponseWriter, _ *http.Request) { status(w, 403, metav1.StatusReasonForbidden, "nodes") }, nodePath{Code: 403, Own: true}},
		"the manager rejects the request":       {func(w http.ResponseWriter, _ *http.Request) { status(w, 403, metav1.StatusReasonForbidden, "") }, nodePath{Code: 403}},
		"no response":                           {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nodePath{}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := served(t, func(w http.ResponseWriter, q *http.Request) {
				if q.URL.Path != "/api/v1/nodes/kosmos-a/proxy/healthz" {
					t.Errorf("requested path %s, want the healthz of kosmos-a", q.URL.Path)
				}
				tc.answer(w, q)
			})
			got := readPathToManager(t.Context(), r, "kosmos-a")
			if (got.Detail == "") != (got.Code == http.StatusOK) {
				t.Errorf("got detail %q with code %d, want a detail for errors only", got.Detail, got.Code)
			}
			got.Detail = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// pageSize is the size of the pages that package inspect requests.
const pageSize = 500

// podServer serves the discovery of Pods, and uses the handler for lists of Pods.
func podServer(lists http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["list"]}]}`)
		case "/api/v1/pods":
			lists(w, r)
		default:
			status(w, http.StatusNotFound, metav1.StatusReasonNotFound, "")
		}
	}
}

// TestProxied checks for which addresses of nodes the API server refuses to proxy requests.
func TestProxied(t *testing.T) {
	for address, want := range map[string]bool{"10.1.2.3": true, "192.168.1.1": true, "fd00::1": true, "manager.example.com": true, "127.0.0.1": false, "::1": false, "169.254.1.1": false} {
		node := &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}}}
		if got := isProxiedByAPIServer(node); got != want {
			t.Errorf("%s: got %t, want %t", address, got, want)
		}
	}
}

func TestList(t *testing.T) {
	page := func(next string) string {
		return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, next, strings.TrimSuffix(strings.Repeat(`{"metadata":{"name":"p"}},`, pageSize), ","))
	}
	for name, tc := range map[string]struct {
		lists  http.HandlerFunc
		items  int
		read   bool
		missed int
	}{
		"two pages": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, page(map[string]string{"": "more"}[r.URL.Query().Get("continue")]))
		}, 2 * pageSize, true, 0},
		"endless pages": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, page("more")) }, objectsMost, false, 1},
		"forbidden":     {func(w http.ResponseWriter, _ *http.Request) { status(w, 403, metav1.StatusReasonForbidden, "pods") }, 0, false, 1},
		"not served":    {func(w http.ResponseWriter, _ *http.Request) { status(w, 404, metav1.StatusReasonNotFound, "") }, 0, true, 0},
		"the second page fails": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("continue") != "" {
				status(w, http.StatusGone, metav1.StatusReasonExpired, "")
				return
			}
			fmt.Fprint(w, page("more"))
		}, pageSize, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, m := served(t, podServer(func(w http.ResponseWriter, q *http.Request) {
				if got := q.URL.Query().Get("limit"); got != fmt.Sprint(pageSize) {
					t.Errorf("got limit %q, want %d", got, pageSize)
				}
				tc.lists(w, q)
			}))
			got := inspect.ReadList(t.Context(), r, "Pods", &corev1.PodList{}, podsOfList)
			if len(got.Items) != tc.items || got.Read != tc.read || len(m.AllMissing()) != tc.missed {
				t.Errorf("got %d items, read %t, missing %+v, want %d, %t, %d missing", len(got.Items), got.Read, m.AllMissing(), tc.items, tc.read, tc.missed)
			}
		})
	}
}
