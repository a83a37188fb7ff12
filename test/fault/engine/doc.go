// Package engine runs scenarios under faults. It first runs a scenario without faults and counts the
// writes. Then it repeats the scenario with a fault at one or two of the writes. Package oracle
// judges each end.
package engine
