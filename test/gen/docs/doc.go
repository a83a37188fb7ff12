// Command docs generates the pages that list what operators see. internal/REASONS.md has every
// condition and reason, and what to do about it, from the comments in api/v1alpha1.
// internal/METRICS.md has every metric, from its definition. With --verify, the command writes
// nothing and fails if a page is out of date.
//
// It also fails if a reason is not a constant in api/v1alpha1, or if its comment does not describe
// what to do. This ensures that every reason that Xylem reports is on the page.
package main
