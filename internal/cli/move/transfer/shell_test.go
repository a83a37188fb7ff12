package transfer

import (
	"bytes"
	"testing"
)

func TestTail(t *testing.T) {
	end := &tail{}
	for _, s := range []string{"...", "\r1048576 bytes (1.0 MB, 1.0 MiB) copied, 1 s, 1 MB/s\n", "1+0 records in\n1+0 records out\n", "dd: error writing 'x':\n No space left on device\n"} {
		if n, err := end.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if want := ": dd: error writing 'x': No space left on device"; end.text() != want {
		t.Errorf("got %q, want %q", end.text(), want)
	}
	if got := (&tail{end: []byte("....")}).text(); got != "" {
		t.Errorf("dots are not removed: %q", got)
	}
	long := &tail{}
	_, _ = long.Write(bytes.Repeat([]byte("x"), 5*tailBytes))
	if len(long.end) != tailBytes {
		t.Errorf("kept %d bytes, want exactly tailBytes", len(long.end))
	}
}
