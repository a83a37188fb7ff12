// Package engine runs scenarios with injected faults. It first runs a scenario without faults and
// counts the writes. Then it repeats the scenario with a fault at one or two of the writes. Package
// oracle judges each run.
package engine
