package nodes

const (
	// AnnMetricsPath is the annotation on a Node with the path from which metrics-server scrapes
	// resource usage (sigs.k8s.io/metrics-server/pkg/scraper/client/resource). All virtual nodes
	// share one address, so the path contains the Node's name.
	AnnMetricsPath = "metrics.k8s.io/resource-metrics-path"
	// MetricsPath is the prefix of the path in AnnMetricsPath; the virtual node's name follows.
	MetricsPath = "/metrics/resource"
)

// MetricsPathOf returns the value of AnnMetricsPath for a virtual node.
func MetricsPathOf(node string) string { return MetricsPath + "/" + node }
