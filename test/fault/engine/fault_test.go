package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xylem-io/xylem/test/fault/proxy"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/fault/scenario"
)

const namespace = "fault-x-1-1"

func TestParseFault(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want Fault
		bad  bool
	}{
		"a kill":         {"kill-after@host/patch/pods.status/app#2", Fault{KillAfter, Point{"host/patch/pods.status/app", 2}}, false},
		"unknown kind":   {"explode@host/patch/pods/app#1", Fault{}, true},
		"missing point":  {"kill-after", Fault{}, true},
		"missing number": {"kill-after@host/patch/pods/app", Fault{}, true},
		"number zero":    {"kill-after@host/patch/pods/app#0", Fault{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseFault(tt.text)
			if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.bad {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
			if !tt.bad && got.String() != tt.text {
				t.Errorf("String() = %q", got.String())
			}
		})
	}
}

func TestKeyOf(t *testing.T) {
	for name, tt := range map[string]struct {
		request proxy.Request
		want    string // "" means that the write does not count
	}{
		"an object of the run": {
			proxy.Request{Cluster: "host", Verb: "patch", Resource: "pods", Subresource: "status", Namespace: namespace, Name: "app"},
			"host/patch/pods.status/app",
		},
		"a volume with a generated name": {
			proxy.Request{Cluster: "cluster38", Verb: "patch", Resource: "persistentvolumes", Name: "pvc-1"},
			"cluster38/patch/persistentvolumes/volume",
		},
		"a content with a generated name": {
			proxy.Request{Cluster: "host", Verb: "patch", Group: "snapshot.storage.k8s.io", Resource: "volumesnapshotcontents", Subresource: "status", Name: "snapcontent-1"},
			"host/patch/volumesnapshotcontents.status/content",
		},
		"a copy with a digest in its name": {
			proxy.Request{Cluster: "cluster38", Verb: "create", Resource: "configmaps", Namespace: namespace, Name: "settings.xylem-39a9ee6b"},
			"cluster38/create/configmaps/settings",
		},
		"the leaf namespace": {
			proxy.Request{Cluster: "cluster38", Verb: "create", Resource: "namespaces", Name: namespace},
			"cluster38/create/namespaces/leaf",
		},
		"another run's leaf namespace": {
			proxy.Request{Cluster: "cluster38", Verb: "delete", Resource: "namespaces", Name: "fault-y-1-1"}, "",
		},
		"another run's object": {
			proxy.Request{Cluster: "cluster38", Verb: "delete", Resource: "configmaps", Namespace: "fault-y-1-1", Name: "c"}, "",
		},
		"a registration": {
			proxy.Request{Cluster: "host", Verb: "patch", Resource: "clusterregistrations", Subresource: "status", Name: "cluster39"},
			"host/patch/clusterregistrations.status/cluster39",
		},
		"a Lease":              {proxy.Request{Cluster: "host", Verb: "patch", Resource: "leases", Namespace: "xylem-system", Name: "l"}, ""},
		"a Secret with tokens": {proxy.Request{Cluster: "cluster38", Verb: "create", Resource: "secrets", Namespace: namespace, Name: "0-1.xylem-token"}, "cluster38/create/secrets/token"},
		"an Event":             {proxy.Request{Cluster: "host", Verb: "create", Resource: "events", Namespace: namespace, Name: "e"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, counts := keyOf(tt.request, namespace)
			if got != tt.want || counts != (tt.want != "") {
				t.Errorf("keyOf() = %q, %t; want %q", got, counts, tt.want)
			}
		})
	}
}

// engineWith returns an engine and three scenarios, two of which have references with two writes
// each. One of these is a core scenario.
func engineWith() (*Engine, []scenario.Scenario) {
	points := []Point{{"a", 1}, {"b", 1}}
	return &Engine{references: map[string]*Reference{"one": {Points: points}, "two": {Points: points}}},
		[]scenario.Scenario{{Name: "one", Core: true}, {Name: "two"}, {Name: "without a reference"}}
}

func described(specs []Spec) []string {
	var all []string
	for _, s := range specs {
		all = append(all, s.Scenario.Name+": "+Describe(s.Faults))
	}
	return all
}

func TestEnumerate(t *testing.T) {
	e, scenarios := engineWith()
	want := []string{
		"one: no fault",
		"one: kill-before@a#1", "one: kill-after@a#1", "one: kill-before@b#1", "one: kill-after@b#1",
		"two: kill-before@a#1", "two: kill-after@a#1", "two: kill-before@b#1", "two: kill-after@b#1",
		"one: conflict@a#1 too-many@b#1",
		"two: no fault",
		"one: restore-host@a#1", "one: kill-restore-member@a#1", "one: restore-member@b#1", "one: kill-restore-host@b#1",
		"two: internal@a#1 unavailable@b#1",
		"two: restore-host@a#1", "two: kill-restore-member@a#1", "two: restore-member@b#1", "two: kill-restore-host@b#1",
	}
	got := described(e.Enumerate(scenarios))
	if diff := cmp.Diff(got, described(e.Enumerate(scenarios))); diff != "" {
		t.Errorf("the same seed results in another order: -first +second:\n%s", diff)
	}
	if got[0] != want[0] {
		t.Errorf("the first run is %q, want %q, because it mostly waits", got[0], want[0])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want = []string{"one: cut@a#1", "one: cut@b#1", "one: stall@a#1", "one: stall@b#1"}
	got = described(e.Enumerate(scenarios[:1], Stall, Cut))
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs with two kinds: -want +got:\n%s", diff)
	}
}

