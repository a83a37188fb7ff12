package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// A controller of the same name runs for each member: its queue's series carry
// the member's registration beside the controller's name.
var queueLabels = []string{"cluster", "controller"}

var (
	// Connected by cluster.
	Connected = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_member_connected",
		Help: "1 while a member is connected: it answers, has the recorded identity, and the manager holds its fence.",
	}, []string{"cluster"})
	// ProbeSeconds by cluster.
	ProbeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "xylem_member_probe_seconds",
		Help:    "Duration of the renewal of a member's fence, which is also the probe of its connection.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, []string{"cluster"})
	// TokenExpires by cluster.
	TokenExpires = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_member_token_expiry_timestamp_seconds",
		Help: "Expiry of the manager's service account token for a member, in seconds since 1970. Absent for other credentials.",
	}, []string{"cluster"})
	queueDepth = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xylem_queue_depth",
		Help: "Number of requests in a controller's queue for a member.",
	}, queueLabels)
	queueAdds = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "xylem_queue_adds_total",
		Help: "Requests added to a controller's queue for a member.",
	}, queueLabels)
	queueRetries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "xylem_queue_retries_total",
		Help: "Requests added again after an error to a controller's queue for a member.",
	}, queueLabels)
	queueSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "xylem_queue_wait_seconds",
		Help:    "Time that requests wait in a controller's queue for a member.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, queueLabels)
	workSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "xylem_reconcile_seconds",
		Help:    "Duration of a controller's reconciles for a member.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, queueLabels)
)

func init() {
	metrics.Registry.MustRegister(Connected, ProbeSeconds, TokenExpires, queueDepth, queueAdds, queueRetries, queueSeconds, workSeconds)
}

// Forget the series of a member.
func Forget(cluster string) {
	match := prometheus.Labels{"cluster": cluster}
	for _, vector := range []interface {
		DeletePartialMatch(labels prometheus.Labels) int
	}{Connected, ProbeSeconds, TokenExpires, queueDepth, queueAdds, queueRetries, queueSeconds, workSeconds} {
		vector.DeletePartialMatch(match)
	}
}

// Queue is the metrics provider of one member's queues.
type Queue struct{ Cluster string }

var _ workqueue.MetricsProvider = Queue{}

// NewDepthMetric implements workqueue.MetricsProvider.
func (q Queue) NewDepthMetric(name string) workqueue.GaugeMetric {
	return queueDepth.WithLabelValues(q.Cluster, name)
}

// NewAddsMetric implements workqueue.MetricsProvider.
func (q Queue) NewAddsMetric(name string) workqueue.CounterMetric {
	return queueAdds.WithLabelValues(q.Cluster, name)
}

// NewRetriesMetric implements workqueue.MetricsProvider.
func (q Queue) NewRetriesMetric(name string) workqueue.CounterMetric {
	return queueRetries.WithLabelValues(q.Cluster, name)
}

// NewLatencyMetric implements workqueue.MetricsProvider.
func (q Queue) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return queueSeconds.WithLabelValues(q.Cluster, name)
}

// NewWorkDurationMetric implements workqueue.MetricsProvider.
func (q Queue) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return workSeconds.WithLabelValues(q.Cluster, name)
}

// NewUnfinishedWorkSecondsMetric implements workqueue.MetricsProvider.
func (Queue) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return unregisteredGauge()
}

// NewLongestRunningProcessorSecondsMetric implements workqueue.MetricsProvider.
func (Queue) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return unregisteredGauge()
}

// unregisteredGauge takes what work durations tell already.
func unregisteredGauge() prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: "unused"})
}
