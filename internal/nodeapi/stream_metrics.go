package nodeapi

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var openSessions = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "xylem_node_api_sessions",
	Help: "Open sessions for logs, exec, attach and port-forward to a member's Pods.",
}, []string{"cluster", "subresource"})

func init() {
	metrics.Registry.MustRegister(openSessions)
}

// ForgetMemberMetrics deletes the metrics of a member.
func ForgetMemberMetrics(cluster string) {
	openSessions.DeletePartialMatch(prometheus.Labels{"cluster": cluster})
}
