package usage

import (
	"fmt"
	"io"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// The names are a kubelet's (k8s.io/kubernetes/pkg/kubelet/metrics/collectors).
var (
	containerLabels  = []string{"container", "pod", "namespace"}
	nodeCPU          = prometheus.NewDesc("node_cpu_usage_seconds_total", "Cumulative cpu time consumed by the node's Pods in core-seconds.", nil, nil)
	nodeMemory       = prometheus.NewDesc("node_memory_working_set_bytes", "Current working set of the node's Pods in bytes.", nil, nil)
	containerCPU     = prometheus.NewDesc("container_cpu_usage_seconds_total", "Cumulative cpu time consumed by the container in core-seconds, since it is counted.", containerLabels, nil)
	containerMemory  = prometheus.NewDesc("container_memory_working_set_bytes", "Current working set of the container in bytes.", containerLabels, nil)
	containerStarted = prometheus.NewDesc("container_start_time_seconds", "Since when the container is counted, in seconds since the unix epoch.", containerLabels, nil)
)

// ContentType of what Write writes.
var ContentType = string(expfmt.NewFormat(expfmt.TypeTextPlain))

// Write a reading in the text format of Prometheus.
func (r Reading) Write(w io.Writer) error {
	registry := prometheus.NewRegistry()
	if err := registry.Register(r); err != nil {
		return fmt.Errorf("collect the use of resources: %w", err)
	}
	families, err := registry.Gather()
	if err != nil {
		return fmt.Errorf("collect the use of resources: %w", err)
	}
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(w, family); err != nil {
			return fmt.Errorf("write the use of resources: %w", err)
		}
	}
	return nil
}

// Describe implements prometheus.Collector.
func (r Reading) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{nodeCPU, nodeMemory, containerCPU, containerMemory, containerStarted} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (r Reading) Collect(to chan<- prometheus.Metric) {
	send := func(c Counter, desc *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		to <- prometheus.NewMetricWithTimestamp(c.Taken, prometheus.MustNewConstMetric(desc, kind, v, labels...))
	}
	if !r.Node.Taken.IsZero() {
		send(r.Node, nodeCPU, prometheus.CounterValue, r.Node.CPU)
		send(r.Node, nodeMemory, prometheus.GaugeValue, r.Node.Memory)
	}
	for _, pod := range r.Pods {
		for name, c := range pod.Containers {
			labels := []string{name, pod.Pod.Name, pod.Pod.Namespace}
			send(c, containerCPU, prometheus.CounterValue, c.CPU, labels...)
			send(c, containerMemory, prometheus.GaugeValue, c.Memory, labels...)
			to <- prometheus.MustNewConstMetric(containerStarted, prometheus.GaugeValue, float64(c.Since.UnixNano())/1e9, labels...)
		}
	}
}
