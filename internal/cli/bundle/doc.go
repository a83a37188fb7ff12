// Package bundle implements `kubectl xylem support-bundle`: an archive with what a report needs,
// and no secrets. Package redact decides what leaves the clusters.
package bundle
