package member

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// queueLabels are the labels of a queue's series. Controllers of the same name run for each
// member, so the member's registration is a label too.
var queueLabels = []string{"cluster", "controller"}

var (
	// ConnectedGauge reports, by cluster, whether a member is connected.
	ConnectedGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_member_connected",
		Help: "1 while a member is connected: it responds, has the recorded identity, and the manager holds its fence.",
	}, []string{"cluster"})
	// ProbeSeconds is the duration of probes, by cluster.
	ProbeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "xylem_member_probe_seconds",
		Help:    "Duration of the renewal of a member's fence, which also probes the connection.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, []string{"cluster"})
	// TokenExpiry is when tokens expire, by cluster.
	TokenExpiry = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_member_token_expiry_timestamp_seconds",
		Help: "Expiry of the manager's service account token for a member, in seconds since the Unix epoch. Absent for other credentials.",
	}, []string{"cluster"})
	queueDepth = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_queue_depth",
		Help: "Number of requests in a controller's queue for a member. While it has 200, requests that are not urgent wait outside it and are not counted.",
	}, queueLabels)
	queueAdds = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "xylem_queue_adds_total",
		Help: "Requests added to a controller's queue for a member.",
	}, queueLabels)
	queueRetries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "xylem_queue_retries_total",
		Help: "Requests that a controller's queue for a member retried after an error.",
	}, queueLabels)
	queueSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "xylem_queue_wait_seconds",
		Help:    "Time that requests spend in a controller's queue for a member before a worker processes them, from when they were added.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, queueLabels)
	workSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "xylem_reconcile_seconds",
		Help:    "Duration of a controller's reconciles for a member.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, queueLabels)
)

func init() {
	metrics.Registry.MustRegister(ConnectedGauge, ProbeSeconds, TokenExpiry, queueDepth, queueAdds, queueRetries, queueSeconds, workSeconds)
}

// DeleteMetrics deletes a member's series.
func DeleteMetrics(cluster string) {
	match := prometheus.Labels{"cluster": cluster}
	for _, vector := range []interface {
		DeletePartialMatch(labels prometheus.Labels) int
	}{ConnectedGauge, ProbeSeconds, TokenExpiry, queueDepth, queueAdds, queueRetries, queueSeconds, workSeconds} {
		vector.DeletePartialMatch(match)
	}
}

// QueueMetrics is the metrics provider for the queues of one member.
type QueueMetrics struct{ Cluster string }

var _ workqueue.MetricsProvider = QueueMetrics{}

// NewDepthMetric implements workqueue.MetricsProvider.
func (q QueueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return queueDepth.WithLabelValues(q.Cluster, name)
}

// NewAddsMetric implements workqueue.MetricsProvider.
func (q QueueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return queueAdds.WithLabelValues(q.Cluster, name)
}

// NewRetriesMetric implements workqueue.MetricsProvider.
func (q QueueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return queueRetries.WithLabelValues(q.Cluster, name)
}

// NewLatencyMetric implements workqueue.MetricsProvider.
func (q QueueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return queueSeconds.WithLabelValues(q.Cluster, name)
}

// NewWorkDurationMetric implements workqueue.MetricsProvider.
func (q QueueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return workSeconds.WithLabelValues(q.Cluster, name)
}

// NewUnfinishedWorkSecondsMetric implements workqueue.MetricsProvider.
func (QueueMetrics) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return unregisteredGauge()
}

// NewLongestRunningProcessorSecondsMetric implements workqueue.MetricsProvider.
func (QueueMetrics) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return unregisteredGauge()
}

// unregisteredGauge discards a metric that the work duration replaces.
func unregisteredGauge() prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: "unused"})
}
