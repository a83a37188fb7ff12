package main

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// lag is how long the timeline delays entries, because watches of different clusters deliver
	// events slightly out of order.
	lag = 300 * time.Millisecond
	// showEvery is the interval for printing entries.
	showEvery = 100 * time.Millisecond
)

// object identifies an object by its cluster's column in the timeline (0 is the host), and by kind,
// namespace and name.
type object struct {
	column                int
	kind, namespace, name string
}

// Kinds of objects.
const (
	kindClaim  = "claim"
	kindPod    = "pod"
	kindVolume = "volume"
	kindDisk   = "disk" // named after its claim; includes the disk's snapshots
	// kindSnapshot is the kind of VolumeSnapshots.
	kindSnapshot = "snapshot"
)

// entry is one event.
type entry struct {
	at time.Time
	object
	change
}

// timeline collects events from all clusters and prints, during a scene, those in the scene's
// namespace. Its methods are safe for concurrent use.
type timeline struct {
	out     *console
	columns []string // the clusters' names

	mu      sync.Mutex
	all     []entry
	scene   string // the namespace to show; if empty, nothing is shown
	brief   bool   // the scene omits minor changes
	zero    time.Time
	waiting []entry
}

// begin starts a detailed or brief scene. Times are relative to the scene's first event.
func (t *timeline) begin(namespace string, brief bool) {
	for _, line := range heading(t.columns) {
		t.out.line("%s", t.out.style(dim, line))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scene, t.brief, t.zero, t.waiting = namespace, brief, time.Time{}, nil
}

// end ends the scene and prints its remaining entries.
func (t *timeline) end() {
	t.show(time.Now().Add(lag))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scene = ""
}

// record adds changes that happened to an object at a given time.
func (t *timeline) record(at time.Time, o object, changes ...change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range changes {
		e := entry{at, o, c}
		t.all = append(t.all, e)
		if t.scene != "" && t.scene == o.namespace {
			t.waiting = append(t.waiting, e)
		}
	}
}

// show prints the entries that are older than lag, in chronological order.
func (t *timeline) show(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sortEntries(t.waiting)
	n := 0
	for n < len(t.waiting) && t.waiting[n].at.Before(now.Add(-lag)) {
		n++
	}
	for _, e := range t.waiting[:n] {
		if t.zero.IsZero() {
			t.zero = e.at
		}
		if t.brief && e.minor {
			continue
		}
		for _, line := range row(elapsed(e.at.Sub(t.zero)), e.column, len(t.columns), e.text) {
			t.out.line("%s", t.out.emphasize(e.event, line))
		}
	}
	t.waiting = slices.Delete(t.waiting, 0, n)
}

// sortEntries sorts by time, then by cluster and object.
func sortEntries(entries []entry) {
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.column, b.column), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}

// when returns the time of an object's first event of a kind since a given time.
func (t *timeline) when(since time.Time, o object, ev event) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := time.Time{}
	for _, e := range t.all {
		if e.event == ev && e.column == o.column && e.kind == o.kind && e.namespace == o.namespace &&
			(o.name == "" || e.name == o.name) && !e.at.Before(since) && (found.IsZero() || e.at.Before(found)) {
			found = e.at
		}
	}
	return found, !found.IsZero()
}

// heading returns the column headers for a scene.
func heading(columns []string) []string {
	widths := []int{timeWidth}
	cells := []string{padLeft("since", timeWidth)}
	for i, name := range columns {
		w := memberWidth
		if i == 0 {
			w = hostWidth
		}
		cells, widths = append(cells, pad(name, w)), append(widths, w)
	}
	title, rule := "", ""
	for i, cell := range cells {
		if i > 0 {
			title, rule = title+separator, rule+"─┼─"
		}
		title += cell
		for range widths[i] {
			rule += "─"
		}
	}
	return []string{title, rule}
}

// emphasize highlights lines about events that a scene waits for.
func (c *console) emphasize(e event, line string) string {
	switch e {
	case bound, running:
		return c.style(green, line)
	case gone:
		return c.style(yellow, line)
	default:
		return line
	}
}

// said reports whether the timeline has an entry for the object that contains the text.
func (t *timeline) said(o object, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.all, func(e entry) bool { return e.object == o && strings.Contains(e.text, text) })
}
