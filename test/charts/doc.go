// Package charts tests the Helm charts with Helm and a real API server. The API server accepts
// the rendered objects, strictly and with Pod Security level "restricted". The objects are
// those of config/. Wrong values are rejected by name. Releases can be installed, upgraded and
// removed. The alert rules fire.
//
// HELM and PROMTOOL name the programs, which the Makefile builds. Without them, `go tool`
// builds and runs them.
package charts
