package manager

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/xylem-io/xylem/internal/account"
)

var described = regexp.MustCompile(`fqName: "(xylem_[a-z_]+)"`)

// TestMetricsPage checks that METRICS.md, which is generated from the source, lists all registered
// metrics.
func TestMetricsPage(t *testing.T) {
	page, err := os.ReadFile("../METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		account.HostCounts{}.Describe(descriptions)
		if registry, ok := metrics.Registry.(prometheus.Collector); ok {
			registry.Describe(descriptions)
		}
	}()
	registered := 0
	for d := range descriptions {
		if name := described.FindStringSubmatch(d.String()); name != nil {
			registered++
			if !strings.Contains(string(page), "| `"+name[1]+"` |") {
				t.Errorf("METRICS.md lacks %s: run make generate", name[1])
			}
		}
	}
	if listed := strings.Count(string(page), "| `xylem_"); listed != registered || registered < 10 {
		t.Errorf("METRICS.md lists %d metrics, but %d are registered", listed, registered)
	}
}
