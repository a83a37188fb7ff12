package nodeapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Guard authenticates and authorizes requests.
type Guard struct {
	Authenticator authenticator.Request
	Authorizer    authorizer.Authorizer
	Log           logr.Logger
}

// AuthenticateRequest returns the user of a request. It removes the credentials from the request
// header.
func (g *Guard) AuthenticateRequest(r *http.Request) (user.Info, *Failure) {
	response, ok, err := g.Authenticator.AuthenticateRequest(r)
	if err != nil || !ok || response.User.GetName() == user.Anonymous {
		if err != nil {
			g.Log.V(1).Info("could not authenticate a request", "peer", r.RemoteAddr, "cause", err.Error())
		}
		if isReviewError(err) {
			return nil, errUnreviewed
		}
		return nil, ErrUnauthenticated
	}
	return response.User, nil
}

// errUnreviewed reports that the host did not review the caller's credentials or permission. It is no
// refusal.
var errUnreviewed = UnavailableFailure("the host's API server did not review the request. Try again")

// isReviewError reports whether an error is that of a request to the host.
func isReviewError(err error) bool {
	if all, several := err.(utilerrors.Aggregate); several { //nolint:errorlint // the authenticators' errors are not wrapped
		return slices.ContainsFunc(all.Errors(), isReviewError)
	}
	var status apierrors.APIStatus
	var network net.Error
	return errors.As(err, &status) || errors.As(err, &network)
}

// CheckNodeAccess returns nil if the host allows a user to access a subresource of a node, or of all nodes if the
// name is empty. Otherwise, it returns refused, or another failure if the host does not respond.
func (g *Guard) CheckNodeAccess(ctx context.Context, who user.Info, verb, subresource, node string, refused *Failure) *Failure {
	decision, _, err := g.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: who, Verb: verb, APIVersion: "v1", Resource: "nodes", Subresource: subresource, Name: node, ResourceRequest: true,
	})
	if err != nil {
		g.Log.Info("denied a request because its SubjectAccessReview failed", "user", who.GetName(), "cause", err.Error())
		return errUnreviewed
	}
	if decision != authorizer.DecisionAllow {
		return refused
	}
	return nil
}
