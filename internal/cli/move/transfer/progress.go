package transfer

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"
)

const (
	barWidth = 30
	// redraw is the interval at which the bar is redrawn.
	redraw = 200 * time.Millisecond
)

// Bar draws the progress of a copy in one line of a terminal. Without a terminal, it only counts
// bytes.
type Bar struct {
	w     io.Writer
	clock clock.PassiveClock
	total int64
	begin time.Time

	mu    sync.Mutex
	done  int64
	drawn time.Time
}

// NewProgressBar creates a Bar. w is nil without a terminal. total is an estimate, or 0.
func NewProgressBar(w io.Writer, c clock.PassiveClock, total int64) *Bar {
	return &Bar{w: w, clock: c, total: total, begin: c.Now()}
}

// AddBytes counts n more bytes. It is safe for concurrent use.
func (b *Bar) AddBytes(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done += int64(n)
	if now := b.clock.Now(); b.w != nil && now.Sub(b.drawn) >= redraw {
		b.drawn = now
		fmt.Fprintf(b.w, "\r%s\x1b[K", progressLine(b.done, b.total, now.Sub(b.begin)))
	}
}

// EndProgress removes the bar, and returns the copied size.
func (b *Bar) EndProgress() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.w != nil {
		fmt.Fprint(b.w, "\r\x1b[K")
		b.w = nil // a stream may still count what it has buffered
	}
	return HumanBytes(b.done)
}

// progressLine returns the bar as text. It stays at 100% if the archive is larger than the estimate.
func progressLine(done, total int64, took time.Duration) string {
	rate := ""
	if seconds := took.Seconds(); seconds >= 1 {
		rate = fmt.Sprintf(", %s/s", HumanBytes(int64(float64(done)/seconds)))
	}
	if total <= 0 {
		return fmt.Sprintf("  copied %s%s", HumanBytes(done), rate)
	}
	part := min(float64(done)/float64(total), 1)
	full := int(part * barWidth)
	return fmt.Sprintf("  [%s%s] %3.0f%%  %s of about %s%s", strings.Repeat("#", full), strings.Repeat("-", barWidth-full), part*100, HumanBytes(done), HumanBytes(total), rate)
}

// HumanBytes returns a size with a unit, rounded down to tenths.
func HumanBytes(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size {
			return fmt.Sprintf("%.1f %s", float64(n*10/unit.size)/10, unit.name)
		}
	}
	return resource.NewQuantity(n, resource.BinarySI).String() + " B"
}
