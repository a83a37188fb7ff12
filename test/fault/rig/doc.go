// Package rig is what faults are injected into: a host and two members, a proxy
// of test/fault/proxy in front of each, and the manager as a process of its own
// that reaches all three through these proxies only. A witness watches all three
// past the proxies, and a keeper starts the manager again whenever it ends.
package rig
