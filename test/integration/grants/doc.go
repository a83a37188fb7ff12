// Package grants compares what RBAC grants to an account with the account's requests in the audit
// log. A permission that is never used is useless to Xylem, but not to a thief.
package grants
