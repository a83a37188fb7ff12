// Package board reads a Grafana dashboard as Grafana does, with the features that Xylem's uses:
// its grid, variables, intervals, legends, units and thresholds. It rejects unknown features,
// so that the picture never differs from Grafana's.
//
// It depends only on the standard library, because its tests are part of make test, which must
// not compile Prometheus.
package board
