// Command demo shows Xylem on real control planes that run on loopback. It starts a host and two
// members, runs the manager as a separate process with the permissions in config/rbac, and applies
// the example config/samples/nginx.yaml in the host. It shows what happens in each cluster, expands
// and deletes claims, and checks every step. At the end, it prints tables of the checks, the API
// writes and the times.
//
// On a terminal, the clusters run until Ctrl-C. Without one, or with DEMO_EXIT set, the demo
// ends after its checks. It fails if any check fails. NO_COLOR disables colors.
//
// Run it with make demo, which builds everything that it needs.
package main
