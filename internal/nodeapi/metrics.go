package nodeapi

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	requestsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "xylem_node_api_requests_total",
		Help: "Requests for logs, exec, attach and port-forward that the manager served, by HTTP status.",
	}, []string{"subresource", "code"})
	refusedConnections = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "xylem_node_api_refused_connections_total",
		Help: "Connections that the manager closed: peer, because too many requests from the address were refused; unknown, because too many connections had no authorized request; all, because there were too many connections.",
	}, []string{"limit"})
)

func init() {
	metrics.Registry.MustRegister(requestsTotal, refusedConnections)
}
