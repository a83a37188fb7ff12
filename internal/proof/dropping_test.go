package proof

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

var (
	there = mirror.Member{Registration: "cluster39", ClusterID: "id39", HostID: "h0", NodeName: "kosmos-cluster39"}

	errRestored = errors.New("the member was restored")
)

// clusterWithClaims is a reader of PVs and claims.
type clusterWithClaims struct {
	client.Reader
	objects []client.Object
	fails   error
}

func (c clusterWithClaims) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if c.fails != nil {
		return c.fails
	}
	for _, obj := range c.objects {
		if client.ObjectKeyFromObject(obj) != key {
			continue
		}
		switch into := into.(type) {
		case *corev1.PersistentVolume:
			if pv, ok := obj.(*corev1.PersistentVolume); ok {
				pv.DeepCopyInto(into)
				return nil
			}
		case *corev1.PersistentVolumeClaim:
			if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok {
				claim.DeepCopyInto(into)
				return nil
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

type change = func(*corev1.PersistentVolume)

func rootWithUID(uid types.UID) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: uid}}
}

// leafClaimOfRoot returns the leaf claim of the root with the given UID.
func leafClaimOfRoot(of types.UID) *corev1.PersistentVolumeClaim {
	c := rootWithUID("claim-uid")
	mirror.Origin{HostID: here.HostID, Root: client.ObjectKeyFromObject(c), UID: of}.StampLeaf(&c.ObjectMeta)
	return c
}

func leafVolumeWithHandle(handle string, uid types.UID) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: uid}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disks.example.com", VolumeHandle: handle}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	return pv
}

func versioned(pv *corev1.PersistentVolume, changes []change) *corev1.PersistentVolume {
	pv.UID, pv.ResourceVersion, pv.Status.Phase = "host-uid", "7", corev1.VolumeReleased
	for _, f := range changes {
		f(pv)
	}
	return pv
}

func hostVolumeOfLeaf(changes ...change) *corev1.PersistentVolume {
	return versioned(hostpv.TranslateVolume(leafVolumeWithHandle("disk-1", "leaf-uid"), rootWithUID("root-uid"), corev1.PersistentVolumeReclaimDelete, here), changes)
}

func promise(changes ...change) *corev1.PersistentVolume {
	pv := hostpv.NewPromiseFor(rootWithUID("root-uid"), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}})
	return versioned(hostpv.PromiseWithMember(pv, here, nil), changes)
}

func unassigned(changes ...change) *corev1.PersistentVolume {
	return versioned(hostpv.PromiseWithoutMember(promise()), changes)
}

func deleted(pv *corev1.PersistentVolume)         { pv.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
func bound(pv *corev1.PersistentVolume)           { pv.Status.Phase = corev1.VolumeBound }
func withoutClaimRef(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }
func elsewhere(pv *corev1.PersistentVolume) {
	pv.Labels[v1alpha1.LabelClusterID] = "id39"
}
func abandoned(pv *corev1.PersistentVolume) {
	metav1.SetMetaDataAnnotation(&pv.ObjectMeta, v1alpha1.AnnotationAbandon, "true")
}
func newerHostVolume(pv *corev1.PersistentVolume) { pv.ResourceVersion = "8" }

func proverOfClusters(host, member clusterWithClaims, restored error) Prover {
	return Prover{
		Member: here, HostLive: host, Live: member, Clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)),
		CheckUnrestored: func(context.Context) error { return restored },
	}
}

func with(objects ...client.Object) clusterWithClaims { return clusterWithClaims{objects: objects} }

// A host PV that records a disk is dropped only if the member has nothing left for it.
func TestLeafGone(t *testing.T) {
	for name, tc := range map[string]struct {
		host     *corev1.PersistentVolume
		member   clusterWithClaims
		restored error
		want     bool
		err      error
	}{
		"nothing is left":                             {host: hostVolumeOfLeaf(), want: true},
		"the leaf PV exists":                          {host: hostVolumeOfLeaf(), member: with(leafVolumeWithHandle("disk-1", "leaf-uid"))},
		"another PV has its name":                     {host: hostVolumeOfLeaf(), member: with(leafVolumeWithHandle("disk-2", "other-uid")), want: true},
		"the leaf claim exists":                       {host: hostVolumeOfLeaf(), member: with(leafClaimOfRoot("root-uid"))},
		"the leaf claim of a later root has its name": {host: hostVolumeOfLeaf(), member: with(leafClaimOfRoot("other-uid")), want: true},
		"the volume is in another member":             {host: versioned(hostpv.TranslateVolume(leafVolumeWithHandle("disk-1", "leaf-uid"), rootWithUID("root-uid"), corev1.PersistentVolumeReclaimDelete, there), nil)},
		"somebody changed the label":                  {host: hostVolumeOfLeaf(elsewhere)},
		"the host PV records no disk":                 {host: promise()},
		"the member was restored":                     {host: hostVolumeOfLeaf(), restored: errRestored, err: errRestored},
		"the member does not respond":                 {host: hostVolumeOfLeaf(), member: clusterWithClaims{fails: errDown}, err: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			e, got, err := ProveLeafGone(t.Context(), proverOfClusters(clusterWithClaims{}, tc.member, tc.restored), tc.host)
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("LeafGone returned %t, %v; want %t, %v", got, err, tc.want, tc.err)
			}
			coversVolume(t, e, tc.host, got)
		})
	}
}

