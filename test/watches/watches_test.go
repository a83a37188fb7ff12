package watches

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

// exception is a read that a controller rightly does not watch.
type exception struct {
	controller string
	access     access
}

// exceptions, each with its reason. One that is not needed fails the test.
var exceptions = map[exception]string{
	{"claimtrace.reconciler", access{leaf, "PersistentVolume"}}: "what the leaf claim is bound to, which is watched",

	{"capacity.reconciler", access{host, "ClusterRegistration"}}: "only its name and UID, as an owner: the Link ends with the registration",

	{"clusterregistration.Reconciler", access{host, "StorageClass"}}: "for the condition ClassesReflected: reflected_class watches them, and the book that both share enqueues the registration",

	{"leafevent.reconciler", access{host, "PersistentVolumeClaim"}}: "an event is repeated on what is there when it comes; one that came too early is looked at again",
	{"leafevent.reconciler", access{host, "Pod"}}:                   "the same",
	{"leafevent.reconciler", access{leaf, "PersistentVolumeClaim"}}: "the same",
	{"leafevent.reconciler", access{leaf, "Pod"}}:                   "the same",

	{"leafpod.reconciler", access{host, "Node"}}:                "the member's own node, for what a kubelet checks once when a Pod is bound; one that is not there yet is an error, and retried",
	{"leafpod.reconciler", access{host, "ClusterRegistration"}}: "for which other members could take a Pod: where none could, it is read again at intervals",
	{"leafpod.reconciler", access{host, "StorageClass"}}:        "the same",

	{"leafpod.reconciler", access{host, "Namespace"}}: "the same",

	{"rootpod.reconciler", access{host, "Node"}}: "what a kubelet checks once, also of the node that the scheduler bound the Pod to instead; of those that it chose for claims, that they are known: its next choice is a change of the claim",
	{"rootpvc.reconciler", access{host, "Node"}}: "only where the scheduler nominates no node: its next attempt is a change of the Pod",

	{"hostservice.Reconciler", access{host, "Node"}}:                "the same",
	{"hostservice.Reconciler", access{host, "ClusterRegistration"}}: "for the text of that event",

	{"waitingpod.Reconciler", access{host, "StorageClass"}}:     "the scheduler tries the Pod again when the class of its claim comes, and says so on the Pod",
	{"waitingpod.Reconciler", access{host, "PersistentVolume"}}: "the volume that a claim is bound to, which was there before: the scheduler's next attempt is a change of the Pod",

	{"leafpv.reconciler", access{host, "Namespace"}}:            "its UID, which does not change while the claim exists; one that is not there yet is an error, and retried",
	{"leafpv.reconciler", access{host, "Pod"}}:                  "those that get an event when a promise is fulfilled: nothing is decided by them",
	{"rootpv.reconciler", access{host, "Node"}}:                 "the cluster of a Pod's node; while only Pods on other members' nodes may use a disk, they are looked at again at intervals",
	{"rootpvc.reconciler", access{host, "ClusterRegistration"}}: "only its name, for a message",

	{"recovery.reconciler", access{host, "CSIStorageCapacity"}}:    "read when the claim's timer is over; where there is no place for the claim, it is read again at intervals",
	{"recovery.reconciler", access{host, "ClusterRegistration"}}:   "the same",
	{"recovery.reconciler", access{host, "Node"}}:                  "the same",
	{"recovery.reconciler", access{host, "StorageClass"}}:          "the same",
	{"recovery.reconciler", access{leaf, "Event"}}:                 "the same",
	{"recovery.reconciler", access{leaf, "PersistentVolume"}}:      "the same",
	{"recovery.reconciler", access{leaf, "PersistentVolumeClaim"}}: "the same",

	{"source.Reconciler", access{host, "CSIStorageCapacity"}}: "not used: it comes with the members",
	{"source.Reconciler", access{host, "Pod"}}:                "only which of several members it prefers: the scheduler's choice is a change of the claim",
	{"leafpv.reconciler", access{leaf, "VolumeSnapshot"}}:     "whose its name is when the volume appears that was restored from it, which is watched",
	{"rootpv.reconciler", access{leaf, "VolumeSnapshot"}}:     "it has no reader of them: the volume is mirrored by then",

	{"rootsnapshot.reconciler", access{host, "PersistentVolumeClaim"}}: "its volume, which does not change while it is bound: the snapshot-controller creates a content for a bound claim only",
	{"rootsnapshot.reconciler", access{leaf, "PersistentVolume"}}:      "what the leaf claim is bound to, which is watched",
	{"leafsnapshot.reconciler", access{host, "PersistentVolumeClaim"}}: "as root_snapshot",
	{"leafsnapshot.reconciler", access{leaf, "PersistentVolume"}}:      "the same",
	{"hostsnapshot.Reconciler", access{host, "PersistentVolumeClaim"}}: "the same",

	{"reflectedclass.observer", access{host, "StorageClass"}}: "only for what was offered before the manager started",
}

