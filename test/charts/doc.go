// Package charts tests the Helm charts with Helm and a real API server. It checks that:
//
//   - the API server accepts the rendered objects, with strict validation and Pod Security level
//     "restricted", and they are the same as the objects in config/;
//   - the charts reject wrong values with a message that names them;
//   - releases can be installed, upgraded and removed;
//   - the alert rules fire.
//
// The environment variables HELM and PROMTOOL contain the paths of the programs, which the
// Makefile builds. If they are not set, `go tool` builds the programs.
package charts
