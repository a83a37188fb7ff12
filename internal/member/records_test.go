package member

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWithLine(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.FixedZone("elsewhere", 3600))
	one := "2026-11-20T11:00:00Z volume one"
	for name, tc := range map[string]struct{ lines, what, want string }{
		"the first":                     {"", "volume one", one},
		"another":                       {one, "volume two", one + "\n2026-11-20T11:00:00Z volume two"},
		"the same again (I6)":           {one, "volume one", one},
		"the same, others since (I6)":   {one + "\nx volume two", "volume one", one + "\nx volume two"},
		"the end of another one's name": {one, "one", one + "\n2026-11-20T11:00:00Z one"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, withLine(tc.lines, at, tc.what)); diff != "" {
				t.Error(diff)
			}
		})
	}
	lines := ""
	for i := range recordedMost + 7 {
		lines = withLine(lines, at, fmt.Sprintf("volume pvc-%d", i))
	}
	kept := strings.Split(lines, "\n")
	if len(kept) != recordedMost || !strings.HasSuffix(kept[0], "pvc-7") {
		t.Errorf("%d lines are kept, from %q", len(kept), kept[0])
	}
}
