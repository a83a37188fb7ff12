// Package claimtrace exports the steps of claims as traces. Its controller claim_trace runs in each
// member's Link if --tracing-endpoint is set, and reconciles one claim for each request.
//
// It exports a claim once: when the claim is bound and its first Pod runs, or, if the Pod does not
// start, after a while without that step. Claims that were bound before this manager began to lead
// are not exported. It writes nothing to an API server. It reads the claim live, because the caches
// have no managedFields.
package claimtrace