// coversVolume checks that evidence covers one drop of one version of a host PV, if it was proven.
func coversVolume(t *testing.T, e DroppableVolume, host *corev1.PersistentVolume, proven bool) {
	t.Helper()
	changed, other := host.DeepCopy(), host.DeepCopy()
	newerHostVolume(changed)
	other.UID = "another-uid"
	for _, wrong := range []struct {
		action Action
		pv     *corev1.PersistentVolume
	}{{SetDelete, host}, {DropCopyRecord, host}, {DropVolume, changed}, {DropVolume, other}} {
		if err := SpendEvidence(e, wrong.action, wrong.pv); !errors.Is(err, ErrUnproven) {
			t.Errorf("the evidence covers action %d on version %s of %s: %v", wrong.action, wrong.pv.ResourceVersion, wrong.pv.UID, err)
		}
	}
	if err := SpendEvidence(e, DropVolume, host); (err == nil) != proven {
		t.Errorf("proven is %t, and the evidence: %v", proven, err)
	}
	if err := SpendEvidence(e, DropVolume, host); !errors.Is(err, ErrUnproven) {
		t.Errorf("the evidence covers a second drop: %v", err)
	}
}

func TestPromiseEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		promise      *corev1.PersistentVolume
		host, member []client.Object
		restored     error
		want         bool
		err          error
	}{
		"its claim is gone":          {promise: promise(), host: []client.Object{promise()}, want: true},
		"a later claim has its name": {promise: promise(), host: []client.Object{promise(), rootWithUID("other-uid")}, want: true},
		"its claim exists":           {promise: promise(), host: []client.Object{promise(), rootWithUID("root-uid")}},
		"the promise has changed":    {promise: promise(), host: []client.Object{promise(newerHostVolume)}},
		"the promise was re-created": {promise: promise(), host: []client.Object{promise(func(pv *corev1.PersistentVolume) { pv.UID = "newer" })}},
		"the promise is bound":       {promise: promise(bound), host: []client.Object{promise(bound)}},
		"an admin has abandoned it":  {promise: promise(abandoned), host: []client.Object{promise(abandoned)}},
		"another member has it":      {promise: promise(elsewhere), host: []client.Object{promise(elsewhere)}},
		"it records a disk":          {promise: hostVolumeOfLeaf(), host: []client.Object{hostVolumeOfLeaf()}},
		"the leaf claim exists":      {promise: promise(), host: []client.Object{promise()}, member: []client.Object{leafClaimOfRoot("root-uid")}},
		"the member was restored":    {promise: promise(), host: []client.Object{promise()}, restored: errRestored, err: errRestored},
	} {
		t.Run(name, func(t *testing.T) {
			e, got, left, err := ProvePromiseEnded(t.Context(), proverOfClusters(with(tc.host...), with(tc.member...), tc.restored), tc.promise)
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("PromiseEnded returned %t, %v; want %t, %v", got, err, tc.want, tc.err)
			}
			if left != (len(tc.member) > 0) {
				t.Errorf("a leaf claim is left: %t", left)
			}
			coversVolume(t, e, tc.promise, got)
		})
	}
}

