package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unwatchedRead is a read for which a controller does not need a watch.
type unwatchedRead struct {
	controller string
	access     access
}

// readAgain is the reason why recovery does not need to watch the objects that it reads.
const readAgain = "read when the claim's timeout has passed, and then at intervals until a member is found"

// nodeOfGroup is the reason why controllers that check the node of a Pod do not watch it.
const nodeOfGroup = "whether the node of a Pod represents a group of the member: it has had its labels since before the scheduler could choose it"

// One observer reads volumes for root_pvc, leaf_pv and root_pv (package volume/observe).
const (
	onlyRootPVC       = "only root_pvc's steps depend on it: TestStepsDoNotDependOnUnwatchedObjects in package rootpvc"
	onlyUnprovisioned = "only for claims without a volume, which are root_pvc's"
)

// unwatchedReads lists the reads that need no watch, each with the reason. An unnecessary exception
// fails the test.
var unwatchedReads = map[unwatchedRead]string{
	{"capacity.reconciler", access{hostSide, "ClusterRegistration"}}: "only its name and UID, for the owner reference: the Link ends with the registration",

	{"clusterregistration.Reconciler", access{hostSide, "StorageClass"}}: "for the condition ClassesReflected: reflected_class watches the classes, and the record that both share enqueues the registration",

	{"leafevent.reconciler", access{hostSide, "PersistentVolumeClaim"}}: "an event is copied to the objects that exist when it arrives; an event that arrives too early is retried",
	{"leafevent.reconciler", access{hostSide, "Pod"}}:                   "as for claims: an event is copied to the objects that exist when it arrives",
	{"leafevent.reconciler", access{leafSide, "PersistentVolumeClaim"}}: "only for an event that has arrived",
	{"leafevent.reconciler", access{leafSide, "Pod"}}:                   "only for an event that has arrived",

	{"leafpod.reconciler", access{hostSide, "Node"}}:                "the member's virtual node, for a kubelet's checks when a Pod is bound; if the node is missing, leaf_pod returns an error and retries",
	{"leafpod.reconciler", access{hostSide, "ClusterRegistration"}}: "to find other members that could run a Pod; if there are none, the registrations are read again at intervals",
	{"leafpod.reconciler", access{hostSide, "StorageClass"}}:        "to find other members, as for the registrations",

	{"leafpod.reconciler", access{hostSide, "Namespace"}}: "to find other members, as for the registrations",

	{"rootpod.reconciler", access{leafSide, "PersistentVolume"}}: "whether a bound volume has a node affinity, which does not change",
	{"rootconfig.reconciler", access{hostSide, "Node"}}:          nodeOfGroup,
	{"leafnamespace.reconciler", access{hostSide, "Node"}}:       nodeOfGroup,

	{"waitingpod.Reconciler", access{hostSide, "StorageClass"}}:     "when the class of a Pod's claim is created, the scheduler retries the Pod, which changes the Pod",
	{"waitingpod.Reconciler", access{hostSide, "PersistentVolume"}}: "the volume of a bound claim, which already exists: the scheduler's next attempt changes the Pod",

	{"leafpv.reconciler", access{hostSide, "Namespace"}}:            "its UID, which does not change while the claim exists; if the namespace is missing, leaf_pv returns an error and retries",
	{"rootpv.reconciler", access{hostSide, "Node"}}:                 "the cluster of a Pod's node; while only Pods on other members' nodes may use a disk, the Pods are checked again at intervals",
	{"rootpvc.reconciler", access{hostSide, "ClusterRegistration"}}: "only its name, for a message",
	{"rootpv.reconciler", access{hostSide, "ClusterRegistration"}}:  "only its name, for a message",
	{"rootpod.reconciler", access{hostSide, "StorageClass"}}:        readAgain,

	{"recovery.reconciler", access{hostSide, "CSIStorageCapacity"}}:    readAgain,
	{"recovery.reconciler", access{hostSide, "ClusterRegistration"}}:   readAgain,
	{"recovery.reconciler", access{hostSide, "PersistentVolume"}}:      "only its node affinity, which does not change",
	{"recovery.reconciler", access{hostSide, "Node"}}:                  readAgain,
	{"recovery.reconciler", access{hostSide, "StorageClass"}}:          readAgain,
	{"recovery.reconciler", access{leafSide, "Event"}}:                 readAgain,
	{"recovery.reconciler", access{leafSide, "StorageClass"}}:          "only its binding mode, which does not change",
	{"recovery.reconciler", access{leafSide, "PersistentVolume"}}:      readAgain,
	{"recovery.reconciler", access{leafSide, "PersistentVolumeClaim"}}: readAgain,

	{"source.Reconciler", access{hostSide, "CSIStorageCapacity"}}: "source reads them together with the members, but does not use them",
	{"source.Reconciler", access{hostSide, "Pod"}}:                "only to prefer one of several members: the scheduler's selection changes the claim",
	{"leafpv.reconciler", access{leafSide, "VolumeSnapshot"}}:     "whether the source's name still belongs to the same snapshot when the restored volume appears: the volume is watched",
	{"rootpv.reconciler", access{leafSide, "VolumeSnapshot"}}:     "only for volumes that are not mirrored yet",

	{"leafpv.reconciler", access{leafSide, "Event"}}:                 onlyUnprovisioned,
	{"leafpv.reconciler", access{leafSide, "Pod"}}:                   onlyUnprovisioned,
	{"leafpv.reconciler", access{leafSide, "VolumeSnapshotContent"}}: onlyUnprovisioned,
	{"leafpv.reconciler", access{hostSide, "VolumeSnapshot"}}:        onlyUnprovisioned,
	{"leafpv.reconciler", access{hostSide, "VolumeSnapshotContent"}}: onlyUnprovisioned,
	{"leafpv.reconciler", access{leafSide, "StorageClass"}}:          onlyRootPVC,
	{"leafpv.reconciler", access{leafSide, "Namespace"}}:             onlyRootPVC,
	{"rootpv.reconciler", access{leafSide, "Event"}}:                 onlyUnprovisioned,
	{"rootpv.reconciler", access{leafSide, "Pod"}}:                   onlyUnprovisioned,
	{"rootpv.reconciler", access{leafSide, "VolumeSnapshotContent"}}: onlyUnprovisioned,
	{"rootpv.reconciler", access{hostSide, "VolumeSnapshot"}}:        onlyUnprovisioned,
	{"rootpv.reconciler", access{hostSide, "VolumeSnapshotContent"}}: onlyUnprovisioned,
	{"rootpv.reconciler", access{leafSide, "StorageClass"}}:          onlyRootPVC,
	{"rootpv.reconciler", access{leafSide, "Namespace"}}:             onlyRootPVC,
	{"leafpv.reconciler", access{hostSide, "Pod"}}:                   "the Pods that use a promise's disk: root_pv owns all steps that depend on them",
	{"leafpv.reconciler", access{hostSide, "ClusterRegistration"}}:   "only its name, for a message",
	{"rootpv.reconciler", access{hostSide, "Namespace"}}:             "as for leaf_pv",
	{"rootpv.reconciler", access{hostSide, "StorageClass"}}:          onlyRootPVC,

	{"rootsnapshot.reconciler", access{hostSide, "PersistentVolumeClaim"}}: "the claim's volume, which does not change while the claim is bound: the snapshot-controller creates contents only for bound claims",
	{"rootsnapshot.reconciler", access{leafSide, "PersistentVolume"}}:      "the volume of a leaf claim that is itself watched",
	{"leafsnapshot.reconciler", access{hostSide, "PersistentVolumeClaim"}}: "as for root_snapshot: the claim's volume, which does not change while the claim is bound",
	{"leafsnapshot.reconciler", access{leafSide, "PersistentVolume"}}:      "as for root_snapshot: the volume of a leaf claim that is itself watched",
	{"hostsnapshot.Reconciler", access{hostSide, "PersistentVolumeClaim"}}: "as for root_snapshot: the claim's volume, which does not change while the claim is bound",

	{"rootpvc.reconciler", access{leafSide, "Node"}}: "whether the leaf claim's node is in the group that recovery selected: the claim enqueues it when recovery selects one",
	{"leafpv.reconciler", access{leafSide, "Node"}}:  onlyRootPVC,
	{"rootpv.reconciler", access{leafSide, "Node"}}:  onlyRootPVC,

	{"reflectedclass.memberReconciler", access{hostSide, "StorageClass"}}: "only for classes that were published before the manager started",
}

