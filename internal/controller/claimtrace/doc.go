// Package claimtrace exports the steps of claims as traces. Its controller claim_trace runs in each
// member's Link if --tracing-endpoint is set, and reconciles one claim for each request.
//
// It exports a claim once: when the claim is bound and its first Pod runs. If the Pod does not
// start within five minutes, it exports the claim without that step. Claims that were bound before
// this manager became the leader are not exported. claim_trace writes nothing to an API server. It
// reads the claim live, because the caches drop managedFields.
package claimtrace
