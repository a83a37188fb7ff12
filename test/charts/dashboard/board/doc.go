// Package board reads a Grafana dashboard as Grafana does, as far as Xylem's goes: its
// grid, variables, intervals, legends, units, thresholds. What it does not know it
// refuses, so that nothing is drawn other than Grafana would.
//
// It depends on nothing but the standard library: its tests are part of make test,
// which is not to compile Prometheus for them.
package board
