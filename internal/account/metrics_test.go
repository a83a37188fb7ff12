package account

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// snapshotsIn returns the values of a member's series by state.
func snapshotsIn(t *testing.T, registration string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(snapshotsByState)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range m.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			if labels["cluster"] == registration {
				got[labels["state"]] = m.GetGauge().GetValue()
			}
		}
	}
	return got
}

func TestCountSnapshots(t *testing.T) {
	some := v1alpha1.SnapshotCounts{Ready: 3, Pending: 2, Deleting: 1, Orphaned: 7}
	tests := map[string]struct {
		do   func(registration string)
		want map[string]float64
	}{
		"snapshots were never counted":       {func(string) {}, map[string]float64{}},
		"snapshots were counted":             {func(r string) { SetSnapshotMetrics(r, some) }, map[string]float64{"ready": 3, "pending": 2, "deleting": 1}},
		"counted again: the last count wins": {func(r string) { SetSnapshotMetrics(r, some); SetSnapshotMetrics(r, v1alpha1.SnapshotCounts{Ready: 1}) }, map[string]float64{"ready": 1, "pending": 0, "deleting": 0}},
		"snapshots are no longer served":     {func(r string) { SetSnapshotMetrics(r, some); DeleteSnapshotMetrics(r) }, map[string]float64{}},
		"the member was deregistered":        {func(r string) { SetSnapshotMetrics(r, some); deleteMemberMetrics(r) }, map[string]float64{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			const other = "other"
			SetSnapshotMetrics(other, some)
			defer DeleteSnapshotMetrics(other)
			defer DeleteSnapshotMetrics(name)
			test.do(name)
			if diff := cmp.Diff(test.want, snapshotsIn(t, name)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := snapshotsIn(t, other); len(got) != 3 {
				t.Errorf("the other member has the series %v, want 3", got)
			}
		})
	}
}
