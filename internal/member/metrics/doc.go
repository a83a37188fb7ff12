// Package metrics has the metrics of members: of their connections, and of their controllers'
// queues.
package metrics
