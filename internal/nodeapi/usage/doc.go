// Package usage reports the CPU and memory usage of the Pods on a virtual node to metrics-server,
// as a kubelet does at /metrics/resource.
//
// A kubelet reports CPU seconds as a counter, but the member's metrics MetricsAPI (metrics.k8s.io) reports
// a rate. A Meter therefore multiplies each rate by the time since the previous sample and adds the
// product to a counter. metrics-server computes the same rate from two such counters. A counter
// begins with its first sample and reports the sample's time as the container's start time. When
// another replica begins to count, metrics-server assumes that the containers restarted, and
// reports no usage for one interval.
//
// A Meter counts only leaves that Xylem pushed and whose UID is recorded on the root (I8), only the
// root's containers, and only samples taken after the leaf was created. It discards the rest of the
// member's response, regardless of its size.
package usage