// untriggered are the packages of internal/controller without a controller, and what runs
// them instead.
var untriggered = map[string]string{
	"leafnode":    "adds nodes and Pods up when its informers tell of any",
	"membertoken": "renews a token by the clock",
	"orphan":      "looks at everything at intervals, live",
	"stuck":       "looks at everything at intervals",
}

func TestEveryControllerWatchesWhatItReads(t *testing.T) {
	root, err := kubebin.Root()
	if err != nil {
		t.Fatal(err)
	}
	p, err := load(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.controllers()
	if err != nil {
		t.Fatal(err)
	}
	used := map[exception]bool{}
	for _, c := range all {
		if len(c.reads) == 0 || len(c.watches) == 0 {
			t.Errorf("%s: %d reads and %d watches were found; it must have some of both", c.name, len(c.reads), len(c.watches))
		}
		for _, text := range c.unknown {
			t.Errorf("%s: %s", c.name, text)
		}
		for _, a := range c.unwatched() {
			e := exception{c.name, a}
			if used[e] = true; exceptions[e] == "" {
				t.Errorf("%s reads %s (%s) and does not watch it. Add a source to its Setup.", c.name, a, c.reads[a])
			}
		}
		t.Logf("%s reads %v and watches %v", c.name, sorted(c.reads), sorted(c.watches))
	}
	for e := range exceptions {
		if !used[e] {
			t.Errorf("%s does not read %s any more, or watches it: remove the exception", e.controller, e.access)
		}
	}
	everyPackage(t, root, all)
	known(t, all)
}

// everyPackage: nothing below internal/controller is left out.
func everyPackage(t *testing.T, root string, all []*controller) {
	entries, err := os.ReadDir(filepath.Join(root, "internal", "controller"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		found := slices.ContainsFunc(all, func(c *controller) bool { return packageOf(c) == entry.Name() })
		if listed := untriggered[entry.Name()] != ""; found == listed {
			t.Errorf("package %s: has a controller: %t; is listed as having none: %t", entry.Name(), found, listed)
		}
	}
}

func packageOf(c *controller) string {
	name, _, _ := strings.Cut(c.name, ".")
	return name
}

// known: reads through each way of reading that the controllers have. If one is not found,
// what follows the calls is broken.
func known(t *testing.T, all []*controller) {
	for name, accesses := range map[string][]access{
		"rootpvc.reconciler":                {{host, "PersistentVolumeClaim"}, {leaf, "PersistentVolumeClaim"}, {leaf, "StorageClass"}, {host, "PersistentVolume"}, {leaf, "Namespace"}},
		"rootpod.reconciler":                {{host, "Pod"}, {leaf, "Pod"}, {host, "PersistentVolume"}, {leaf, "StorageClass"}},
		"rootconfig.reconciler[*ConfigMap]": {{leaf, "ConfigMap"}, {host, "Pod"}, {leaf, "Namespace"}},
		"rootconfig.reconciler[*Secret]":    {{leaf, "Secret"}},
		"hostclaim.Reconciler":              {{host, "CSIStorageCapacity"}},
		"clusterregistration.Reconciler":    {{host, "ClusterRegistration"}},
	} {
		i := slices.IndexFunc(all, func(c *controller) bool { return c.name == name })
		if i < 0 {
			t.Errorf("controller %s was not found", name)
			continue
		}
		for _, a := range accesses {
			if all[i].reads[a] == "" {
				t.Errorf("%s reads %s, which was not found", name, a)
			}
		}
	}
}

// TestBroken: a controller that reads, in each way, what it does not watch is found out.
func TestBroken(t *testing.T) {
	root, err := kubebin.Root()
	if err != nil {
		t.Fatal(err)
	}
	p, err := load(t.Context(), root, filepath.Join("testdata", "broken"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.controllers()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(c *controller) bool { return packageOf(c) == "broken" })
	if i < 0 {
		t.Fatal("it was not found")
	}
	want := []access{
		{host, "ConfigMap"}, {host, "Namespace"}, {host, "Node"}, {host, "PersistentVolume"}, {leaf, "CSIStorageCapacity"},
		{leaf, "Event"}, {leaf, "Pod"}, {leaf, "Secret"}, {leaf, "StorageClass"},
	}
	if diff := cmp.Diff(want, all[i].unwatched(), cmp.AllowUnexported(access{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(all[i].unknown) != 2 {
		t.Errorf("want a reader and a kind that nobody knows, got %q", all[i].unknown)
	}
}

func sorted(of map[access]string) []string {
	names := make([]string, 0, len(of))
	for a := range of {
		names = append(names, a.String())
	}
	slices.Sort(names)
	return names
}
