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
		"  copied 1.0 KiB": line(1024, 0, 0),
		"  [###############---------------]  50%  5.0 MiB of about 10.0 MiB, 2.5 MiB/s": line(5<<20, 10<<20, 2*time.Second),
		"  [##############################] 100%  2.0 GiB of about 1.0 GiB":             line(2<<30, 1<<30, 0),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	var out bytes.Buffer
	b := NewBar(&out, clock.RealClock{}, 100)
	b.Add(50)
	b.Add(50)
	if b.End() != "100 B" || strings.Count(out.String(), "\r") != 2 {
		t.Errorf("the bar printed %q, want one update and its removal", out.String())
	}
	NewBar(nil, clock.RealClock{}, 100).Add(1) // no terminal
}
