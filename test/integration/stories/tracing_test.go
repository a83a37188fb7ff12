package stories_test

import (
	"context"
	"net"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/timeline"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/suite"
)

// receiver is an OTLP collector that stores the spans that it receives.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []*tracev1.Span
}

func (r *receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range request.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// of returns a claim's span, and its child spans in order.
func (r *receiver) of(namespace, claim string) (root *tracev1.Span, steps []*tracev1.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, span := range r.spans {
		if attributeOf(span, "k8s.namespace.name") == namespace && attributeOf(span, "k8s.persistentvolumeclaim.name") == claim {
			root = span
		}
	}
	for _, span := range r.spans {
		if root != nil && string(span.GetParentSpanId()) == string(root.GetSpanId()) {
			steps = append(steps, span)
		}
	}
	return root, steps
}

func attributeOf(span *tracev1.Span, key string) string {
	for _, a := range span.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// scheduledAt returns when the host's scheduler bound a Pod.
func scheduledAt(pod *corev1.Pod) metav1.Time {
	GinkgoHelper()
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.LastTransitionTime
		}
	}
	Fail("Pod " + pod.Name + " is not scheduled")
	return metav1.Time{}
}

var _ = Describe("Tracing", func() {
	It("exports the steps of a claim and its Pod once, but not those of a claim that was bound before tracing was enabled", suite.Slow, func(ctx SpecContext) {
		s := begin(ctx)
		s.claim(ctx, "before") // this claim is bound while a manager without tracing runs
		s.pod(ctx, "before", using("before"), on(nodeOne))
		s.running(ctx, "before", nodeOne)
		s.bound(ctx, "before")

		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		received, server := &receiver{}, grpc.NewServer()
		collector.RegisterTraceServiceServer(server, received)
		go func() { _ = server.Serve(listener) }()
		DeferCleanup(server.Stop)

		Expect(x.Manager.Stop()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(x.Manager.Start(ctx)).To(Succeed()) })
		traced, err := x.AnotherManager(ctx, "traced", x.Fleet.Host, "--tracing-endpoint="+listener.Addr().String(), "--tracing-insecure")
		Expect(err).NotTo(HaveOccurred())
		Expect(traced.Start(ctx)).To(Succeed())
		DeferCleanup(func() { Expect(traced.Stop()).To(Succeed()) })

		s.claim(ctx, "data")
		s.pod(ctx, "app", using("data"), on(nodeOne), annotated(controlplane.AnnotationStartAfter, "5s"))
		app := s.running(ctx, "app", nodeOne)
		s.bound(ctx, "data")
		want := []timeline.Name{timeline.Selected, timeline.Provisioned, timeline.Mirrored, timeline.Bound, timeline.PodBound}
		// If the host's scheduler needs longer than the delay to bind the Pod, its start ends no step.
		if scheduled := scheduledAt(app); !app.Status.ContainerStatuses[0].State.Running.StartedAt.Before(&scheduled) {
			want = append(want, timeline.PodRunning)
		}
		Eventually(ctx, func(g Gomega) {
			root, steps := received.of(s.namespace, "data")
			g.Expect(root).NotTo(BeNil())
			g.Expect(root.GetName()).To(Equal("claim"))
			g.Expect(root.GetParentSpanId()).To(BeEmpty())
			g.Expect(attributeOf(root, "xylem.member")).To(Equal(one))
			g.Expect(attributeOf(root, "k8s.pod.name")).To(Equal("app"))
			names, end := []string{}, uint64(0)
			for _, step := range steps {
				g.Expect(step.GetTraceId()).To(Equal(root.GetTraceId()))
				g.Expect(step.GetStartTimeUnixNano()).To(BeNumerically(">=", root.GetStartTimeUnixNano()))
				g.Expect(step.GetStartTimeUnixNano()).To(BeNumerically(">=", end), step.GetName())
				g.Expect(step.GetEndTimeUnixNano()).To(BeNumerically("<=", root.GetEndTimeUnixNano()))
				names, end = append(names, step.GetName()), step.GetEndTimeUnixNano()
			}
			for _, name := range want {
				g.Expect(names).To(ContainElement(string(name)))
			}
		}).Should(Succeed())
		root, _ := received.of(s.namespace, "before")
		Expect(root).To(BeNil())

		d, code := s.diagnosed(ctx, Default, "pvc", "data")
		Expect(code).To(BeZero())
		_, steps := received.of(s.namespace, "data")
		for _, shown := range d.Times {
			Expect(steps).To(ContainElement(And(
				HaveField("GetName()", string(shown.Name)), HaveField("GetStartTimeUnixNano()", uint64(shown.Start.UnixNano())),
				HaveField("GetEndTimeUnixNano()", uint64(shown.End.UnixNano())))))
		}
		Expect(d.Times).NotTo(BeEmpty())
	}, SpecTimeout(storyTime))
})
