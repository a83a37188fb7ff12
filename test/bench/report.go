package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// report contains all results and describes the machine on which they were measured.
type report struct {
	Date     time.Time         `json:"date"`
	Commit   string            `json:"commit"`
	Machine  map[string]string `json:"machine"`
	Limits   map[string]string `json:"limits"`
	Settings map[string]string `json:"settings"`
	Runs     []*Run            `json:"runs"`
	Goals    []Goal            `json:"goals"`
}

func newReport(ctx context.Context, s settings) *report {
	return &report{
		Date: time.Now().UTC().Truncate(time.Second), Commit: commit(ctx),
		Machine: map[string]string{
			"processors": fmt.Sprint(runtime.NumCPU()), "processor": ofFile("/proc/cpuinfo", "model name"), "memory": ofFile("/proc/meminfo", "MemTotal"),
			"system": runtime.GOOS + "/" + runtime.GOARCH, "go": runtime.Version(), "load before": loadAverage(),
		},
		Limits: map[string]string{
			"kube-controller-manager, kube-scheduler, csi-provisioner, csi-resizer": fmt.Sprintf("%d requests per second", s.qps),
			"manager and this program":     "no limits",
			"workers of csi-provisioner":   "its default, 100",
			"fence and probe of a member":  fmt.Sprintf("%s, %s, as shipped", harness.ShippedFence, harness.ShippedProbe),
			"kube-apiserver":               "its defaults (priority and fairness on)",
			"audit log of each API server": "on, metadata of every request",
		},
		Settings: map[string]string{
			"rest": fmt.Sprintf("%s, after queues were empty for %s", s.rest, s.quiet), "isolation": fmt.Sprintf("%d members", s.apart),
			"repeats": fmt.Sprint(s.repeats), "rate": fmt.Sprintf("%g/s for %s", s.rate, s.rateFor), "bursts": s.sizes.String(),
			"churn": fmt.Sprintf("%g/s for %s", s.churn, s.churnFor), "scale": fmt.Sprintf("%d members with %d volumes each; %d volumes in total at the end", s.members, s.each, s.volumes),
			"quick": fmt.Sprint(s.quick),
		},
	}
}

