package tracing

import (
	"context"
	"crypto/sha256"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
)

// identity identifies a span by the claim's UID and the step, which is empty for the root span.
type identity struct {
	uid  types.UID
	step string
}

// identityKey is the context key for the identity of the span to start.
type identityKey struct{}

// ids derives the IDs of traces and spans from the identity in the context.
type ids struct{}

// NewIDs returns the IDs for a root span.
func (i ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(identityKey{}).(identity)
	traceID := traceOf(id.uid)
	return traceID, i.NewSpanID(ctx, traceID)
}

// NewSpanID returns the ID for a step's span.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	id, _ := ctx.Value(identityKey{}).(identity)
	sum := sha256.Sum256([]byte("span/" + string(id.uid) + "/" + id.step))
	return trace.SpanID(sum[:8])
}

// traceOf returns a hash of the UID, because sampling needs IDs whose bits are all random.
func traceOf(uid types.UID) trace.TraceID {
	sum := sha256.Sum256([]byte("trace/" + string(uid)))
	return trace.TraceID(sum[:16])
}
