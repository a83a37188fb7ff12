package proof

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// prover returns a Prover for the given host, and for an empty member that was never restored.
func prover(host client.Reader) Prover {
	return Prover{
		Member: here, Host: pages{}, HostLive: host, Cache: pages{}, Live: pages{}, Clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)),
		MayBeRestored: func(metav1.Object) bool { return false }, MayLackRoot: func(metav1.Object) bool { return false }, CheckUnrestored: func(context.Context) error { return nil },
	}
}

func leafClaim(change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "claim-uid"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}}
	stamp(&c.ObjectMeta)
	for _, f := range change {
		f(c)
	}
	return c
}

func unbound(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "" }

func leafPV(policy corev1.PersistentVolumeReclaimPolicy, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-uid"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeReclaimPolicy: policy, ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "claim-uid"}}}
	stamp(&pv.ObjectMeta)
	for _, f := range change {
		f(pv)
	}
	return pv
}

// given creates valid proofs.
type given struct {
	Prover
	at time.Time
}

func (g given) root() RootGone { return RootGone{g.newWitness(g.at, "root-uid", "")} }

func (g given) host(policy corev1.PersistentVolumeReclaimPolicy) hostVolume {
	pv := hostpv.TranslateVolume(leafPV(deletes), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid"}}, policy, here)
	return hostVolume{g.newWitness(g.at, pv.UID, ""), pv}
}

func (g given) promise(marked bool) HostUnchanged {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid"}}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "scratch"}, Parameters: map[string]string{
		v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise, v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused}}
	pv := hostpv.FulfillPromise(hostpv.PromiseWithMember(hostpv.NewPromiseFor(claim, class), here, nil), leafPV(deletes), deletes, here)
	if marked {
		pv.Annotations[v1alpha1.AnnotationReleasing] = "leaf-uid"
	}
	return HostUnchanged{hostVolume{g.newWitness(g.at, pv.UID, ""), pv}}
}

func retained(promise HostUnchanged) HostUnchanged {
	promise.pv.Spec.PersistentVolumeReclaimPolicy = retains
	return promise
}

func (g given) leaf(pv *corev1.PersistentVolume) LeafVolume {
	l := LeafVolume{witness: g.newWitness(g.at, "", ""), name: "pv-1", pv: pv}
	if pv != nil {
		_, l.stamped = mirror.LeafOriginFromHost(here.HostID, pv)
	}
	return l
}

func (g given) none(change ...func(*NotMirrored)) NotMirrored {
	n := NotMirrored{witness: g.newWitness(g.at, "claim-uid", ""), leaf: "pv-1", thorough: true}
	for _, f := range change {
		f(&n)
	}
	return n
}

func (g given) current() MemberCurrent { return MemberCurrent{g.newWitness(g.at, "", "")} }

