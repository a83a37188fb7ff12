// Package rig provides the system under test: a host and two members, a proxy of test/fault/proxy
// in front of each, and the manager as a separate process that reaches all three only through the
// proxies. A witness watches all three clusters directly, and a keeper restarts the manager
// whenever it ends.
package rig
