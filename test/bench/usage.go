package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// restless is the rate of completed reconcile requests, per second, above which the manager counts
// as busy.
const restless = 100

// get reads an endpoint of the manager.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}

// metrics are the manager's metrics, summed over their labels. The value of "series NAME" is the
// number of a metric's series, and that of "reconciles NAME" is the number of a controller's
// reconciles.
type metrics map[string]float64

const (
	seriesOf   = "series "
	reconciles = "reconciles "
	// ofLink and ofHost are the metrics that count the reconciles of the controllers for members
	// and for the host.
	ofLink = "xylem_reconcile_seconds"
	ofHost = "workqueue_work_duration_seconds"
)

func (r *rig) metrics(ctx context.Context) (metrics, error) {
	text, err := get(ctx, r.x.Manager.MetricsURL())
	if err != nil {
		return nil, fmt.Errorf("read the manager's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the manager's metrics: %w", err)
	}
	sums := metrics{}
	for name, family := range families {
		sums[seriesOf+name] = float64(len(family.GetMetric()))
		for _, m := range family.GetMetric() {
			sums[name] += valueOf(m)
			if name != ofLink && name != ofHost {
				continue
			}
			for _, label := range m.GetLabel() {
				if label.GetName() == "controller" {
					sums[reconciles+label.GetValue()] += valueOf(m)
				}
			}
		}
	}
	return sums, nil
}

// valueOf returns the value of a counter or gauge, or the number of a histogram's observations.
func valueOf(m *dto.Metric) float64 {
	if h := m.GetHistogram(); h != nil {
		return float64(h.GetSampleCount())
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

func (m metrics) queued() float64 { return m["xylem_queue_depth"] + m["workqueue_depth"] }

// worked returns the number of requests that the controllers have reconciled.
func (m metrics) worked() float64 {
	return m[ofLink] + m[ofHost]
}

func (m metrics) cpu() float64 { return m["process_cpu_seconds_total"] }

// tick is the interval at which the manager's metrics are read. With many members, serving and
// parsing them is expensive.
func (b *bench) tick() time.Duration { return b.quiet / 2 }

// settle waits until the manager's queues have been empty for the duration of --quiet.
func (r *rig) settle(ctx context.Context) error {
	_, err := r.settled(ctx, 0)
	return err
}

// settled waits until the given number of members are connected and the queues have been empty for
// the duration of --quiet. It returns the time at which they became empty, to the nearest tick.
func (r *rig) settled(ctx context.Context, members int) (time.Time, error) {
	tick := r.b.tick()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	busy, began, worked := time.Now(), time.Now(), -1.0
	for {
		now := time.Now()
		m, err := r.metrics(ctx)
		if err != nil || m.queued() > 0 || int(m["xylem_member_connected"]) < members || (m.worked()-worked)/tick.Seconds() > restless {
			busy = now
		}
		worked = m.worked()
		if now.Sub(busy) > r.b.quiet {
			return busy, nil
		}
		if now.Sub(began) > 2*stall {
			return busy, errors.Join(errors.New("the manager does not become idle"), err)
		}
		select {
		case <-ctx.Done():
			return busy, ctx.Err()
		case <-ticker.C:
		}
	}
}

var heapAlloc = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// heap returns the size of live objects after a garbage collection, in bytes.
func (r *rig) heap(ctx context.Context) (bytes float64, err error) {
	for range 2 { // the second collection frees what the first one finalizes
		profile, err := get(ctx, r.x.Manager.ProfilesURL()+"heap?gc=1&debug=1")
		if err != nil {
			return 0, fmt.Errorf("read the manager's heap: %w", err)
		}
		found := heapAlloc.FindSubmatch(profile)
		if found == nil {
			return 0, errors.New("read the manager's heap: no HeapAlloc in the profile")
		}
		if bytes, err = strconv.ParseFloat(string(found[1]), 64); err != nil {
			return 0, fmt.Errorf("read the manager's heap: %w", err)
		}
	}
	return bytes, nil
}

// addWithHeap adds a run, and the heap size after it, to the report.
func (r *rig) addWithHeap(ctx context.Context, run *Run) error {
	bytes, err := r.heap(ctx)
	if err != nil {
		return err
	}
	run.Values[heapKiB] = bytes / 1024
	if err := r.keepHeap(ctx, strings.ReplaceAll(run.Scenario+"-"+run.Part, " ", "-")); err != nil {
		return err
	}
	r.b.say("      heap %.1f MiB", bytes/(1<<20))
	r.b.report.add(run)
	return nil
}

// keepHeap saves a heap profile next to the results if profiles are requested.
func (r *rig) keepHeap(ctx context.Context, name string) error {
	if !r.b.profile {
		return nil
	}
	content, err := get(ctx, r.x.Manager.ProfilesURL()+"heap?gc=1")
	if err != nil {
		return fmt.Errorf("read the manager's heap: %w", err)
	}
	return r.b.save(name+".heap.pprof", content)
}

// resetPeak resets the kernel's record of the manager's peak memory. If it fails, peak covers the
// process's lifetime.
func (r *rig) resetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", r.x.Manager.PID()), []byte("5"), 0o200)
}

// peak returns the manager's peak resident memory in bytes, or 0 if the system does not report
// it.
func (r *rig) peak() float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.x.Manager.PID()))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib * 1024
		}
	}
	return 0
}

// profiled calls do, and meanwhile records a CPU profile of the manager if profiles are requested.
func (r *rig) profiled(ctx context.Context, name string, do func() error) error {
	if !r.b.profile {
		return do()
	}
	profiling, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() {
		const seconds = 20
		content, err := get(profiling, fmt.Sprintf("%sprofile?seconds=%d", r.x.Manager.ProfilesURL(), seconds))
		if err == nil {
			err = r.b.save(name+".pprof", content)
		}
		done <- err
	}()
	err := do()
	return errors.Join(err, <-done)
}

// busy measures how many of the machine's CPUs are busy.
type busy struct {
	begin time.Time
	idle  float64 // idle seconds of all CPUs at that time
}

// userHertz is the number of /proc/stat ticks per second (proc(5)) on all platforms that Go
// supports.
const userHertz = 100

func newBusy() *busy { return &busy{time.Now(), idleSeconds()} }

func (b *busy) processors() float64 {
	return float64(runtime.NumCPU()) - (idleSeconds()-b.idle)/time.Since(b.begin).Seconds()
}

// idleSeconds returns the total idle time of all CPUs, including waits for disks.
func idleSeconds() float64 {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(content), "\n")
	var seconds float64
	for i, field := range strings.Fields(line) {
		if ticks, err := strconv.ParseFloat(field, 64); err == nil && (i == 4 || i == 5) { // cpu user nice system idle iowait
			seconds += ticks / userHertz
		}
	}
	return seconds
}

// loadAverage returns the machine's load average of the last minute.
func loadAverage() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil || len(content) == 0 {
		return "unknown"
	}
	return strings.Fields(string(content))[0]
}
