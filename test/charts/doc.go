// Package charts tests the Helm charts as Helm and a real API server see them: that
// what they render is taken, strictly and under the Pod Security level "restricted";
// that it says what config/ says; that wrong values are refused by name; that a
// release is installed, upgraded and removed in order; and that the alert rules fire.
//
// The programs are those that the Makefile builds: HELM and PROMTOOL name them.
// Without that they are run by `go tool`, which builds them.
package charts
