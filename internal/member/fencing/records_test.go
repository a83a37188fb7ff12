package fencing

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
		"the first line":                {"", "volume one", one},
		"another line":                  {one, "volume two", one + "\n2026-11-20T11:00:00Z volume two"},
		"the latest line repeated (I6)": {one, "volume one", one},
		"an earlier line repeated (I6)": {one + "\nx volume two", "volume one", one + "\nx volume two"},
		"the suffix of another line":    {one, "one", one + "\n2026-11-20T11:00:00Z one"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, withRecordLine(tc.lines, at, tc.what, 1<<20)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, tc := range map[string]struct{ limit, most, dropped int }{
		"too many lines": {1 << 20, maxRecordLines, 7},
		"too many bytes": {len(droppedLinesFormat) + 20 + 50*len(one+"-000\n"), 50, maxRecordLines - 50 + 7},
	} {
		lines := ""
		for i := range maxRecordLines + 7 {
			lines = withRecordLine(lines, at, fmt.Sprintf("volume one-%03d", i), tc.limit)
		}
		kept := strings.Split(lines, "\n")
		want := fmt.Sprintf(droppedLinesFormat, tc.dropped)
		if len(kept) != 1+tc.most || kept[0] != want || !strings.HasSuffix(kept[1], fmt.Sprintf("one-%03d", tc.dropped)) || len(lines) > tc.limit {
			t.Errorf("%s: got %d lines with %d bytes, beginning with %q; want the latest lines, after the number of dropped ones", name, len(kept), len(lines), kept[:2])
		}
	}
	if got := withRecordLine("", at, strings.Repeat("x", 100), 50); !strings.HasPrefix(got, "(1 earlier lines") {
		t.Errorf("the first line does not report the dropped line: %q", got)
	}
}