// Evidence covers only the object for which its proofs were read.
func TestCovers(t *testing.T) {
	byName := func(n *NotMirrored) { n.thorough = false }
	restored := func(n *NotMirrored) { n.restored = true }
	another := func(c *corev1.PersistentVolumeClaim) { c.UID = "another" }
	ofAnother := func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationRootUID] = "another" }
	naming := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-2" }
	recreated := func(pv *corev1.PersistentVolume) { pv.UID = "recreated" }
	stampedFor := func(pv *corev1.PersistentVolume) { pv.Annotations[v1alpha1.AnnotationRootUID] = "another" }
	for name, tc := range map[string]struct {
		evidence func(given) Evidence
		action   Action
		object   client.Object
		covers   bool
	}{
		"Destroying: the leaf PV":                   {func(g given) Evidence { return DestroyingVolume{Host: HostReleased{g.host(deletes)}, Root: g.root()} }, SetDelete, leafPV(retains), true},
		"Destroying: DeleteClaim for a leaf PV":     {func(g given) Evidence { return DestroyingVolume{Host: HostReleased{g.host(deletes)}, Root: g.root()} }, DeleteClaim, leafPV(retains), false},
		"Destroying: the host PV has policy Retain": {func(g given) Evidence { return DestroyingVolume{Host: HostReleased{g.host(retains)}, Root: g.root()} }, SetDelete, leafPV(retains), false},
		"Destroying: a re-created leaf PV":          {func(g given) Evidence { return DestroyingVolume{Host: HostReleased{g.host(deletes)}, Root: g.root()} }, SetDelete, leafPV(retains, recreated), false},
		"Destroying: a foreign leaf PV":             {func(g given) Evidence { return DestroyingVolume{Host: HostReleased{g.host(deletes)}, Root: g.root()} }, SetDelete, leafPV(retains, plain), false},
		"Destroying: the stamp of another root":     {func(g given) Evidence { return DestroyingVolume{Host: HostReleased{g.host(deletes)}, Root: g.root()} }, SetDelete, leafPV(retains, stampedFor), false},
		"Destroying: the stamp of another deleted root": {func(g given) Evidence {
			return DestroyingVolume{Host: HostReleased{g.host(deletes)}, Root: g.root(), StampedRoot: RootGone{g.newWitness(g.at, "another", "")}}
		}, SetDelete, leafPV(retains, stampedFor), true},
		"Destroying: no proof that the root was deleted": {func(g given) Evidence { return DestroyingVolume{Host: HostReleased{g.host(deletes)}} }, SetDelete, leafPV(retains), false},
		"Destroying: no proof for the host PV":           {func(g given) Evidence { return DestroyingVolume{Root: g.root()} }, SetDelete, leafPV(retains), false},
		"Destroying: another root was deleted": {func(g given) Evidence {
			return DestroyingVolume{Host: HostReleased{g.host(deletes)}, Root: RootGone{g.newWitness(g.at, "another", "")}}
		}, SetDelete, leafPV(retains), false},
		"Destroying: the leaf claim": {func(g given) Evidence {
			return DestroyingVolume{Host: HostReleased{g.host(deletes)}, Root: g.root(), Leaf: g.leaf(leafPV(deletes))}
		}, DeleteClaim, leafClaim(), true},
		"Destroying: the leaf claim of another root": {func(g given) Evidence {
			return DestroyingVolume{Host: HostReleased{g.host(deletes)}, Root: g.root(), Leaf: g.leaf(leafPV(deletes))}
		}, DeleteClaim, leafClaim(ofAnother), false},
		"Destroying: the leaf claim of another volume": {func(g given) Evidence {
			return DestroyingVolume{Host: HostReleased{g.host(deletes)}, Root: g.root(), Leaf: g.leaf(leafPV(deletes))}
		}, DeleteClaim, leafClaim(naming), false},
		"Destroying: the host PV has policy Retain, and the leaf PV has Delete": {func(g given) Evidence {
			return DestroyingVolume{Host: HostReleased{g.host(retains)}, Root: g.root(), Leaf: g.leaf(leafPV(deletes))}
		}, DeleteClaim, leafClaim(), false},
		"Destroying: both PVs have policy Retain": {func(g given) Evidence {
			return DestroyingVolume{Host: HostReleased{g.host(retains)}, Root: g.root(), Leaf: g.leaf(leafPV(retains))}
		}, DeleteClaim, leafClaim(), true},
		"Destroying: a re-created leaf PV has policy Delete": {func(g given) Evidence {
			return DestroyingVolume{Host: HostReleased{g.host(deletes)}, Root: g.root(), Leaf: g.leaf(leafPV(deletes, recreated))}
		}, DeleteClaim, leafClaim(), false},
		"Destroying: a re-created leaf PV has policy Retain": {func(g given) Evidence {
			return DestroyingVolume{Host: HostReleased{g.host(deletes)}, Root: g.root(), Leaf: g.leaf(leafPV(retains, recreated))}
		}, DeleteClaim, leafClaim(), true},
		"Destroying: the leaf PV was not read": {func(g given) Evidence { return DestroyingVolume{Host: HostReleased{g.host(deletes)}, Root: g.root()} }, DeleteClaim, leafClaim(), false},
		"Keeping: the host PV is for another root": {func(g given) Evidence {
			return KeepingVolume{Host: HostAssigned{g.host(deletes)}, Root: g.root(), Leaf: g.leaf(leafPV(retains))}
		}, DeleteClaim, leafClaim(), true},
		"Keeping: the host PV represents another leaf PV": {func(g given) Evidence {
			return KeepingVolume{Host: HostAssigned{g.host(deletes)}, Root: g.root(), Leaf: g.leaf(leafPV(retains, recreated))}
		}, DeleteClaim, leafClaim(), false},
		"Keeping: no host PV represents the volume": {func(g given) Evidence {
			return KeepingVolume{Root: g.root(), Leaf: g.leaf(leafPV(retains)), NoMirror: g.none(byName), Member: g.current()}
		}, DeleteClaim, leafClaim(), true},
		"Keeping: the leaf PV has policy Delete": {func(g given) Evidence {
			return KeepingVolume{Root: g.root(), Leaf: g.leaf(leafPV(deletes)), NoMirror: g.none(), Member: g.current()}
		}, DeleteClaim, leafClaim(), false},
		"Keeping: the leaf PV is bound to another claim": {func(g given) Evidence {
			return KeepingVolume{Root: g.root(), Leaf: g.leaf(leafPV(deletes)), NoMirror: g.none(func(n *NotMirrored) { n.witness.UID = "another" }), Member: g.current()}
		}, DeleteClaim, leafClaim(another), true},
		"Keeping: a host PV may represent the volume": {func(g given) Evidence {
			return KeepingVolume{Root: g.root(), Leaf: g.leaf(leafPV(retains)), Member: g.current()}
		}, DeleteClaim, leafClaim(), false},
		"Keeping: the member may have been restored": {func(g given) Evidence {
			return KeepingVolume{Root: g.root(), Leaf: g.leaf(leafPV(retains)), NoMirror: g.none()}
		}, DeleteClaim, leafClaim(), false},
		"Keeping: SetDelete is not allowed": {func(g given) Evidence {
			return KeepingVolume{Root: g.root(), Leaf: g.leaf(leafPV(retains)), NoMirror: g.none(), Member: g.current()}
		}, SetDelete, leafPV(retains), false},
		"Unmirrored: the leaf claim": {func(g given) Evidence {
			return UnmirroredVolume{g.root(), g.leaf(leafPV(deletes, plain)), g.none(), g.current()}
		}, DeleteClaim, leafClaim(), true},
		"Unmirrored: the leaf PV has a stamp": {func(g given) Evidence {
			return UnmirroredVolume{g.root(), g.leaf(leafPV(deletes)), g.none(), g.current()}
		}, DeleteClaim, leafClaim(), false},
		"Unmirrored: the host was not searched thoroughly": {func(g given) Evidence {
			return UnmirroredVolume{g.root(), g.leaf(leafPV(deletes, plain)), g.none(byName), g.current()}
		}, DeleteClaim, leafClaim(), false},
		"Unmirrored: the claim may come from a backup": {func(g given) Evidence {
			return UnmirroredVolume{g.root(), g.leaf(leafPV(deletes, plain)), g.none(restored), g.current()}
		}, DeleteClaim, leafClaim(), false},
		"Unmirrored: the leaf PV is bound to another claim": {func(g given) Evidence {
			return UnmirroredVolume{g.root(), g.leaf(leafPV(deletes, plain)), g.none(), g.current()}
		}, DeleteClaim, leafClaim(another), false},
		"Unmirrored: the leaf PV does not exist": {func(g given) Evidence { return UnmirroredVolume{g.root(), g.leaf(nil), g.none(restored), g.current()} }, DeleteClaim, leafClaim(), true},
		"Withdrawing: the root was deleted": {func(g given) Evidence {
			return WithdrawingClaim{Root: g.root(), NoVolume: NothingProvisioned{witness: g.newWitness(g.at, "claim-uid", "")}, Member: g.current()}
		}, DeleteClaim, leafClaim(unbound), true},
		"Withdrawing: the root is unchanged": {func(g given) Evidence {
			return WithdrawingClaim{Unchanged: RootUnchanged(g.root()), NoVolume: NothingProvisioned{witness: g.newWitness(g.at, "claim-uid", "")}, Member: g.current()}
		}, DeleteClaim, leafClaim(unbound), true},
		"Withdrawing: the leaf claim of another root": {func(g given) Evidence {
			return WithdrawingClaim{Unchanged: RootUnchanged(g.root()), NoVolume: NothingProvisioned{witness: g.newWitness(g.at, "claim-uid", "")}, Member: g.current()}
		}, DeleteClaim, leafClaim(unbound, ofAnother), false},
		"Withdrawing: the leaf claim is bound": {func(g given) Evidence {
			return WithdrawingClaim{Root: g.root(), NoVolume: NothingProvisioned{witness: g.newWitness(g.at, "claim-uid", "")}, Member: g.current()}
		}, DeleteClaim, leafClaim(), false},
		"Withdrawing: another leaf claim": {func(g given) Evidence {
			return WithdrawingClaim{Root: g.root(), NoVolume: NothingProvisioned{witness: g.newWitness(g.at, "claim-uid", "")}, Member: g.current()}
		}, DeleteClaim, leafClaim(unbound, another), false},
		"Withdrawing: a volume may have been provisioned": {func(g given) Evidence { return WithdrawingClaim{Root: g.root(), Member: g.current()} }, DeleteClaim, leafClaim(unbound), false},
		"Releasing: the leaf PV": {func(g given) Evidence {
			return ReleasingPromise{Promise: g.promise(true), NoPods: ClaimUnused{g.newWitness(g.at, "", ""), client.ObjectKey{Namespace: "shop", Name: "data"}}}
		}, SetDelete, leafPV(retains), true},
		"Releasing: a re-created leaf PV": {func(g given) Evidence {
			return ReleasingPromise{Promise: g.promise(true), NoPods: ClaimUnused{g.newWitness(g.at, "", ""), client.ObjectKey{Namespace: "shop", Name: "data"}}}
		}, SetDelete, leafPV(retains, recreated), false},
		"Releasing: another claim is unused": {func(g given) Evidence {
			return ReleasingPromise{Promise: g.promise(true), NoPods: ClaimUnused{g.newWitness(g.at, "", ""), client.ObjectKey{Namespace: "shop", Name: "other"}}}
		}, SetDelete, leafPV(retains), false},
		"Releasing: the promise is not marked": {func(g given) Evidence {
			return ReleasingPromise{Promise: g.promise(false), NoPods: ClaimUnused{g.newWitness(g.at, "", ""), client.ObjectKey{Namespace: "shop", Name: "data"}}}
		}, SetDelete, leafPV(retains), false},
		"Releasing: Pods were not listed": {func(g given) Evidence { return ReleasingPromise{Promise: g.promise(true)} }, SetDelete, leafPV(retains), false},
		"Releasing: the leaf claim": {func(g given) Evidence {
			return ReleasingPromise{Promise: g.promise(true), Leaf: g.leaf(leafPV(deletes))}
		}, DeleteClaim, leafClaim(), true},
		"Releasing: the leaf PV does not exist": {func(g given) Evidence { return ReleasingPromise{Promise: g.promise(true), Leaf: g.leaf(nil)} }, DeleteClaim, leafClaim(), true},
		"Releasing: an admin set Retain, the leaf claim": {func(g given) Evidence {
			return ReleasingPromise{Promise: retained(g.promise(true)), Leaf: g.leaf(leafPV(deletes))}
		}, DeleteClaim, leafClaim(), false},
		"Releasing: an admin set Retain, the leaf PV": {func(g given) Evidence {
			return ReleasingPromise{Promise: retained(g.promise(true)), NoPods: ClaimUnused{g.newWitness(g.at, "", ""), client.ObjectKey{Namespace: "shop", Name: "data"}}}
		}, SetDelete, leafPV(retains), false},
		"Releasing: an admin set Retain, and the leaf PV has Retain": {func(g given) Evidence {
			return ReleasingPromise{Promise: retained(g.promise(true)), Leaf: g.leaf(leafPV(retains))}
		}, DeleteClaim, leafClaim(), true},
		"Releasing: the leaf PV was not read": {func(g given) Evidence { return ReleasingPromise{Promise: g.promise(true)} }, DeleteClaim, leafClaim(), false},
		"Releasing: the leaf claim of another root": {func(g given) Evidence {
			return ReleasingPromise{Promise: g.promise(true), Leaf: g.leaf(leafPV(deletes))}
		}, DeleteClaim, leafClaim(ofAnother), false},
		"no proofs: Destroying, a leaf PV":    {func(given) Evidence { return DestroyingVolume{} }, SetDelete, leafPV(retains), false},
		"no proofs: Destroying, a leaf claim": {func(given) Evidence { return DestroyingVolume{} }, DeleteClaim, leafClaim(), false},
		"no proofs: Keeping":                  {func(given) Evidence { return KeepingVolume{} }, DeleteClaim, leafClaim(), false},
		"no proofs: Unmirrored":               {func(given) Evidence { return UnmirroredVolume{} }, DeleteClaim, leafClaim(), false},
		"no proofs: Withdrawing":              {func(given) Evidence { return WithdrawingClaim{} }, DeleteClaim, leafClaim(unbound), false},
		"no proofs: Releasing":                {func(given) Evidence { return ReleasingPromise{} }, DeleteClaim, leafClaim(), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := prover(pages{})
			e := tc.evidence(given{p, p.Clock.Now()})
			if err := SpendEvidence(e, tc.action, tc.object); (err == nil) != tc.covers || err != nil && !errors.Is(err, ErrUnproven) {
				t.Errorf("Covers returned %v, want success: %t", err, tc.covers)
			}
			if tc.covers {
				if err := SpendEvidence(e, tc.action, tc.object); !errors.Is(err, ErrUnproven) {
					t.Errorf("on the second use, error is %v, want ErrUnproven", err)
				}
			}
		})
	}
}

