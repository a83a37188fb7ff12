package share

import "testing"

// What each event of a cache costs.
func BenchmarkClaim(b *testing.B) {
	template := claim()
	b.ReportAllocs()
	for b.Loop() {
		Claim(template.DeepCopy())
	}
}

func BenchmarkVolume(b *testing.B) {
	template := volume()
	b.ReportAllocs()
	for b.Loop() {
		Volume(template.DeepCopy())
	}
}
