package reduced

import "testing"

// BenchmarkClaim measures the transform's cost per cache event.
func BenchmarkClaim(b *testing.B) {
	template := claim()
	b.ReportAllocs()
	for b.Loop() {
		InternClaim(template.DeepCopy())
	}
}

func BenchmarkVolume(b *testing.B) {
	template := volume()
	b.ReportAllocs()
	for b.Loop() {
		InternVolume(template.DeepCopy())
	}
}