// A proof is valid only for steps that follow it within seconds, regardless of how long its read
// took. The proofs must be read in the order that the Evidence requires.
func TestProofsExpire(t *testing.T) {
	for name, tc := range map[string]struct {
		// took is how long the first proof, that the root is gone, takes. then and last are the delays after it and
		// after the last proof.
		took, then, last time.Duration
		disordered       bool
		covers           bool
	}{
		"immediately":                {covers: true},
		"a read that takes a minute": {took: time.Minute, covers: true},
		"the next proof and the write come just in time": {then: ProofLifetime, last: ProofLifetime, covers: true},
		"the write comes too late":                       {last: ProofLifetime + 1},
		"the next proof comes too late":                  {then: ProofLifetime + 1},
		"proofs in the wrong order":                      {took: time.Second, disordered: true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
			wait := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
			p := prover(pages{})
			p.Clock = clock
			var e DestroyingVolume
			if tc.disordered {
				e.Host = HostReleased{given{p, clock.Now()}.host(deletes)}
				wait(time.Second)
			}
			began := clock.Now()
			wait(tc.took)
			e.Root = given{p, began}.root()
			wait(tc.then)
			if !tc.disordered {
				e.Host = HostReleased{given{p, clock.Now()}.host(deletes)}
			}
			wait(tc.last)
			if err := SpendEvidence(e, SetDelete, leafPV(retains)); (err == nil) != tc.covers {
				t.Errorf("covers: %v", err)
			}
		})
	}
}

