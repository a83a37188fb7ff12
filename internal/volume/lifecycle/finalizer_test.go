package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/volume"
)

// An admin's host PV that is being deleted keeps its finalizer as long as a claim may be bound to
// it, even if the cache of claims does not show one.
func TestFinalizerOfImport(t *testing.T) {
	tests := map[string]struct {
		phase corev1.PersistentVolumePhase
		ref   *corev1.ObjectReference
		step  Step
	}{
		"no claim is bound to the PV":    {corev1.VolumeAvailable, nil, DropKept},
		"the PV is reserved for a claim": {corev1.VolumeAvailable, refOf(""), DropKept},
		"the claim is gone":              {corev1.VolumeReleased, refOf("root"), DropKept},
		"a claim is bound to the PV":     {corev1.VolumeBound, refOf("root"), None},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			leaf := leafPV()
			leaf.Status.Phase = corev1.VolumeAvailable
			host := recordedFor("recorded")
			host.DeletionTimestamp, host.Status.Phase, host.Spec.ClaimRef = &deleted, test.phase, test.ref
			s := &volume.Observed{Member: member, Name: leaf.Name, UID: leaf.UID, Host: host, Leaf: leaf}
			s.Stamp, s.LeafStamped = mirror.LeafOriginFromHost(member.HostID, leaf)
			if p := NextPlan(s); p.StepOwnedBy(RootPV) != test.step {
				t.Errorf("%s: step %q by %s; want %q", p.Phase, p.Step, p.Owner, test.step)
			}
		})
	}
}
