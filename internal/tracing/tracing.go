package tracing

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/internal/timeline"
)

// flushTimeout bounds the export of the remaining spans when the manager stops.
const flushTimeout = 5 * time.Second

// Options configures the exporter.
type Options struct {
	// Endpoint is the host and port of an OTLP receiver for gRPC. If it is empty, no traces are
	// exported.
	Endpoint string
	// Insecure connects without TLS.
	Insecure bool
	// Ratio is the share of claims that are traced, from 0 to 1.
	Ratio float64
}

// Tracer exports claims.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	sampler  sdktrace.Sampler
}

// New returns a Tracer for a manager of the host with the given ID. It does not connect before the
// first export. Only Run releases its resources.
func New(ctx context.Context, o Options, hostID string, log logr.Logger) (*Tracer, error) {
	options := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(o.Endpoint)}
	if o.Insecure {
		options = append(options, otlptracegrpc.WithInsecure())
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("create the trace exporter for %q: %w", o.Endpoint, err)
	}
	t := &Tracer{sampler: sdktrace.TraceIDRatioBased(o.Ratio)}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&quiet{SpanExporter: exporter, log: log}),
		sdktrace.WithSampler(t.sampler),
		sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "xylem"), attribute.String("xylem.host_id", hostID))),
	)
	t.tracer = t.provider.Tracer("xylem.io/claim")
	return t, nil
}

// Run flushes and closes the exporter when the context ends.
func (t *Tracer) Run(ctx context.Context) error {
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	_ = t.provider.Shutdown(ending) // the exporter logs failures
	return nil
}

// Samples reports whether the claim with the given UID is traced.
func (t *Tracer) Samples(uid types.UID) bool {
	return t.sampler.ShouldSample(sdktrace.SamplingParameters{TraceID: traceOf(uid)}).Decision == sdktrace.RecordAndSample
}

// Claim is a claim to export.
type Claim struct {
	Namespace, Name string
	UID             types.UID
	// Member is the registration's name. Pod is the Pod's name, and may be empty.
	Member, Pod string
	Created     time.Time
	Steps       []timeline.Step
}

// Export queues a claim's spans: one for the claim, and a child span for each step.
func (t *Tracer) Export(ctx context.Context, c Claim) {
	end := c.Created
	for _, s := range c.Steps {
		if s.End.After(end) {
			end = s.End.Time
		}
	}
	root := []attribute.KeyValue{
		attribute.String("k8s.namespace.name", c.Namespace), attribute.String("k8s.persistentvolumeclaim.name", c.Name),
		attribute.String("k8s.persistentvolumeclaim.uid", string(c.UID)), attribute.String("xylem.member", c.Member),
	}
	if c.Pod != "" {
		root = append(root, attribute.String("k8s.pod.name", c.Pod))
	}
	ctx, span := t.tracer.Start(with(ctx, c.UID, ""), "claim", trace.WithNewRoot(), trace.WithTimestamp(c.Created), trace.WithAttributes(root...))
	for _, s := range c.Steps {
		cluster := attribute.String("xylem.side", string(s.Side))
		_, step := t.tracer.Start(with(ctx, c.UID, string(s.Name)), string(s.Name), trace.WithTimestamp(s.Start.Time), trace.WithAttributes(cluster))
		step.End(trace.WithTimestamp(s.End.Time))
	}
	span.End(trace.WithTimestamp(end))
}

func with(ctx context.Context, uid types.UID, step string) context.Context {
	return context.WithValue(ctx, identityKey{}, identity{uid, step})
}

// quiet is an exporter that logs only the first of several consecutive failures.
type quiet struct {
	sdktrace.SpanExporter
	log    logr.Logger
	failed atomic.Bool
}

// ExportSpans exports spans. It only logs failures, and drops the spans.
func (q *quiet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := q.SpanExporter.ExportSpans(ctx, spans)
	switch was := q.failed.Swap(err != nil); {
	case err != nil && !was:
		q.log.Error(err, "the collector does not accept traces, so Xylem drops the spans. Check --tracing-endpoint", "spans", len(spans))
	case err == nil && was:
		q.log.Info("the collector accepts traces again")
	}
	return nil
}
