package member

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// A controller of the same name runs for each member: its queue's series carry
// the member's registration beside the controller's name.
var queueLabels = []string{"cluster", "controller"}

var (
	connected = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_member_connected",
		Help: "1 while a member's link is up: it answers, its identity is the one recorded, and its fence is ours.",
	}, []string{"cluster"})
	probeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "xylem_member_probe_seconds",
		Help:    "How long the renewal of a member's fence took, which is the probe of its connection as well.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, []string{"cluster"})
	tokenExpires = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_member_token_expiry_timestamp_seconds",
		Help: "When the service account's token that the manager uses in a member expires, in seconds since 1970. None for other credentials.",
	}, []string{"cluster"})
	queueDepth = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_queue_depth",
		Help: "Requests that wait in a controller's queue for a member.",
	}, queueLabels)
	queueAdds = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "xylem_queue_adds_total",
		Help: "Requests added to a controller's queue for a member.",
	}, queueLabels)
	queueRetries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "xylem_queue_retries_total",
		Help: "Requests put back after an error into a controller's queue for a member.",
	}, queueLabels)
	queueSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "xylem_queue_wait_seconds",
		Help:    "How long a request waited in a controller's queue for a member.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, queueLabels)
	workSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "xylem_reconcile_seconds",
		Help:    "How long a controller worked on a request for a member.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, queueLabels)
)

func init() {
	metrics.Registry.MustRegister(connected, probeSeconds, tokenExpires, queueDepth, queueAdds, queueRetries, queueSeconds, workSeconds)
}

func forgetMetrics(cluster string) {
	match := prometheus.Labels{"cluster": cluster}
	for _, vector := range []interface {
		DeletePartialMatch(labels prometheus.Labels) int
	}{connected, probeSeconds, tokenExpires, queueDepth, queueAdds, queueRetries, queueSeconds, workSeconds} {
		vector.DeletePartialMatch(match)
	}
}

// queueMetrics is the metrics provider of one member's queues.
type queueMetrics struct{ cluster string }

var _ workqueue.MetricsProvider = queueMetrics{}

func (q queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return queueDepth.WithLabelValues(q.cluster, name)
}

func (q queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return queueAdds.WithLabelValues(q.cluster, name)
}

func (q queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return queueRetries.WithLabelValues(q.cluster, name)
}

func (q queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return queueSeconds.WithLabelValues(q.cluster, name)
}

func (q queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return workSeconds.WithLabelValues(q.cluster, name)
}

func (queueMetrics) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return unregisteredGauge()
}

func (queueMetrics) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return unregisteredGauge()
}

// unregisteredGauge takes what work durations tell already.
func unregisteredGauge() prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: "unused"})
}
