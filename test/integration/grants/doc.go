// Package grants compares what RBAC grants to an account with what the account
// asked the API for, by the audit log: what is granted and never used is a right
// that nobody needs and a thief would have.
package grants
