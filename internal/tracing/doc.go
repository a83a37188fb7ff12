// Package tracing exports the steps of claims as OpenTelemetry spans, using OTLP over gRPC.
//
// A claim has one trace, whose IDs are derived from the claim's UID. So a different or restarted
// replica that exports the same claim again produces the same trace. Spans are queued in memory. If
// the collector does not accept them, they are dropped. The manager logs this only once until an
// export succeeds again. No controller waits for an export.
package tracing
