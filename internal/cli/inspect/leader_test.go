package inspect

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// A Lease is judged by the API server's clock. The absence of a leader is reported only if it is known.
func TestProblem(t *testing.T) {
	server := time.Date(2020, 1, 1, 12, 0, 0, 0, time.UTC) // far from this machine's clock
	lease := func(holder string, renewed time.Duration, lasts int32) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: server.Add(-renewed)}, LeaseDurationSeconds: &lasts}}
	}
	for name, tc := range map[string]struct {
		lease *coordinationv1.Lease
		code  int
		want  string // a part of the problem, or empty if there is none
	}{
		"a manager is the leader":       {lease: lease("a", 10*time.Second, 15), code: http.StatusOK},
		"the Lease lasts long":          {lease: lease("a", 90*time.Second, 60), code: http.StatusOK},
		"the leader was killed":         {lease: lease("a", 5*time.Minute, 15), code: http.StatusOK, want: "was last renewed 5m0s ago"},
		"13 s later":                    {lease: lease("a", 5*time.Minute+13*time.Second, 15), code: http.StatusOK, want: "was last renewed 5m0s ago"},
		"the leader stopped":            {lease: lease("", 10*time.Second, 15), code: http.StatusOK, want: "has no holder"},
		"the Lease was never renewed":   {lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("a")}}, code: http.StatusOK, want: "was never renewed"},
		"the user may not read it":      {lease: lease("", 0, 15), code: http.StatusForbidden},
		"Xylem is in another namespace": {lease: lease("", 0, 15), code: http.StatusNotFound},
		"the host fails":                {lease: lease("", 0, 15), code: http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			path := ""
			host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				path = r.URL.Path
				w.Header().Set("Date", server.Format(http.TimeFormat))
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.code)
				tc.lease.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
				_ = json.NewEncoder(w).Encode(tc.lease)
			}))
			defer host.Close()
			got := LeaderProblem(t.Context(), &rest.Config{Host: host.URL + "/clusters/host"}, "xylem-system")
			if (got != "") != (tc.want != "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if want := "/clusters/host/apis/coordination.k8s.io/v1/namespaces/xylem-system/leases/"; !strings.HasPrefix(path, want) {
				t.Errorf("read %s, want %s…", path, want)
			}
		})
	}
}

func TestProblemWithoutResponse(t *testing.T) {
	host := httptest.NewServer(http.NotFoundHandler())
	host.Close()
	if got := LeaderProblem(t.Context(), &rest.Config{Host: host.URL}, "xylem-system"); got != "" {
		t.Errorf("got %q without a response", got)
	}
}
