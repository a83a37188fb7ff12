// Package board reads a Grafana dashboard as Grafana does. It supports the features that Xylem's
// dashboard uses: the grid, variables, intervals, legends, units and thresholds. It rejects all
// other features, so that the picture never differs from Grafana's.
//
// It depends only on the standard library, because its tests are part of make test, which must
// not compile Prometheus.
package board
