package leafpv

import (
	"testing"

	"github.com/xylem-io/xylem/internal/volume"
)

// BenchmarkNext is what each mirrored volume costs in a restart: nothing has changed.
func BenchmarkNext(b *testing.B) {
	s := observe(b, seen(mirrored))
	if step := volume.Next(s).By(volume.LeafPV); step != volume.None {
		b.Fatalf("step %s is taken", step)
	}
	b.ReportAllocs()
	for b.Loop() {
		volume.Next(s)
	}
}
