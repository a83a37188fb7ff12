package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGate(t *testing.T) {
	for line, want := range map[string][]string{
		`kubernetes_feature_enabled{name="VolumeAttributesClass",stage=""} 1`:       {"VolumeAttributesClass", "", "1"},
		`kubernetes_feature_enabled{name="StorageCapacityScoring",stage="ALPHA"} 0`: {"StorageCapacityScoring", "ALPHA", "0"},
		`apiserver_request_total{name="x",stage=""} 1`:                              nil,
	} {
		var got []string
		for i, part := range featureGateMetric.FindSubmatch([]byte(line)) {
			if i > 0 {
				got = append(got, string(part))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n-want +got:\n%s", line, diff)
		}
	}
}
