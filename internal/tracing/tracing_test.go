package tracing_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/internal/timeline"
	"github.com/xylem-io/xylem/internal/tracing"
)

// sink is an OTLP receiver.
type sink struct {
	collector.UnimplementedTraceServiceServer
	spans chan *tracev1.Span
	// refused is the error with which the receiver responds to every export, if set.
	refused error
}

func (s *sink) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	if s.refused != nil {
		return nil, s.refused
	}
	for _, of := range request.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				s.spans <- span
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// serve starts a receiver, and returns its address.
func serve(t *testing.T, refused error) (*sink, string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{spans: make(chan *tracev1.Span, 100), refused: refused}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return s, listener.Addr().String()
}

var start = time.Date(2026, 11, 25, 5, 0, 0, 0, time.UTC)

func claim(uid types.UID) tracing.Claim {
	at := func(seconds int) metav1.Time { return metav1.NewTime(start.Add(time.Duration(seconds) * time.Second)) }
	return tracing.Claim{
		Namespace: "shop", Name: "data", UID: uid, Member: "east", Pod: "app", Created: start,
		Steps: []timeline.Step{
			{Name: timeline.Selected, Side: timeline.Host, Start: at(0), End: at(1)},
			{Name: timeline.Provisioned, Side: timeline.Member, Start: at(1), End: at(5)},
		},
	}
}

// exported exports a claim with a new Tracer, and returns the spans by name.
func exported(t *testing.T, uid types.UID) map[string]*tracev1.Span {
	t.Helper()
	s, address := serve(t, nil)
	tracer, err := tracing.New(t.Context(), tracing.Options{Endpoint: address, Insecure: true, Ratio: 1}, "host", logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	tracer.Export(t.Context(), claim(uid))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tracer.Run(ctx); err != nil { // flushes
		t.Fatal(err)
	}
	close(s.spans)
	spans := map[string]*tracev1.Span{}
	for span := range s.spans {
		spans[span.GetName()] = span
	}
	return spans
}

func TestExport(t *testing.T) {
	spans := exported(t, "uid")
	root, step := spans["claim"], spans["provisioned"]
	if len(spans) != 3 || root == nil || step == nil || spans["selected"] == nil {
		t.Fatalf("spans %v", spans)
	}
	if len(root.GetParentSpanId()) != 0 || string(step.GetParentSpanId()) != string(root.GetSpanId()) || string(step.GetTraceId()) != string(root.GetTraceId()) {
		t.Errorf("the step's span is not a child of the claim's span: %v, %v", root, step)
	}
	if end := time.Unix(0, int64(root.GetEndTimeUnixNano())); root.GetStartTimeUnixNano() != uint64(start.UnixNano()) || !end.Equal(start.Add(5*time.Second)) {
		t.Errorf("the claim's span starts or ends at the wrong time: it ends at %s, want %s", end, start.Add(5*time.Second))
	}
	if took := step.GetEndTimeUnixNano() - step.GetStartTimeUnixNano(); took != uint64(4*time.Second) {
		t.Errorf("the step took %d ns, want 4 s", took)
	}
	got := map[string]string{}
	for _, a := range root.GetAttributes() {
		got[a.GetKey()] = a.GetValue().GetStringValue()
	}
	for key, want := range map[string]string{"k8s.namespace.name": "shop", "k8s.persistentvolumeclaim.name": "data", "k8s.pod.name": "app", "xylem.member": "east"} {
		if got[key] != want {
			t.Errorf("attribute %s is %q, want %q", key, got[key], want)
		}
	}
}

// TestSameTrace checks that two managers that export the same claim produce the same trace with the
// same spans, and that a different claim has a different trace.
func TestSameTrace(t *testing.T) {
	first, again, other := exported(t, "uid")["claim"], exported(t, "uid")["claim"], exported(t, "other")["claim"]
	if string(first.GetTraceId()) != string(again.GetTraceId()) || string(first.GetSpanId()) != string(again.GetSpanId()) {
		t.Errorf("the same claim has different IDs: %x/%x and %x/%x", first.GetTraceId(), first.GetSpanId(), again.GetTraceId(), again.GetSpanId())
	}
	if string(first.GetTraceId()) == string(other.GetTraceId()) || string(first.GetSpanId()) == string(other.GetSpanId()) {
		t.Error("two claims share a trace or a span")
	}
}

func TestSamples(t *testing.T) {
	for ratio, want := range map[float64][2]int{0: {0, 0}, 0.5: {400, 600}, 1: {1000, 1000}} {
		tracer, err := tracing.New(t.Context(), tracing.Options{Endpoint: "127.0.0.1:1", Insecure: true, Ratio: ratio}, "host", logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		sampled := 0
		for i := range 1000 {
			if tracer.Samples(types.UID(time.Duration(i).String())) {
				sampled++
			}
		}
		if sampled < want[0] || sampled > want[1] {
			t.Errorf("ratio %g: sampled %d of 1000 claims, want %v", ratio, sampled, want)
		}
	}
}

// TestRefused checks that only the first of many failed exports is logged.
func TestRefused(t *testing.T) {
	_, address := serve(t, status.Error(codes.PermissionDenied, "no"))
	logged := make(chan string, 10)
	log := funcr.New(func(_, args string) { logged <- args }, funcr.Options{})
	tracer, err := tracing.New(t.Context(), tracing.Options{Endpoint: address, Insecure: true, Ratio: 1}, "host", log)
	if err != nil {
		t.Fatal(err)
	}
	for range 400 {
		tracer.Export(t.Context(), claim("uid"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tracer.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(logged) != 1 {
		t.Errorf("%d lines were logged, want 1", len(logged))
	}
}
