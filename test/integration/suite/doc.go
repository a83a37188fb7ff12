// Package suite is what all suites of integration tests have in common that run on a harness.
package suite
