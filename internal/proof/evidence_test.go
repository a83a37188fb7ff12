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
	"github.com/xylem-io/xylem/internal/proof/internal/witness"
)

const (
	deletes = corev1.PersistentVolumeReclaimDelete
	retains = corev1.PersistentVolumeReclaimRetain
)

var here = mirror.Member{Registration: "cluster38", ClusterID: "id38", HostID: "h0", NodeName: "kosmos-cluster38"}

// prover returns a Prover of the host, and of an empty member that was never restored.
func prover(host client.Reader) Prover {
	return Prover{
		Member: here, Host: pages{}, HostLive: host, Cache: pages{}, Live: pages{}, Clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)),
		MayBeRestored: func(metav1.Object) bool { return false }, Unrestored: func(context.Context) error { return nil },
	}
}

func stamp(m *metav1.ObjectMeta) {
	mirror.Origin{HostID: here.HostID, Root: client.ObjectKey{Namespace: "shop", Name: "data"}, UID: "root-uid"}.Stamp(m)
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

func plain(pv *corev1.PersistentVolume) { pv.Labels, pv.Annotations = nil, nil }

// given has valid proofs.
type given struct {
	Prover
	at time.Time
}

func (g given) root() RootGone { return RootGone{g.testify(g.at, "root-uid", "")} }

func (g given) host(policy corev1.PersistentVolumeReclaimPolicy) hostVolume {
	pv := hostpv.Mirror(leafPV(deletes), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid"}}, policy, here)
	return hostVolume{g.testify(g.at, pv.UID, ""), pv}
}

func (g given) promise(marked bool) HostUnchanged {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid"}}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "scratch"}, Parameters: map[string]string{
		v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise, v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused}}
	pv := hostpv.Fulfil(hostpv.WithMember(hostpv.PromiseFor(claim, class), here, nil), leafPV(deletes), deletes, here)
	if marked {
		pv.Annotations[v1alpha1.AnnotationReleasing] = "leaf-uid"
	}
	return HostUnchanged{hostVolume{g.testify(g.at, pv.UID, ""), pv}}
}

func retained(promise HostUnchanged) HostUnchanged {
	promise.pv.Spec.PersistentVolumeReclaimPolicy = retains
	return promise
}

func (g given) leaf(pv *corev1.PersistentVolume) LeafVolume {
	l := LeafVolume{w: g.testify(g.at, "", ""), name: "pv-1", pv: pv}
	if pv != nil {
		_, l.stamped = mirror.OriginIn(here.HostID, pv)
	}
	return l
}

func (g given) none(change ...func(*NotMirrored)) NotMirrored {
	n := NotMirrored{w: g.testify(g.at, "claim-uid", ""), leaf: "pv-1", thorough: true}
	for _, f := range change {
		f(&n)
	}
	return n
}

func (g given) current() MemberCurrent { return MemberCurrent{g.testify(g.at, "", "")} }

