// Package grants compares an account's RBAC permissions with its requests in the audit log. An
// unused permission is useless to Xylem, but not to an attacker.
package grants
