package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/internal/volume"
)

// scene describes the objects of one observation.
type scene struct {
	root                   bool
	rootVolume, rootPlaced string
	rootDeleting           bool
	host, earlier          bool
	hostRef                types.UID // none means that the host PV has no claimRef
	hostPhase              corev1.PersistentVolumePhase
	hostPolicy             corev1.PersistentVolumeReclaimPolicy
	hostFlags              int
	claim                  bool
	claimRoot              types.UID
	claimVolume            string
	claimPhase             corev1.PersistentVolumeClaimPhase
	claimDeleting          bool
	leaf                   bool
	leafStamp              types.UID
	leafOwn                string
	leafPolicy             corev1.PersistentVolumeReclaimPolicy
	leafRef                types.UID
	leafPhase              corev1.PersistentVolumePhase
	leafDeleting           bool
	restored               restore
	source                 int
}

const none = types.UID("none")

// normal are the states that a volume passes through if nobody interferes.
func normal() map[string]scene {
	provisioning := scene{
		root: true, rootPlaced: member.ClusterID, claim: true, claimRoot: "root", claimPhase: corev1.ClaimPending,
		// The fields of objects that do not exist yet are those with which they appear.
		hostRef: "root", hostPhase: corev1.VolumeAvailable, hostPolicy: deletes,
		leafPolicy: deletes, leafRef: "leaf-claim", leafPhase: corev1.VolumeBound,
	}
	all := map[string]scene{"provisioning": provisioning}
	step := func(name string, from scene, change func(*scene)) scene {
		change(&from)
		all[name] = from
		return from
	}
	provisioned := step("provisioned", provisioning, func(s *scene) {
		s.claimVolume, s.claimPhase, s.leaf = "pv-1", corev1.ClaimBound, true
	})
	stamped := step("stamped", provisioned, func(s *scene) { s.leafStamp, s.leafOwn, s.leafPolicy = "root", string(deletes), retains })
	mirrored := step("mirrored", stamped, func(s *scene) { s.host = true })
	bound := step("bound", mirrored, func(s *scene) { s.rootVolume, s.hostPhase = hostPV.Name, corev1.VolumeBound })
	released := step("released", bound, func(s *scene) { s.root, s.hostPhase = false, corev1.VolumeReleased })
	destroying := step("destroying", released, func(s *scene) { s.leafPolicy = deletes })
	step("deleting the leaf claim", destroying, func(s *scene) { s.claimDeleting = true })
	ending := step("the leaf claim is gone", destroying, func(s *scene) { s.claim, s.leafPhase = false, corev1.VolumeReleased })
	ended := step("the leaf PV is gone", ending, func(s *scene) { s.leaf = false })
	step("the host PV ends", ended, func(s *scene) { s.hostFlags = hostDeletes })
	kept := step("released, and retained", released, func(s *scene) { s.hostPolicy = retains })
	keptAlone := step("retained without a leaf claim", kept, func(s *scene) { s.claim, s.leafPhase = false, corev1.VolumeReleased })
	orphan := step("orphaned", keptAlone, func(s *scene) { s.host = false })
	step("requested by a later claim", orphan, func(s *scene) { s.root, s.rootVolume, s.leafStamp = true, hostPV.Name, gone })
	step("an admin's volume", keptAlone, func(s *scene) {
		s.hostRef, s.hostPhase, s.hostFlags, s.leafStamp, s.leafRef, s.leafPhase = none, corev1.VolumeAvailable, hostImported, "host-pv", none, corev1.VolumeAvailable
	})
	return all
}

