// Package suite contains the common part of all integration test suites that run on a harness.
package suite
