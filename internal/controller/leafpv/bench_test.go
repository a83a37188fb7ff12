package leafpv

import (
	"testing"

	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// BenchmarkNext measures the decision for one unchanged mirrored volume, as after a restart.
func BenchmarkNext(b *testing.B) {
	s := observedOf(b, seen(mirrored))
	if step := lifecycle.NextPlan(s).StepOwnedBy(lifecycle.LeafPV); step != lifecycle.None {
		b.Fatalf("the next step is %s, want none", step)
	}
	b.ReportAllocs()
	for b.Loop() {
		lifecycle.NextPlan(s)
	}
}
