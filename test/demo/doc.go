// Command demo shows Xylem at work on real control planes, on loopback: a host
// and two members are started, the manager runs as its own process with the
// rights of config/rbac, and the example of config/samples/nginx.yaml is applied
// in the host. What happens on each side is shown as it happens; claims are
// grown and deleted; every step is checked, and a table of the checks, of the
// API writes and of the times ends it.
//
// On a terminal the clusters stay up afterwards, until Ctrl-C. Without one, or
// with DEMO_EXIT set, the demo ends after its checks. It fails unless all is as
// it should be. NO_COLOR keeps colours off.
//
// Run it with make demo, which builds what it needs.
package main
