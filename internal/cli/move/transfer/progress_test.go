package transfer

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

func TestLine(t *testing.T) {
	for want, got := range map[string]string{
		"  copied 1.0 KiB": progressLine(1024, 0, 0),
		"  [###############---------------]  50%  5.0 MiB of about 10.0 MiB, 2.5 MiB/s": progressLine(5<<20, 10<<20, 2*time.Second),
		"  [##############################] 100%  2.0 GiB of about 1.0 GiB":             progressLine(2<<30, 1<<30, 0),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	var out bytes.Buffer
	b := NewProgressBar(&out, clock.RealClock{}, 100)
	b.AddBytes(50)
	b.AddBytes(50)
	if b.EndProgress() != "100 B" || strings.Count(out.String(), "\r") != 2 {
		t.Errorf("the bar printed %q, want one update and its removal", out.String())
	}
	NewProgressBar(nil, clock.RealClock{}, 100).AddBytes(1) // no terminal
}