func TestErrorsOf(t *testing.T) {
	for name, tt := range map[string]struct {
		key  string
		want int
	}{
		"a scenario without snapshots": {"host/patch/pods/app", len(Errors)},
		"a scenario with snapshots":    {"host/patch/volumesnapshotcontents/content", len(Errors) + len(OfSnapshots)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := errorsOf([]Point{{"host/patch/pods/app", 1}, {tt.key, 1}}); len(got) != tt.want {
				t.Errorf("%d kinds of errors, want %d", len(got), tt.want)
			}
		})
	}
}

func TestInPairs(t *testing.T) {
	a, b, c := Fault{Cut, Point{"a", 1}}, Fault{Stall, Point{"b", 1}}, Fault{Cut, Point{"c", 1}}
	for name, tt := range map[string]struct {
		faults []Fault
		want   []string
	}{
		"none": {},
		"one":  {faults: []Fault{a}, want: []string{"s: cut@a#1"}},
		"odd":  {faults: []Fault{a, b, c}, want: []string{"s: cut@a#1 cut@c#1", "s: stall@b#1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, described(inPairs(scenario.Scenario{Name: "s"}, tt.faults))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSliceHasOnlyCoreScenarios(t *testing.T) {
	e, scenarios := engineWith()
	if diff := cmp.Diff([]string{"one: kill-after@a#1", "one: conflict@b#1"}, described(e.Slice(scenarios))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestKindsAreComplete checks that all tables contain each kind of fault, and that each fault that
// makes a cache lag has a resource.
func TestKindsAreComplete(t *testing.T) {
	for _, kind := range everyKind() {
		if _, known := inProxy[kind]; !known {
			t.Errorf("%s is missing from inProxy", kind)
		}
		for _, prefix := range []string{"lag-", "stale-"} {
			of, found := strings.CutPrefix(string(kind), prefix)
			if whole := of == "lists" || of == "host"; found && !whole && !strings.HasSuffix(lagging[kind], of) {
				t.Errorf("%s makes the cache of %q lag, want the resource in its name", kind, lagging[kind])
			}
		}
	}
	if n := len(everyKind()); n != len(inProxy) {
		t.Errorf("%d kinds are in the lists, but %d in inProxy", n, len(inProxy))
	}
}

func TestRestoredBy(t *testing.T) {
	for fault, want := range map[Fault]string{
		{RestoreHost, Point{"cluster39/patch/pods/app", 1}}:       rig.Host,
		{KillRestoreMember, Point{"cluster39/patch/pods/app", 1}}: rig.Two,
		{RestoreMember, Point{"host/patch/pods/app", 1}}:          rig.One,
	} {
		if got := restoredBy(fault); got != want {
			t.Errorf("%s restores %s, want %s", fault, got, want)
		}
	}
}

func TestPairsDependOnTheSeed(t *testing.T) {
	e, scenarios := engineWith()
	some := func(seed uint64) []string {
		var specs []Spec
		for spec := range e.Pairs(seed, scenarios[:2]) {
			if specs = append(specs, spec); len(specs) == 20 {
				break
			}
			if spec.Faults[0].Point == spec.Faults[1].Point {
				t.Errorf("both faults are at %s, but a write can have only one", spec.Faults[0].Point)
			}
		}
		return described(specs)
	}
	if diff := cmp.Diff(some(7), some(7)); diff != "" {
		t.Errorf("sequences with the same seed differ:\n%s", diff)
	}
	if cmp.Diff(some(7), some(8)) == "" {
		t.Error("sequences with different seeds are the same")
	}
}

// TestNoRestoreAfterTheEnd checks that a restore does not begin at a write after the run's end, but
// other faults do.
func TestNoRestoreAfterTheEnd(t *testing.T) {
	fault := func(kind Kind, n int) Fault { return Fault{kind, Point{"host/patch/pods/app", n}} }
	atEnd, conflict := fault(RestoreHost, 1), fault(Conflict, 2)
	begun := make(chan func(context.Context) error, 1)
	in := &injector{
		namespace: namespace, faults: []Fault{atEnd, conflict}, counts: map[string]int{}, hit: map[Fault]bool{},
		restore: &restore{start: begun},
	}
	if !in.close() {
		t.Fatal("a restore is reported as in progress, but none began")
	}
	write := proxy.Request{Cluster: "host", Verb: "patch", Resource: "pods", Namespace: namespace, Name: "app"}
	if got := in.plan(write); got != "" {
		t.Errorf("the write with the restore has fault %s, want none", got)
	}
	if got := in.plan(write); got != proxy.Conflict {
		t.Errorf("the next write has fault %q, want a conflict", got)
	}
	if diff := cmp.Diff([]Fault{atEnd}, in.missed()); diff != "" {
		t.Errorf("missed faults: -want +got:\n%s", diff)
	}
}
