// Package bundle implements `kubectl xylem support-bundle`: an archive with what a bug report
// needs, but without secrets. Package redact decides what leaves the clusters.
package bundle
