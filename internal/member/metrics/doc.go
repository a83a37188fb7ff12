// Package metrics defines the metrics of the connections to members and of their controllers'
// queues.
package metrics