// deviations lists, for each dimension of a scene, what an edit, a lagging cache or a restore may show
// instead of its normal value.
func deviations() [][]func(*scene) {
	var all [][]func(*scene)
	add := func(alternatives ...func(*scene)) { all = append(all, alternatives) }
	add(func(s *scene) { s.root = !s.root })
	add(each([]string{"", hostPV.Name, "another"}, func(s *scene, v string) { s.rootVolume = v })...)
	add(each([]string{"", member.ClusterID, "id39"}, func(s *scene, v string) { s.rootPlaced = v })...)
	add(func(s *scene) { s.rootDeleting = true })
	add(func(s *scene) { s.host = !s.host }, func(s *scene) { s.host, s.earlier = true, true })
	add(each([]types.UID{none, "root", gone, ""}, func(s *scene, v types.UID) { s.hostRef = v })...)
	add(each(hostPVs, func(s *scene, v corev1.PersistentVolumePhase) { s.hostPhase = v })...)
	add(each(policies, func(s *scene, v corev1.PersistentVolumeReclaimPolicy) { s.hostPolicy = v })...)
	for flag := 1; flag < hostFlags; flag <<= 1 {
		add(func(s *scene) { s.hostFlags ^= flag })
	}
	add(func(s *scene) { s.claim = !s.claim })
	add(each([]types.UID{"root", gone}, func(s *scene, v types.UID) { s.claimRoot = v })...)
	add(each([]string{"", "pv-1", "pv-2"}, func(s *scene, v string) { s.claimVolume = v })...)
	add(each(claimPhases, func(s *scene, v corev1.PersistentVolumeClaimPhase) { s.claimPhase = v })...)
	add(func(s *scene) { s.claimDeleting = !s.claimDeleting })
	add(func(s *scene) { s.leaf = !s.leaf })
	add(each([]types.UID{"", consent, "root", gone, "host-pv", "earlier-pv"}, func(s *scene, v types.UID) { s.leafStamp = v })...)
	add(each([]string{string(deletes), string(retains), ""}, func(s *scene, v string) { s.leafOwn = v })...)
	add(each(policies, func(s *scene, v corev1.PersistentVolumeReclaimPolicy) { s.leafPolicy = v })...)
	add(each([]types.UID{none, "leaf-claim", "another"}, func(s *scene, v types.UID) { s.leafRef = v })...)
	add(each(leafPVs, func(s *scene, v corev1.PersistentVolumePhase) { s.leafPhase = v })...)
	add(func(s *scene) { s.leafDeleting = true })
	add(func(s *scene) { s.restored = memberRestore }, func(s *scene) { s.restored = hostRestore })
	add(func(s *scene) { s.source = 1 }, func(s *scene) { s.source = 2 })
	return all
}

func each[T any](values []T, set func(*scene, T)) []func(*scene) {
	var all []func(*scene)
	for _, v := range values {
		all = append(all, func(s *scene) { set(s, v) })
	}
	return all
}

// observed returns the observation of a scene.
func (s scene) observed() *volume.Observed {
	ref := func(uid types.UID) *corev1.ObjectReference {
		if uid == none {
			return nil
		}
		return refOf(uid)
	}
	var living, claim *corev1.PersistentVolumeClaim
	var host, leaf *corev1.PersistentVolume
	if s.root {
		living = rootClaim(s.rootVolume, s.rootPlaced, s.rootDeleting)
	}
	if s.host {
		host = hostVolume(ref(s.hostRef), s.hostPhase, s.hostPolicy, s.hostFlags)
	}
	if s.claim {
		claim = leafClaim(s.claimRoot, s.claimVolume, s.claimPhase, s.claimDeleting)
	}
	if s.leaf {
		leaf = leafVolume(s.leafStamp, s.leafOwn, s.leafPolicy, ref(s.leafRef), s.leafPhase, s.leafDeleting)
	}
	return withSource(combination(living, host, s.earlier && leaf != nil, claim, leaf, s.restored), s.source)
}

// mostDeviations returns the maximum number of dimensions in which a scene deviates from a normal one.
func mostDeviations() int {
	if testing.Short() {
		return 2
	}
	return 3
}

// TestEveryDeviation checks every scene that deviates in up to three dimensions from a normal state. A
// random combination is rarely close to a normal state, so TestEveryCombination rarely sees the steps that
// destroy a volume.
func TestEveryDeviation(t *testing.T) {
	seen, steps, failures := map[scene]bool{}, map[Step]int{}, 0
	dimensions := deviations()
	var visit func(from string, s scene, next, left int)
	visit = func(from string, s scene, next, left int) {
		if !seen[s] {
			seen[s] = true
			o := s.observed()
			p := NextPlan(o)
			steps[p.Step]++
			if why := wrong(o, p); why != "" {
				if failures++; failures <= 20 {
					t.Errorf("deviates from %q: %s: %s %s by %s: %s", from, why, p.Phase, p.Step, p.Owner, describe(o))
				}
			}
		}
		if left == 0 {
			return
		}
		for i := next; i < len(dimensions); i++ {
			for _, deviate := range dimensions[i] {
				deviated := s
				if deviate(&deviated); deviated != s {
					visit(from, deviated, i+1, left-1)
				}
			}
		}
	}
	for name, s := range normal() {
		visit(name, s, 0, mostDeviations())
	}
	for _, step := range []Step{Stamp, CreateHost, SetDelete, DeleteClaim, DropHost, DropKept, DestroyUnmirrored, DeleteRetained, DeleteLeft, DeleteStale, DeleteLost, Place} {
		if steps[step] == 0 {
			t.Errorf("step %s is never taken", step)
		}
	}
	t.Logf("%d observations, %d wrong; steps: %v", len(seen), failures, steps)
}
