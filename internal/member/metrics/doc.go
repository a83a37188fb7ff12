// Package metrics has the metrics of members: their connections, and the queues of their
// controllers.
package metrics