// commit returns the commit of the measured source.
func commit(ctx context.Context) string {
	root, err := kubebin.Root()
	if err != nil {
		return "unknown"
	}
	out, err := exec.CommandContext(ctx, "git", "-C", root, "describe", "--always", "--dirty").Output() //nolint:gosec // the root of this repository
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// ofFile returns the first value of a key in a file under /proc.
func ofFile(path, key string) string {
	content, err := os.ReadFile(path) //nolint:gosec // named above
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(content)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func (r *report) add(run *Run) { r.Runs = append(r.Runs, run) }

// find returns the runs of a part.
func (r *report) find(scenario, part string) (found []*Run) {
	for _, run := range r.Runs {
		if run.Scenario == scenario && run.Part == part {
			found = append(found, run)
		}
	}
	return found
}

// headline describes the machine and the limits.
func (r *report) headline() string {
	var out strings.Builder
	fmt.Fprintf(&out, "commit %s, %s\n", r.Commit, r.Date.Format(time.RFC3339))
	for _, group := range []map[string]string{r.Machine, r.Limits, r.Settings} {
		for _, key := range sortedKeys(group) {
			fmt.Fprintf(&out, "  %s: %s\n", key, group[key])
		}
	}
	return out.String()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// text formats the report for people.
func (r *report) text() string {
	r.Goals = r.judge()
	var out bytes.Buffer
	out.WriteString(r.headline())
	section := func(title string, rows [][]string) {
		if len(rows) < 2 {
			return
		}
		fmt.Fprintf(&out, "\n%s\n", title)
		w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
		for _, row := range rows {
			fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
		}
		_ = w.Flush() // into memory
	}
	section("Throughput, and resource usage of the manager", r.throughput())
	section("Times in ms", r.times())
	section("Requests of the manager per claim", r.requests())
	section("Reconciles per claim", r.reconciles())
	section("Other values", r.values())
	section("Goals", r.goals())
	return out.String()
}

func (r *report) throughput() [][]string {
	rows := [][]string{{"SCENARIO", "PART", "CLAIMS", "MEMBERS", "REPEAT", "LOAD", "BUSY", "SECONDS", "PER SECOND", "CPU S", "PEAK MIB", "READS", "VOLUME WRITES", "POD WRITES"}}
	for _, run := range r.Runs {
		if run.Seconds == 0 {
			continue
		}
		rows = append(rows, []string{run.Scenario, run.Part, fmt.Sprint(run.Claims), fmt.Sprint(run.Members), fmt.Sprint(run.Repeat), run.Load, unless0(run.Busy),
			fmt.Sprintf("%.1f", run.Seconds), fmt.Sprintf("%.1f", run.Rate), unless0(run.CPUSeconds), unless0(run.PeakMiB),
			unless0(run.reads()), unless0(run.writes(func(c Count) bool { return !c.ofPod() })), unless0(run.writes(Count.ofPod))})
	}
	return rows
}

func unless0(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g", v)
}

func (r *report) times() [][]string {
	rows := [][]string{{"SCENARIO", "PART", "CLAIMS", "REPEAT", "WHAT", "P50", "P90", "P99", "MAX"}}
	for _, run := range r.Runs {
		for _, what := range sortedKeys(run.Times) {
			d := run.Times[what]
			rows = append(rows, []string{run.Scenario, run.Part, fmt.Sprint(run.Claims), fmt.Sprint(run.Repeat), what,
				fmt.Sprintf("%.0f", d.P50), fmt.Sprintf("%.0f", d.P90), fmt.Sprintf("%.0f", d.P99), fmt.Sprintf("%.0f", d.Max)})
		}
	}
	return rows
}

// requests returns a table of the requests in the first repeat of each part. The other repeats make
// about the same requests; only the JSON file contains them.
func (r *report) requests() [][]string {
	rows := [][]string{{"SCENARIO", "PART", "CLAIMS", "SIDE", "VERB", "RESOURCE", "EACH", "REFUSED"}}
	for _, run := range r.Runs {
		if run.Repeat > 1 || run.Claims == 0 {
			continue
		}
		for _, c := range run.Requests {
			if c.Each < 0.05 || c.shared() || c.Verb == "watch" {
				continue
			}
			rows = append(rows, []string{run.Scenario, run.Part, fmt.Sprint(run.Claims), c.Side, c.Verb, c.Resource, fmt.Sprintf("%.2f", c.Each), fmt.Sprint(c.Refused)})
		}
	}
	return rows
}

// reconciles returns a table of the reconciles in the first repeat of each part, by controller.
func (r *report) reconciles() [][]string {
	rows := [][]string{{"SCENARIO", "PART", "CLAIMS", "CONTROLLER", "EACH"}}
	for _, run := range r.Runs {
		if run.Repeat > 1 {
			continue
		}
		for _, controller := range sortedKeys(run.Reconciles) {
			if each := run.Reconciles[controller]; each >= 0.05 {
				rows = append(rows, []string{run.Scenario, run.Part, fmt.Sprint(run.Claims), controller, fmt.Sprintf("%.2f", each)})
			}
		}
	}
	return rows
}

func (r *report) values() [][]string {
	rows := [][]string{{"SCENARIO", "PART", "MEMBERS", "WHAT", "VALUE"}}
	for _, run := range r.Runs {
		for _, what := range sortedKeys(run.Values) {
			rows = append(rows, []string{run.Scenario, run.Part, fmt.Sprint(run.Members), what, fmt.Sprintf("%.2f", run.Values[what])})
		}
	}
	return rows
}

func (r *report) goals() [][]string {
	rows := [][]string{{"GOAL", "LIMIT", "FIGURE", ""}}
	for _, g := range r.Goals {
		rows = append(rows, []string{g.Name, g.Limit, g.Figure, g.verdict()})
	}
	return rows
}

func (r *report) jsonPath(dir string) string { return filepath.Join(dir, "results.json") }
func (r *report) textPath(dir string) string { return filepath.Join(dir, "results.txt") }

// write writes the report as JSON and text.
func (r *report) write(dir string) error {
	text := r.text()
	content, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("create the directory of results: %w", err)
	}
	for path, content := range map[string][]byte{r.jsonPath(dir): content, r.textPath(dir): []byte(text)} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	return nil
}
