package nodeapi

import (
	"fmt"
	"io"
	"maps"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// metricFamilies returns the metric families of a kubelet
// (k8s.io/kubernetes/pkg/kubelet/metrics/collectors). They describe a virtual node, not the manager
// itself.
func metricFamilies() (nodeCPU, nodeMemory, cpu, memory, started *dto.MetricFamily) {
	family := func(name, help string, kind dto.MetricType) *dto.MetricFamily {
		return &dto.MetricFamily{Name: &name, Help: &help, Type: &kind}
	}
	return family("node_cpu_usage_seconds_total", "Cumulative cpu time consumed by the node's Pods in core-seconds.", dto.MetricType_COUNTER),
		family("node_memory_working_set_bytes", "Current working set of the node's Pods in bytes.", dto.MetricType_GAUGE),
		family("container_cpu_usage_seconds_total", "Cumulative cpu time consumed by the container in core-seconds, since its first sample.", dto.MetricType_COUNTER),
		family("container_memory_working_set_bytes", "Current working set of the container in bytes.", dto.MetricType_GAUGE),
		family("container_start_time_seconds", "Time of the container's first sample in seconds since the unix epoch.", dto.MetricType_GAUGE)
}

// MetricsContentType is the content type of Write's output.
var MetricsContentType = string(expfmt.NewFormat(expfmt.TypeTextPlain))

// WriteMetrics writes a reading in the Prometheus text format.
func (r UsageReading) WriteMetrics(w io.Writer) error {
	nodeCPU, nodeMemory, cpu, memory, started := metricFamilies()
	if !r.Node.Taken.IsZero() {
		nodeCPU.Metric = append(nodeCPU.Metric, r.Node.cpuCounterMetric())
		nodeMemory.Metric = append(nodeMemory.Metric, r.Node.gaugeMetric(r.Node.Memory))
	}
	for _, pod := range r.Pods {
		for _, name := range slices.Sorted(maps.Keys(pod.Containers)) {
			c := pod.Containers[name]
			labels := []*dto.LabelPair{labelPair("container", name), labelPair("namespace", pod.Pod.Namespace), labelPair("pod", pod.Pod.Name)}
			began := c.gaugeMetric(float64(c.Since.UnixNano()) / 1e9)
			began.TimestampMs = nil
			for family, m := range map[*dto.MetricFamily]*dto.Metric{cpu: c.cpuCounterMetric(), memory: c.gaugeMetric(c.Memory), started: began} {
				m.Label = labels
				family.Metric = append(family.Metric, m)
			}
		}
	}
	for _, family := range []*dto.MetricFamily{nodeCPU, nodeMemory, cpu, memory, started} {
		if len(family.GetMetric()) == 0 {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(w, family); err != nil {
			return fmt.Errorf("write the resource metrics: %w", err)
		}
	}
	return nil
}

func (c UsageCounter) cpuCounterMetric() *dto.Metric {
	return &dto.Metric{Counter: &dto.Counter{Value: &c.CPU}, TimestampMs: new(c.Taken.UnixMilli())}
}

func (c UsageCounter) gaugeMetric(v float64) *dto.Metric {
	return &dto.Metric{Gauge: &dto.Gauge{Value: &v}, TimestampMs: new(c.Taken.UnixMilli())}
}

func labelPair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }
