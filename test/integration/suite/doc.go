// Package suite contains the code that all integration test suites on a harness share.
package suite
