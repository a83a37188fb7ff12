// Command docs makes the pages that list what operators see: internal/REASONS.md,
// every condition and reason with what to do, of the comments of api/v1alpha1, and
// internal/METRICS.md, every metric, of its definition. With --verify it writes
// nothing and fails if a page is not as generated.
//
// A reason that is no constant of api/v1alpha1, or of which nothing says what to do,
// fails too, so that nothing is reported that the page does not have.
package main
