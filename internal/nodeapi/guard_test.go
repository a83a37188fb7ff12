package nodeapi

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// An outage of the host is no refusal: the listener would otherwise limit an address that did nothing wrong.
func TestOutageIsNoRefusal(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"no credentials":                  {nil, http.StatusUnauthorized},
		"an invalid token":                {errors.New("[invalid bearer token]"), http.StatusUnauthorized},
		"a certificate of another CA":     {utilerrors.NewAggregate([]error{x509.UnknownAuthorityError{}}), http.StatusUnauthorized},
		"the host is unreachable":         {utilerrors.NewAggregate([]error{errors.New("no certificate"), refused}), http.StatusServiceUnavailable},
		"the host responds with an error": {apierrors.NewInternalError(errors.New("etcd")), http.StatusServiceUnavailable},
	} {
		g := Guard{
			Authenticator: authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) { return nil, false, tc.err }),
			Authorizer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
				return authorizer.DecisionNoOpinion, "", tc.err
			}),
		}
		if _, failed := g.AuthenticateRequest(httptest.NewRequest(http.MethodGet, "/", nil)); failed == nil || failed.Code != tc.want {
			t.Errorf("%s: %+v, want code %d", name, failed, tc.want)
		}
		failed := g.CheckNodeAccess(t.Context(), &user.DefaultInfo{}, "get", "proxy", "", ErrUnauthorized)
		if want := ErrUnauthorized; tc.err == nil && failed != want || tc.err != nil && failed == want {
			t.Errorf("%s: the check returns %+v", name, failed)
		}
	}
}
