// Package tracing exports the steps of claims as OpenTelemetry spans, by OTLP over gRPC.
//
// A claim has one trace, whose IDs are derived from the claim's UID: another replica, or a restarted
// one, that exports the same claim again makes the same trace. Spans are queued in memory. If the
// collector does not take them, they are dropped, and the manager logs it once until it works again;
// no controller waits for an export.
package tracing