// withoutController lists the packages in internal/controller that do not register a controller, and
// when they do their work.
var withoutController = map[string]string{
	"membertoken": "renews a token at a given time",
	"orphan":      "checks all objects at intervals, with live reads",
	"stuck":       "checks all objects at intervals",
}

func TestEveryControllerWatchesWhatItReads(t *testing.T) {
	all, err := product(t).controllers()
	if err != nil {
		t.Fatal(err)
	}
	used := map[unwatchedRead]bool{}
	for _, c := range all {
		if len(c.reads) == 0 || len(c.watches) == 0 {
			t.Errorf("%s: %d reads and %d watches were found; want at least one of each", c.name, len(c.reads), len(c.watches))
		}
		for _, text := range c.unknown {
			t.Errorf("%s: %s", c.name, text)
		}
		for _, a := range c.unwatched() {
			e := unwatchedRead{c.name, a}
			if used[e] = true; unwatchedReads[e] == "" {
				t.Errorf("%s reads %s (%s) but does not watch it. Add a source to its Setup.", c.name, a, c.reads[a])
			}
		}
		t.Logf("%s reads %v and watches %v", c.name, sorted(c.reads), sorted(c.watches))
	}
	for e := range unwatchedReads {
		if !used[e] {
			t.Errorf("%s no longer reads %s, or now watches it: remove the exception", e.controller, e.access)
		}
	}
	everyPackageWatches(t, all)
	findsKnownReads(t, all)
}

