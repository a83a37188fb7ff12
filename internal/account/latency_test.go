package account

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// observed contains the values of a member's histogram.
type observed struct {
	Count   uint64
	Seconds float64
}

func observedIn(t *testing.T, histogram *prometheus.HistogramVec, registration string) observed {
	t.Helper()
	var sample dto.Metric
	if err := histogram.WithLabelValues(registration).(prometheus.Metric).Write(&sample); err != nil {
		t.Fatal(err)
	}
	return observed{sample.Histogram.GetSampleCount(), sample.Histogram.GetSampleSum()}
}

func TestPassages(t *testing.T) {
	const root = types.UID("root")
	type passages struct {
		*ProvisioningLatency
		clock *clocktesting.FakePassiveClock
		where string
	}
	begin := func(p passages) { p.BeginMeasurement(root, p.clock.Now()) }
	leaf := func(p passages) { p.RecordLeafBound(p.where, root) }
	host := func(p passages) { p.RecordHostBound(p.where, root) }
	withdraw := func(p passages) { p.DropMeasurement(root) }
	after := func(d time.Duration) func(passages) {
		return func(p passages) { p.clock.SetTime(p.clock.Now().Add(d)) }
	}
	for name, tc := range map[string]struct {
		steps      []func(passages)
		leaf, host observed
	}{
		"no events": {},
		"replayed by a cache without a placement":      {steps: []func(passages){leaf, host}},
		"placed, then bound in member and host":        {[]func(passages){begin, after(3 * time.Second), leaf, after(time.Second), host}, observed{1, 3}, observed{1, 1}},
		"bound in the member, but not in the host yet": {[]func(passages){begin, after(time.Second), leaf}, observed{1, 1}, observed{}},
		"repeated events count once":                   {[]func(passages){begin, after(time.Second), leaf, leaf, after(time.Second), leaf, host, host, leaf}, observed{1, 1}, observed{1, 1}},
		"the host's event arrives first":               {[]func(passages){begin, after(time.Second), host, after(time.Second), leaf, host}, observed{1, 2}, observed{1, 0}},
		"withdrawn":                                    {[]func(passages){begin, withdraw, leaf, host}, observed{}, observed{}},
		"withdrawn, then placed again":                 {[]func(passages){begin, after(time.Hour), withdraw, begin, after(time.Second), leaf, host}, observed{1, 1}, observed{1, 0}},
		"the disk is provisioned again":                {[]func(passages){begin, leaf, host, begin, after(time.Second), leaf, host}, observed{2, 1}, observed{2, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			defer deleteMemberMetrics(name)
			clock := clocktesting.NewFakePassiveClock(time.Now())
			p := passages{NewProvisioningLatency(clock), clock, name}
			p.CreateSeries(name)
			for _, step := range tc.steps {
				step(p)
			}
			got := [2]observed{observedIn(t, leafBoundSeconds, name), observedIn(t, hostBoundSeconds, name)}
			if diff := cmp.Diff([2]observed{tc.leaf, tc.host}, got); diff != "" {
				t.Errorf("leaf, host (-want +got):\n%s", diff)
			}
		})
	}
}