// Evidence covers only the object for which it was read.
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
		"destroy: the leaf PV":                   {func(g given) Evidence { return Destroying{Host: HostReleased{g.host(deletes)}, Root: g.root()} }, SetDelete, leafPV(retains), true},
		"destroy: the claim was not deleted":     {func(g given) Evidence { return Destroying{Host: HostReleased{g.host(deletes)}, Root: g.root()} }, DeleteClaim, leafPV(retains), false},
		"destroy: the host retains":              {func(g given) Evidence { return Destroying{Host: HostReleased{g.host(retains)}, Root: g.root()} }, SetDelete, leafPV(retains), false},
		"destroy: a leaf PV that was re-created": {func(g given) Evidence { return Destroying{Host: HostReleased{g.host(deletes)}, Root: g.root()} }, SetDelete, leafPV(retains, recreated), false},
		"destroy: a foreign leaf PV":             {func(g given) Evidence { return Destroying{Host: HostReleased{g.host(deletes)}, Root: g.root()} }, SetDelete, leafPV(retains, plain), false},
		"destroy: the stamp of another root":     {func(g given) Evidence { return Destroying{Host: HostReleased{g.host(deletes)}, Root: g.root()} }, SetDelete, leafPV(retains, stampedFor), false},
		"destroy: the stamp of another deleted root": {func(g given) Evidence {
			return Destroying{Host: HostReleased{g.host(deletes)}, Root: g.root(), Stamped: RootGone{g.testify(g.at, "another", "")}}
		}, SetDelete, leafPV(retains, stampedFor), true},
		"destroy: no proof that the root was deleted": {func(g given) Evidence { return Destroying{Host: HostReleased{g.host(deletes)}} }, SetDelete, leafPV(retains), false},
		"destroy: no proof of the host PV":            {func(g given) Evidence { return Destroying{Root: g.root()} }, SetDelete, leafPV(retains), false},
		"destroy: another root was deleted": {func(g given) Evidence {
			return Destroying{Host: HostReleased{g.host(deletes)}, Root: RootGone{g.testify(g.at, "another", "")}}
		}, SetDelete, leafPV(retains), false},
		"destroy: the leaf claim": {func(g given) Evidence {
			return Destroying{Host: HostReleased{g.host(deletes)}, Root: g.root(), Leaf: g.leaf(leafPV(deletes))}
		}, DeleteClaim, leafClaim(), true},
		"destroy: the leaf claim of another root": {func(g given) Evidence {
			return Destroying{Host: HostReleased{g.host(deletes)}, Root: g.root(), Leaf: g.leaf(leafPV(deletes))}
		}, DeleteClaim, leafClaim(ofAnother), false},
		"destroy: the leaf claim of another volume": {func(g given) Evidence {
			return Destroying{Host: HostReleased{g.host(deletes)}, Root: g.root(), Leaf: g.leaf(leafPV(deletes))}
		}, DeleteClaim, leafClaim(naming), false},
		"destroy: the host retains, the leaf PV has Delete": {func(g given) Evidence {
			return Destroying{Host: HostReleased{g.host(retains)}, Root: g.root(), Leaf: g.leaf(leafPV(deletes))}
		}, DeleteClaim, leafClaim(), false},
		"destroy: both retain": {func(g given) Evidence {
			return Destroying{Host: HostReleased{g.host(retains)}, Root: g.root(), Leaf: g.leaf(leafPV(retains))}
		}, DeleteClaim, leafClaim(), true},
		"destroy: a re-created leaf PV with Delete": {func(g given) Evidence {
			return Destroying{Host: HostReleased{g.host(deletes)}, Root: g.root(), Leaf: g.leaf(leafPV(deletes, recreated))}
		}, DeleteClaim, leafClaim(), false},
		"destroy: a re-created leaf PV with Retain": {func(g given) Evidence {
			return Destroying{Host: HostReleased{g.host(deletes)}, Root: g.root(), Leaf: g.leaf(leafPV(retains, recreated))}
		}, DeleteClaim, leafClaim(), true},
		"destroy: the leaf PV is not read": {func(g given) Evidence { return Destroying{Host: HostReleased{g.host(deletes)}, Root: g.root()} }, DeleteClaim, leafClaim(), false},
		"keep: by its host PV": {func(g given) Evidence {
			return Keeping{Host: HostAssigned{g.host(deletes)}, Root: g.root(), Leaf: g.leaf(leafPV(retains))}
		}, DeleteClaim, leafClaim(), true},
		"keep: its host PV represents another": {func(g given) Evidence {
			return Keeping{Host: HostAssigned{g.host(deletes)}, Root: g.root(), Leaf: g.leaf(leafPV(retains, recreated))}
		}, DeleteClaim, leafClaim(), false},
		"keep: not represented": {func(g given) Evidence {
			return Keeping{Root: g.root(), Leaf: g.leaf(leafPV(retains)), None: g.none(byName), Member: g.current()}
		}, DeleteClaim, leafClaim(), true},
		"keep: the leaf PV has policy Delete": {func(g given) Evidence {
			return Keeping{Root: g.root(), Leaf: g.leaf(leafPV(deletes)), None: g.none(), Member: g.current()}
		}, DeleteClaim, leafClaim(), false},
		"keep: bound to another claim": {func(g given) Evidence {
			return Keeping{Root: g.root(), Leaf: g.leaf(leafPV(deletes)), None: g.none(func(n *NotMirrored) { n.w.UID = "another" }), Member: g.current()}
		}, DeleteClaim, leafClaim(another), true},
		"keep: perhaps represented": {func(g given) Evidence {
			return Keeping{Root: g.root(), Leaf: g.leaf(leafPV(retains)), Member: g.current()}
		}, DeleteClaim, leafClaim(), false},
		"keep: the member may be restored": {func(g given) Evidence { return Keeping{Root: g.root(), Leaf: g.leaf(leafPV(retains)), None: g.none()} }, DeleteClaim, leafClaim(), false},
		"keep: it sets no policy": {func(g given) Evidence {
			return Keeping{Root: g.root(), Leaf: g.leaf(leafPV(retains)), None: g.none(), Member: g.current()}
		}, SetDelete, leafPV(retains), false},
		"unmirrored": {func(g given) Evidence {
			return Unmirrored{g.root(), g.leaf(leafPV(deletes, plain)), g.none(), g.current()}
		}, DeleteClaim, leafClaim(), true},
		"unmirrored: stamped": {func(g given) Evidence { return Unmirrored{g.root(), g.leaf(leafPV(deletes)), g.none(), g.current()} }, DeleteClaim, leafClaim(), false},
		"unmirrored: not a thorough search": {func(g given) Evidence {
			return Unmirrored{g.root(), g.leaf(leafPV(deletes, plain)), g.none(byName), g.current()}
		}, DeleteClaim, leafClaim(), false},
		"unmirrored: the claim may be of a backup": {func(g given) Evidence {
			return Unmirrored{g.root(), g.leaf(leafPV(deletes, plain)), g.none(restored), g.current()}
		}, DeleteClaim, leafClaim(), false},
		"unmirrored: bound to another claim": {func(g given) Evidence {
			return Unmirrored{g.root(), g.leaf(leafPV(deletes, plain)), g.none(), g.current()}
		}, DeleteClaim, leafClaim(another), false},
		"unmirrored: no leaf PV": {func(g given) Evidence { return Unmirrored{g.root(), g.leaf(nil), g.none(restored), g.current()} }, DeleteClaim, leafClaim(), true},
		"withdraw: the root was deleted": {func(g given) Evidence {
			return Withdrawing{Root: g.root(), Made: NothingMade{w: g.testify(g.at, "claim-uid", "")}, Member: g.current()}
		}, DeleteClaim, leafClaim(unbound), true},
		"withdraw: the root is unchanged": {func(g given) Evidence {
			return Withdrawing{Seen: RootUnchanged(g.root()), Made: NothingMade{w: g.testify(g.at, "claim-uid", "")}, Member: g.current()}
		}, DeleteClaim, leafClaim(unbound), true},
		"withdraw: the leaf claim of another root": {func(g given) Evidence {
			return Withdrawing{Seen: RootUnchanged(g.root()), Made: NothingMade{w: g.testify(g.at, "claim-uid", "")}, Member: g.current()}
		}, DeleteClaim, leafClaim(unbound, ofAnother), false},
		"withdraw: bound": {func(g given) Evidence {
			return Withdrawing{Root: g.root(), Made: NothingMade{w: g.testify(g.at, "claim-uid", "")}, Member: g.current()}
		}, DeleteClaim, leafClaim(), false},
		"withdraw: another claim": {func(g given) Evidence {
			return Withdrawing{Root: g.root(), Made: NothingMade{w: g.testify(g.at, "claim-uid", "")}, Member: g.current()}
		}, DeleteClaim, leafClaim(unbound, another), false},
		"withdraw: a volume may be provisioned": {func(g given) Evidence { return Withdrawing{Root: g.root(), Member: g.current()} }, DeleteClaim, leafClaim(unbound), false},
		"release: the leaf PV": {func(g given) Evidence {
			return Releasing{Promise: g.promise(true), Pods: Unused{g.testify(g.at, "", ""), client.ObjectKey{Namespace: "shop", Name: "data"}}}
		}, SetDelete, leafPV(retains), true},
		"release: a leaf PV that was re-created": {func(g given) Evidence {
			return Releasing{Promise: g.promise(true), Pods: Unused{g.testify(g.at, "", ""), client.ObjectKey{Namespace: "shop", Name: "data"}}}
		}, SetDelete, leafPV(retains, recreated), false},
		"release: another claim is unused": {func(g given) Evidence {
			return Releasing{Promise: g.promise(true), Pods: Unused{g.testify(g.at, "", ""), client.ObjectKey{Namespace: "shop", Name: "other"}}}
		}, SetDelete, leafPV(retains), false},
		"release: not marked": {func(g given) Evidence {
			return Releasing{Promise: g.promise(false), Pods: Unused{g.testify(g.at, "", ""), client.ObjectKey{Namespace: "shop", Name: "data"}}}
		}, SetDelete, leafPV(retains), false},
		"release: Pods are not listed": {func(g given) Evidence { return Releasing{Promise: g.promise(true)} }, SetDelete, leafPV(retains), false},
		"release: the leaf claim":      {func(g given) Evidence { return Releasing{Promise: g.promise(true), Leaf: g.leaf(leafPV(deletes))} }, DeleteClaim, leafClaim(), true},
		"release: no leaf PV":          {func(g given) Evidence { return Releasing{Promise: g.promise(true), Leaf: g.leaf(nil)} }, DeleteClaim, leafClaim(), true},
		"release: an admin retains it": {func(g given) Evidence {
			return Releasing{Promise: retained(g.promise(true)), Leaf: g.leaf(leafPV(deletes))}
		}, DeleteClaim, leafClaim(), false},
		"release: an admin retains it, the leaf PV": {func(g given) Evidence {
			return Releasing{Promise: retained(g.promise(true)), Pods: Unused{g.testify(g.at, "", ""), client.ObjectKey{Namespace: "shop", Name: "data"}}}
		}, SetDelete, leafPV(retains), false},
		"release: an admin retains it, the leaf PV has Retain": {func(g given) Evidence {
			return Releasing{Promise: retained(g.promise(true)), Leaf: g.leaf(leafPV(retains))}
		}, DeleteClaim, leafClaim(), true},
		"release: the leaf PV is not read":        {func(g given) Evidence { return Releasing{Promise: g.promise(true)} }, DeleteClaim, leafClaim(), false},
		"release: the leaf claim of another root": {func(g given) Evidence { return Releasing{Promise: g.promise(true), Leaf: g.leaf(leafPV(deletes))} }, DeleteClaim, leafClaim(ofAnother), false},
		"no proofs: Destroying, a leaf PV":        {func(given) Evidence { return Destroying{} }, SetDelete, leafPV(retains), false},
		"no proofs: Destroying, a leaf claim":     {func(given) Evidence { return Destroying{} }, DeleteClaim, leafClaim(), false},
		"no proofs: Keeping":                      {func(given) Evidence { return Keeping{} }, DeleteClaim, leafClaim(), false},
		"no proofs: Unmirrored":                   {func(given) Evidence { return Unmirrored{} }, DeleteClaim, leafClaim(), false},
		"no proofs: Withdrawing":                  {func(given) Evidence { return Withdrawing{} }, DeleteClaim, leafClaim(unbound), false},
		"no proofs: Releasing":                    {func(given) Evidence { return Releasing{} }, DeleteClaim, leafClaim(), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := prover(pages{})
			e := tc.evidence(given{p, p.Clock.Now()})
			if err := Covers(e, tc.action, tc.object); (err == nil) != tc.covers || err != nil && !errors.Is(err, ErrUnproven) {
				t.Errorf("covers: %v", err)
			}
			if tc.covers {
				if err := Covers(e, tc.action, tc.object); !errors.Is(err, ErrUnproven) {
					t.Errorf("used twice: %v", err)
				}
			}
		})
	}
}

