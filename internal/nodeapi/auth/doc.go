// Package auth authenticates and authorizes requests as a kubelet does: with a client
// certificate signed by the CA that the host publishes, or a bearer token (TokenReview), and
// then with the caller's permissions on the node's subresources (SubjectAccessReview). It rejects
// anonymous requests.
package auth
