package doctor

import (
	"bufio"
	"context"
	"io"
	"regexp"

	"k8s.io/client-go/kubernetes"
)

// metricsLimit is the maximum number of bytes to read from an API server's metrics.
const metricsLimit = 64 << 20

// featureGateMetric matches the state of a feature gate in metrics (k8s.io/component-base/featuregate).
var featureGateMetric = regexp.MustCompile(`^kubernetes_feature_enabled\{name="(\w+)",stage="(\w*)"\} ([01])`)

// readFeatureGates returns which feature gates of an API server are enabled. It skips alpha gates, because they
// are off by default.
func readFeatureGates(ctx context.Context, cluster kubernetes.Interface) (map[string]bool, error) {
	stream, err := cluster.CoreV1().RESTClient().Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	found := map[string]bool{}
	lines := bufio.NewScanner(io.LimitReader(stream, metricsLimit))
	for lines.Scan() {
		if match := featureGateMetric.FindSubmatch(lines.Bytes()); match != nil && string(match[2]) != "ALPHA" {
			found[string(match[1])] = string(match[3]) == "1"
		}
	}
	return found, lines.Err()
}