// A proof counts only for steps that follow within seconds, however long it took. The proofs
// must be read in the order that the evidence requires.
func TestProofsExpire(t *testing.T) {
	for name, tc := range map[string]struct {
		// took is how long the proof of the host takes. then and last are the pauses after it and
		// after the last proof.
		took, then, last time.Duration
		disordered       bool
		covers           bool
	}{
		"at once":                    {covers: true},
		"a list that takes a minute": {took: time.Minute, covers: true},
		"in time":                    {then: witness.Lifetime, last: witness.Lifetime, covers: true},
		"the write is too late":      {last: witness.Lifetime + 1},
		"the next proof is too late": {then: witness.Lifetime + 1},
		"proofs in the wrong order":  {took: time.Second, disordered: true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
			wait := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
			p := prover(pages{})
			p.Clock = clock
			var e Destroying
			if tc.disordered {
				e.Root = given{p, clock.Now()}.root()
				wait(time.Second)
			}
			began := clock.Now()
			wait(tc.took)
			e.Host = HostReleased{given{p, began}.host(deletes)}
			wait(tc.then)
			if !tc.disordered {
				e.Root = given{p, clock.Now()}.root()
			}
			wait(tc.last)
			if err := Covers(e, SetDelete, leafPV(retains)); (err == nil) != tc.covers {
				t.Errorf("covers: %v", err)
			}
		})
	}
}
