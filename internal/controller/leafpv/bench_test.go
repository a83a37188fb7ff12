package leafpv

import "testing"

// BenchmarkDecide is what each mirrored volume costs in a restart: nothing has changed.
func BenchmarkDecide(b *testing.B) {
	o := seen(mirrored)
	if d := decide(o); d != (nothing{}) {
		b.Fatalf("decided on %T", d)
	}
	b.ReportAllocs()
	for b.Loop() {
		decide(o)
	}
}