// A disk that the member lacks must be recorded before its host PV is dropped.
func TestDiskKept(t *testing.T) {
	for name, tc := range map[string]struct {
		host     *corev1.PersistentVolume
		member   clusterWithClaims
		restored error
		missing  bool
		err      error
	}{
		"the leaf PV exists":                        {host: hostVolumeOfLeaf(deleted), member: with(leafVolumeWithHandle("disk-1", "leaf-uid"))},
		"the leaf PV was re-created for the disk":   {host: hostVolumeOfLeaf(deleted), member: with(leafVolumeWithHandle("disk-1", "other-uid"))},
		"another disk's PV has its name":            {host: hostVolumeOfLeaf(deleted), member: with(leafVolumeWithHandle("disk-2", "other-uid")), missing: true},
		"the leaf PV is gone":                       {host: hostVolumeOfLeaf(deleted), missing: true},
		"the leaf PV is gone, because of a restore": {host: hostVolumeOfLeaf(deleted), restored: errRestored, err: errRestored},
		"the host PV records no disk":               {host: promise(deleted), err: ErrUnproven},
		"the volume is in another member":           {host: versioned(hostpv.TranslateVolume(leafVolumeWithHandle("disk-1", "leaf-uid"), rootWithUID("root-uid"), corev1.PersistentVolumeReclaimDelete, there), []change{deleted}), err: ErrUnproven},
		"the host PV is not being deleted":          {host: hostVolumeOfLeaf(), member: with(leafVolumeWithHandle("disk-1", "leaf-uid")), err: ErrUnproven},
		"the member does not respond":               {host: hostVolumeOfLeaf(deleted), member: clusterWithClaims{fails: errDown}, err: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			e, missing, err := ProveDiskKept(t.Context(), proverOfClusters(clusterWithClaims{}, tc.member, tc.restored), tc.host)
			if missing != tc.missing || !errors.Is(err, tc.err) {
				t.Errorf("DiskKept returned %t, %v; want %t, %v", missing, err, tc.missing, tc.err)
			}
			coversVolume(t, e, tc.host, tc.err == nil)
		})
	}
}

func TestUnneededPromise(t *testing.T) {
	for name, tc := range map[string]struct {
		promise *corev1.PersistentVolume
		host    clusterWithClaims
		needs   bool
		want    bool
		err     error
	}{
		"no claim needs it":       {promise: unassigned(), host: with(unassigned()), want: true},
		"a claim needs it":        {promise: unassigned(), host: with(unassigned(), rootWithUID("root-uid")), needs: true},
		"it has changed":          {promise: unassigned(), host: with(unassigned(newerHostVolume))},
		"a member has it":         {promise: promise(), host: with(promise())},
		"it records a disk":       {promise: hostVolumeOfLeaf(), host: with(hostVolumeOfLeaf())},
		"it has no claimRef":      {promise: unassigned(withoutClaimRef), host: with(unassigned(withoutClaimRef))},
		"the host is not reached": {promise: unassigned(), host: clusterWithClaims{fails: errDown}, err: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			e, got, err := ProvePromiseUnneeded(t.Context(), proverOfClusters(tc.host, clusterWithClaims{}, nil), tc.promise, func(*corev1.PersistentVolumeClaim) bool { return tc.needs })
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("Unneeded returned %t, %v; want %t, %v", got, err, tc.want, tc.err)
			}
			coversVolume(t, e, tc.promise, got)
		})
	}
}

// These proofs read nothing: the host PV, or the registration, is the proof.
func TestObjectsProve(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
	leaving := func(id string, ends bool) func(*corev1.PersistentVolume) (DroppableVolume, bool) {
		cr := &v1alpha1.ClusterRegistration{Status: v1alpha1.ClusterRegistrationStatus{ClusterID: id}}
		if ends {
			cr.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		return func(pv *corev1.PersistentVolume) (DroppableVolume, bool) { return DroppableIfMemberLeaves(c, pv, cr) }
	}
	diskless := func(pv *corev1.PersistentVolume) (DroppableVolume, bool) { return DroppableIfNoDisk(c, pv) }
	given := func(pv *corev1.PersistentVolume) (DroppableVolume, bool) { return DroppableIfAbandoned(c, pv) }
	for name, tc := range map[string]struct {
		proves func(*corev1.PersistentVolume) (DroppableVolume, bool)
		host   *corev1.PersistentVolume
		want   bool
	}{
		"a promise with a claimRef that is Available": {diskless, promise(deleted, func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeAvailable }), true},
		"a promise without claimRef":                  {diskless, promise(deleted, withoutClaimRef), true},
		"a promise with a claim":                      {diskless, promise(deleted), false},
		"a promise that is not being deleted":         {diskless, promise(withoutClaimRef), false},
		"a volume":                                    {diskless, hostVolumeOfLeaf(deleted, withoutClaimRef), false},
		"an abandoned volume":                         {given, hostVolumeOfLeaf(abandoned), true},
		"a volume that nobody abandoned":              {given, hostVolumeOfLeaf(), false},
		"a volume of a member that leaves":            {leaving("id38", true), hostVolumeOfLeaf(), true},
		"a promise of a member that leaves":           {leaving("id38", true), promise(), true},
		"a shared volume with a copy in this member":  {leaving("id39", true), hostpv.VolumeWithCopyIn(hostVolumeOfLeaf(), "id39"), false},
		"a volume of another member":                  {leaving("id39", true), hostVolumeOfLeaf(), false},
		"a promise without a member":                  {leaving("id38", true), unassigned(), false},
		"a member that stays":                         {leaving("id38", false), hostVolumeOfLeaf(), false},
		"a registration that was never connected":     {leaving("", true), unassigned(), false},
	} {
		t.Run(name, func(t *testing.T) {
			e, got := tc.proves(tc.host)
			if got != tc.want {
				t.Errorf("proven: %t, want %t", got, tc.want)
			}
			coversVolume(t, e, tc.host, got)
		})
	}
}