// The deletion of the leaf claim may use the proof with which the leaf PV was set to Delete, but only once, only
// for a few seconds, and only if the host PV was proven again.
func TestNextSharesAProof(t *testing.T) {
	for name, tc := range map[string]struct {
		wrote  time.Duration // how long SetDelete took
		stale  bool          // the host PV is not proven again
		policy corev1.PersistentVolumeReclaimPolicy
		covers bool
	}{
		"immediately":                       {policy: deletes, covers: true},
		"just in time":                      {wrote: ProofLifetime, policy: deletes, covers: true},
		"SetDelete took too long":           {wrote: ProofLifetime + 1, policy: deletes},
		"an admin has set Retain meanwhile": {policy: retains},
		"the host PV was not proven again":  {stale: true, policy: deletes},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
			wait := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
			p := prover(pages{})
			p.Clock = clock
			g := given{p, clock.Now()}
			e := DestroyingVolume{Root: g.root(), Host: HostReleased{g.host(deletes)}}
			if err := SpendEvidence(e, SetDelete, leafPV(retains)); err != nil {
				t.Fatal(err)
			}
			wait(tc.wrote)
			next, now := e.EvidenceForClaim(), given{p, clock.Now()}
			next.Leaf, next.Host = now.leaf(leafPV(deletes)), HostReleased{now.host(tc.policy)}
			if tc.stale {
				next.Host = e.Host
			}
			if err := SpendEvidence(next, DeleteClaim, leafClaim()); (err == nil) != tc.covers {
				t.Errorf("covers: %v", err)
			}
			if err := SpendEvidence(next, DeleteClaim, leafClaim()); err == nil {
				t.Error("the proof covers a second claim")
			}
		})
	}
}

// Nothing destroys a volume of which other members may have copies.
func TestDestroyingIsNotForCopiedVolumes(t *testing.T) {
	for name, tc := range map[string]struct {
		action Action
		object client.Object
	}{
		"the leaf PV":    {SetDelete, leafPV(retains)},
		"the leaf claim": {DeleteClaim, leafClaim()},
	} {
		t.Run(name, func(t *testing.T) {
			for _, copied := range []bool{false, true} {
				p := prover(pages{})
				g := given{p, p.Clock.Now()}
				host := g.host(deletes)
				if copied {
					host.pv = hostpv.VolumeWithCopyIn(host.pv, "id39")
				}
				e := DestroyingVolume{Host: HostReleased{host}, Root: g.root(), Leaf: g.leaf(leafPV(deletes))}
				if err := SpendEvidence(e, tc.action, tc.object); (err == nil) == copied {
					t.Errorf("copied: %t, Covers returned %v", copied, err)
				}
			}
		})
	}
}
