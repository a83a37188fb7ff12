package nodes

const (
	// AnnMetricsPath on a Node is where metrics-server asks for its Pods' use of resources
	// (sigs.k8s.io/metrics-server/pkg/scraper/client/resource). All virtual nodes have one
	// address, so that the path has to name the Node.
	AnnMetricsPath = "metrics.k8s.io/resource-metrics-path"
	// MetricsPath is followed by the name of a virtual node.
	MetricsPath = "/metrics/resource"
)

// MetricsPathOf a virtual node is the value of AnnMetricsPath.
func MetricsPathOf(node string) string { return MetricsPath + "/" + node }