func TestDroppableExpires(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
	e, _ := DroppableIfAbandoned(c, hostVolumeOfLeaf(abandoned))
	c.SetTime(c.Now().Add(ProofLifetime + time.Second))
	if err := SpendEvidence(e, DropVolume, hostVolumeOfLeaf(abandoned)); !errors.Is(err, ErrUnproven) {
		t.Errorf("expired evidence: %v", err)
	}
}

// The record of a copy leaves with its member, and only this record.
func TestMemberOfCopyLeaves(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
	leaving := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}}
	leaving.Status.ClusterID = "id39"
	stays := leaving.DeepCopy()
	stays.DeletionTimestamp = nil
	for name, tc := range map[string]struct {
		host *corev1.PersistentVolume
		cr   *v1alpha1.ClusterRegistration
		want bool
	}{
		"a copy in the member":             {hostpv.VolumeWithCopyIn(hostVolumeOfLeaf(), "id39"), leaving, true},
		"the member stays":                 {hostpv.VolumeWithCopyIn(hostVolumeOfLeaf(), "id39"), stays, false},
		"a copy in another member":         {hostpv.VolumeWithCopyIn(hostVolumeOfLeaf(), "id40"), leaving, false},
		"the member has the volume itself": {hostVolumeOfLeaf(), leaving, false},
	} {
		t.Run(name, func(t *testing.T) {
			e, got := CopyDroppableIfMemberLeaves(c, tc.host, tc.cr)
			if got != tc.want {
				t.Errorf("proven: %t, want %t", got, tc.want)
			}
			if err := SpendEvidence(e, DropVolume, tc.host); !errors.Is(err, ErrUnproven) {
				t.Errorf("the evidence covers the host PV: %v", err)
			}
			if err := SpendEvidence(e, DropCopyRecord, tc.host); (err == nil) != tc.want || tc.want && e.CopyClusterID() != "id39" {
				t.Errorf("the evidence is for cluster %q: %v", e.CopyClusterID(), err)
			}
		})
	}
}

// The evidence that a leaf is gone holds for the deletion of the host PV, and then once more for the removal of
// its finalizer, as long as it lasts. No other evidence does.
func TestOnceDeleting(t *testing.T) {
	later := func(pv *corev1.PersistentVolume) { pv.ResourceVersion = "8" }
	for name, tc := range map[string]struct {
		now    *corev1.PersistentVolume // the host PV at the second step
		after  time.Duration
		other  bool // other evidence than ProveLeafGone's
		covers bool
	}{
		"it is being deleted":                    {now: hostVolumeOfLeaf(later, deleted), covers: true},
		"just in time":                           {now: hostVolumeOfLeaf(later, deleted), after: ProofLifetime, covers: true},
		"too late":                               {now: hostVolumeOfLeaf(later, deleted), after: ProofLifetime + 1},
		"it is not being deleted":                {now: hostVolumeOfLeaf(later)},
		"it is another host PV":                  {now: hostVolumeOfLeaf(later, deleted, func(pv *corev1.PersistentVolume) { pv.UID = "other" })},
		"it records another leaf PV":             {now: hostVolumeOfLeaf(later, deleted, func(pv *corev1.PersistentVolume) { pv.Annotations[v1alpha1.AttributeLeafUID] = "other" })},
		"it belongs to another claim":            {now: hostVolumeOfLeaf(later, deleted, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "other" })},
		"it has no claimRef":                     {now: hostVolumeOfLeaf(later, deleted, withoutClaimRef)},
		"an admin has abandoned it: no LeafGone": {now: hostVolumeOfLeaf(later, deleted), other: true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
			seen := hostVolumeOfLeaf()
			e, proven, err := ProveLeafGone(t.Context(), Prover{Member: here, Live: clusterWithClaims{}, Clock: clock, CheckUnrestored: func(context.Context) error { return nil }}, seen)
			if err != nil || !proven {
				t.Fatalf("LeafGone returned %t, %v", proven, err)
			}
			if tc.other {
				seen = hostVolumeOfLeaf(abandoned)
				e, _ = DroppableIfAbandoned(clock, seen)
			}
			again := e.OnceDeleting(seen)
			if err := SpendEvidence(e, DropVolume, seen); err != nil {
				t.Fatal(err)
			}
			clock.SetTime(clock.Now().Add(tc.after))
			if err := SpendEvidence(again, DropVolume, tc.now); (err == nil) != tc.covers {
				t.Errorf("covers: %v", err)
			}
			if err := SpendEvidence(again, DropVolume, tc.now); err == nil {
				t.Error("the evidence was used a third time")
			}
		})
	}
}
