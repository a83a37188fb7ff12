// Package usage is what Pods of a virtual node use of CPU and memory, as a kubelet reports it
// at /metrics/resource, for metrics-server.
//
// A kubelet reports counters of CPU seconds, and the member's metrics API (metrics.k8s.io)
// reports rates. So a Meter adds up each rate over the time since the sample before it, with
// the samples' own times: what metrics-server makes of two such readings is the rate again. A
// counter begins with its first sample, and says so as its start time. When another replica
// begins to count, metrics-server takes the containers for new ones, and is without figures
// of them for one interval.
//
// Of the member's answer, only leaves count that Xylem pushed and that live under the UID
// that is recorded on the root (I8), of these only containers that the root has, and only
// samples taken since the leaf was created. Nothing else of the answer is kept, however long
// it is.
package usage