// everyPackageWatches checks that no package below internal/controller is omitted.
func everyPackageWatches(t *testing.T, all []*controllerAccesses) {
	entries, err := os.ReadDir(filepath.Join(root, "internal", "controller"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		found := slices.ContainsFunc(all, func(c *controllerAccesses) bool { return packageOf(c) == entry.Name() })
		if listed := withoutController[entry.Name()] != ""; found == listed {
			t.Errorf("package %s must either register a controller (%t) or be in withoutController (%t)", entry.Name(), found, listed)
		}
	}
}

func packageOf(c *controllerAccesses) string {
	name, _, _ := strings.Cut(c.name, ".")
	return name
}

// findsKnownReads checks that the analysis finds a real example of each form of read that the controllers
// use. If it does not, the analysis is broken.
func findsKnownReads(t *testing.T, all []*controllerAccesses) {
	for name, accesses := range map[string][]access{
		"rootpvc.reconciler":             {{hostSide, "PersistentVolumeClaim"}, {leafSide, "PersistentVolumeClaim"}, {leafSide, "StorageClass"}, {hostSide, "PersistentVolume"}, {leafSide, "Namespace"}},
		"rootpod.reconciler":             {{hostSide, "Pod"}, {leafSide, "Pod"}, {hostSide, "PersistentVolume"}, {leafSide, "StorageClass"}},
		"rootconfig.reconciler":          {{leafSide, "ConfigMap"}, {leafSide, "Secret"}, {hostSide, "Pod"}, {leafSide, "Namespace"}},
		"hostclaim.Reconciler":           {{hostSide, "CSIStorageCapacity"}},
		"clusterregistration.Reconciler": {{hostSide, "ClusterRegistration"}},
	} {
		i := slices.IndexFunc(all, func(c *controllerAccesses) bool { return c.name == name })
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

// TestUnwatchedReadsAreFound checks that the analysis finds unwatched reads of every form that controllers use.
func TestUnwatchedReadsAreFound(t *testing.T) {
	all, err := productWith(t, "broken").controllers()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(c *controllerAccesses) bool { return packageOf(c) == "broken" })
	if i < 0 {
		t.Fatal("the controller was not found")
	}
	want := []access{
		{hostSide, "ConfigMap"}, {hostSide, "Namespace"}, {hostSide, "Node"}, {hostSide, "PersistentVolume"}, {leafSide, "CSIStorageCapacity"},
		{leafSide, "Event"}, {leafSide, "Pod"}, {leafSide, "Secret"}, {leafSide, "StorageClass"},
	}
	if diff := cmp.Diff(want, all[i].unwatched(), cmp.AllowUnexported(access{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(all[i].unknown) != 2 {
		t.Errorf("want an unknown reader and an unknown kind, got %q", all[i].unknown)
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
