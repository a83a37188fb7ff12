// Package bundle implements `kubectl xylem support-bundle`, which archives what a bug report needs,
// without secrets. Package redact decides what leaves the clusters.
package bundle
