// Command docs generates the pages that list what operators see: internal/REASONS.md, every
// condition and reason with what to do, from the comments of api/v1alpha1, and internal/METRICS.md,
// every metric, from its definition. With --verify, it writes nothing and fails if a page is out of
// date.
//
// It also fails if a reason is not a constant of api/v1alpha1, or if its comment does not describe
// what to do. So every reported reason is on the page.
package main
