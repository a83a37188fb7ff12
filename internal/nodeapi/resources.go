package nodeapi

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/xylem-io/xylem/internal/nodeapi/failure"
	"github.com/xylem-io/xylem/internal/nodeapi/lookup"
	"github.com/xylem-io/xylem/internal/nodeapi/stream"
	"github.com/xylem-io/xylem/internal/nodeapi/usage"
	"github.com/xylem-io/xylem/internal/nodes"
)

// resourceMetrics is the subresource of requests for resource metrics in the requests metric.
const resourceMetrics = "metrics"

// forResources reports whether a request is for resource metrics.
func forResources(r *http.Request) bool {
	return r.URL.Path == nodes.MetricsPath || strings.HasPrefix(r.URL.Path, nodes.MetricsPath+"/")
}

// resources serves the CPU and memory usage of the Pods on a virtual node.
func (s *Server) resources(session *stream.Session, v *visit, w *stream.Writer, r *http.Request, who user.Info) {
	defer func() { requestsTotal.WithLabelValues(resourceMetrics, strconv.Itoa(session.Code())).Inc() }()
	var t lookup.Target
	defer func() {
		if t.Up != nil {
			t.Up.Leave()
		}
	}()
	content, failed := s.read(v, r, who, &t)
	if failed != nil {
		failed.Write(w, false)
		return
	}
	w.Header().Set("Content-Type", usage.ContentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(content) // the client may be gone
}

// read returns the resource metrics for the node that the path names.
func (s *Server) read(v *visit, r *http.Request, who user.Info, t *lookup.Target) ([]byte, *failure.Failure) {
	ctx := r.Context()
	t.Node = strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, nodes.MetricsPath), "/")
	if failed := s.guard.Check(ctx, who, "get", resourceMetrics, t.Node, errNoMetrics); failed != nil {
		return nil, failed
	}
	v.authorize()
	switch {
	case r.Method != http.MethodGet:
		return nil, &failure.Failure{Code: http.StatusMethodNotAllowed, Message: "method " + r.Method + " is not allowed for this path. Use GET"}
	case t.Node == "":
		return nil, failure.NoPath("the path does not name a node, but all virtual nodes share this address. Use metrics-server 0.7 or later, which reads the path of each node, " + nodes.MetricsPath + "/NODE, from the annotation " + nodes.AnnMetricsPath)
	}
	if failed := s.finder.Link(ctx, t); failed != nil {
		failed.Exact = true
		return nil, failed
	}
	if !t.Up.Meter.Begin() {
		failed := failure.TooMany("the manager is already reading the metrics of node %q for %d other requests. Try again in a few seconds", t.Node, usage.ReadLimit)
		failed.Exact = true
		return nil, failed
	}
	defer t.Up.Meter.End()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.Up.Ended(), cancel)() //nolint:contextcheck // the link ends its requests
	return s.measure(ctx, t)
}

// measure reads the usage from the member and adds it to the counters.
func (s *Server) measure(ctx context.Context, t *lookup.Target) ([]byte, *failure.Failure) {
	leaves, err := s.finder.Pushed(ctx, t)
	if err != nil {
		return nil, failure.Unavailable("the manager cannot find the Pods of node %q: %v. Try again", t.Node, err)
	}
	var samples []usage.Sample
	failed := usage.Read(ctx, t.Up.Streams, s.HostID, t.Registration, func(sample usage.Sample) {
		if _, known := leaves[sample.Pod]; known && len(samples) < len(leaves) {
			samples = append(samples, sample)
		}
	})
	if failed != nil {
		failed.Exact = true
		return nil, failed
	}
	var content bytes.Buffer
	if err := t.Up.Meter.Add(s.Clock.Now(), leaves, samples).Write(&content); err != nil {
		return nil, failure.Unavailable("the manager cannot write the metrics of node %q: %v. Try again", t.Node, err)
	}
	return content.Bytes(), nil
}

// errNoMetrics does not reveal whether the node exists.
var errNoMetrics = failure.Forbidden("Forbidden: the request needs permission for nodes/metrics of the node. Ask an admin of the host cluster to grant the permission")
