package nodeapi

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/xylem-io/xylem/internal/nodes"
)

// resourceMetrics is the subresource of requests for resource metrics in the requests metric.
const resourceMetrics = "metrics"

// isMetricsRequest reports whether a request is for resource metrics.
func isMetricsRequest(r *http.Request) bool {
	return r.URL.Path == nodes.MetricsPath || strings.HasPrefix(r.URL.Path, nodes.MetricsPath+"/")
}

// serveResourceMetrics serves the CPU and memory usage of the Pods on a virtual node.
func (s *Server) serveResourceMetrics(session *Session, v *guardedResponse, w *Writer, r *http.Request, who user.Info) {
	defer func() { requestsTotal.WithLabelValues(resourceMetrics, strconv.Itoa(session.StatusCode())).Inc() }()
	var t Target
	defer func() {
		if t.Upstream != nil {
			t.Upstream.EndRequest()
		}
	}()
	content, failed := s.readResourceMetrics(v, r, who, &t)
	if failed != nil {
		failed.WriteResponse(w, false)
		return
	}
	w.Header().Set("Content-Type", MetricsContentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(content) // the client may be gone
}

// readResourceMetrics returns the resource metrics for the node that the path names.
func (s *Server) readResourceMetrics(v *guardedResponse, r *http.Request, who user.Info, t *Target) ([]byte, *Failure) {
	ctx := r.Context()
	t.Node = strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, nodes.MetricsPath), "/")
	if failed := s.guard.CheckNodeAccess(ctx, who, "get", resourceMetrics, t.Node, errMetricsForbidden); failed != nil {
		return nil, failed
	}
	v.markAuthorized()
	switch {
	case r.Method != http.MethodGet:
		return nil, &Failure{Code: http.StatusMethodNotAllowed, Message: "method " + r.Method + " is not allowed for this path. Use GET"}
	case t.Node == "":
		return nil, UnknownPathFailure("the path does not name a node, but all virtual nodes share this address. Use metrics-server 0.7 or later, which reads the path of each node, " + nodes.MetricsPath + "/NODE, from the annotation " + nodes.AnnMetricsPath)
	}
	if failed := s.finder.FindLink(ctx, t); failed != nil {
		failed.Exact = true
		return nil, failed
	}
	if !t.Upstream.Meter.BeginRead() {
		failed := TooManyFailure("the manager is already reading the metrics of node %q for %d other requests. Try again in a few seconds", t.Node, UsageReadLimit)
		failed.Exact = true
		return nil, failed
	}
	defer t.Upstream.Meter.EndRead()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.Upstream.ContextOfLink(), cancel)() //nolint:contextcheck // the link ends its requests
	return s.measureUsage(ctx, t)
}

// measureUsage reads the usage from the member and adds it to the counters.
func (s *Server) measureUsage(ctx context.Context, t *Target) ([]byte, *Failure) {
	leaves, err := s.finder.PushedLeaves(ctx, t)
	if err != nil {
		return nil, UnavailableFailure("the manager cannot find the Pods of node %q: %v. Try again", t.Node, err)
	}
	var samples []UsageSample
	failed := ReadUsage(ctx, t.Upstream.Streams, s.HostID, t.Registration, func(sample UsageSample) {
		if _, known := leaves[sample.Pod]; known && len(samples) < len(leaves) {
			samples = append(samples, sample)
		}
	})
	if failed != nil {
		failed.Exact = true
		return nil, failed
	}
	var content bytes.Buffer
	if err := t.Upstream.Meter.AddSamples(s.Clock.Now(), leaves, samples).WriteMetrics(&content); err != nil {
		return nil, UnavailableFailure("the manager cannot write the metrics of node %q: %v. Try again", t.Node, err)
	}
	return content.Bytes(), nil
}

// errMetricsForbidden does not reveal whether the node exists.
var errMetricsForbidden = ForbiddenFailure("Forbidden: the request needs permission for nodes/metrics of the node. Ask an admin of the host cluster to grant the permission")
