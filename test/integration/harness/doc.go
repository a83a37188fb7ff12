// Package harness runs Xylem as its users do, on real clusters: a host and members from
// test/controlplane, with config/ applied, and the manager as a separate process with the tokens of
// its ServiceAccounts. It does not depend on a test framework, so that stories, fault injection and
// benchmarks can use it.
package harness
