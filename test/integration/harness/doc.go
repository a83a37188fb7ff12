// Package harness runs Xylem as its users do, on real clusters: a host and
// members from test/controlplane, config/ applied to them, and the manager as a
// process of its own, with the token of its ServiceAccount in the host and that
// of config/member in each member.
//
// It knows nothing of any test framework, so that stories, fault injection and
// benchmarks can all stand on it.
package harness
