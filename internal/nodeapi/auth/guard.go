package auth

import (
	"context"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/xylem-io/xylem/internal/nodeapi/failure"
)

// Guard authenticates and authorizes requests.
type Guard struct {
	Authenticator authenticator.Request
	Authorizer    authorizer.Authorizer
	Log           logr.Logger
}

// Authenticate returns the user of a request. It removes the credentials from the request
// header.
func (g *Guard) Authenticate(r *http.Request) (user.Info, *failure.Failure) {
	response, ok, err := g.Authenticator.AuthenticateRequest(r)
	if err != nil || !ok || response.User.GetName() == user.Anonymous {
		if err != nil {
			g.Log.V(1).Info("could not authenticate a request", "peer", r.RemoteAddr, "cause", err.Error())
		}
		return nil, failure.ErrUnauthenticated
	}
	return response.User, nil
}

// May reports whether the host allows a user to access a subresource of a node, or of all nodes if
// the name is empty. It reports false if the host does not respond.
func (g *Guard) May(ctx context.Context, who user.Info, verb, subresource, node string) bool {
	decision, _, err := g.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: who, Verb: verb, APIVersion: "v1", Resource: "nodes", Subresource: subresource, Name: node, ResourceRequest: true,
	})
	if err != nil {
		g.Log.Info("denied a request because its SubjectAccessReview failed", "user", who.GetName(), "cause", err.Error())
	}
	return err == nil && decision == authorizer.DecisionAllow
}
