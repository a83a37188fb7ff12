// Package grants compares what RBAC grants to an account with the account's requests in the audit
// log. An unused permission is useless to Xylem, but not to an attacker.
package grants
