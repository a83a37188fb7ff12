// Package suite has the common part of all suites of integration tests that run on a harness.
package suite
