// Package auth authenticates and authorizes requests as a kubelet does: by a client
// certificate of the CA that the host publishes for it, or a bearer token (TokenReview),
// and by the rights on the node's subresources (SubjectAccessReview). Nobody is anonymous.
package auth
