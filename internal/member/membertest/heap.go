package membertest

import (
	"runtime"
	"testing"
)

// HeapBytesPerValue returns how many bytes of live heap each of n kept values takes. keep may return nil for a value that is
// not kept.
func HeapBytesPerValue(t *testing.T, n int, keep func(i int) any) uint64 {
	t.Helper()
	kept := make([]any, n)
	before := liveHeapBytes()
	for i := range kept {
		kept[i] = keep(i)
	}
	after := liveHeapBytes()
	runtime.KeepAlive(kept)
	return (max(after, before) - before) / uint64(n) //nolint:gosec // not negative
}

// liveHeapBytes returns the bytes of live heap after a collection.
func liveHeapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
