package proof

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// users is a host with the objects that may need the data of claim shop/data or VolumeSnapshot
// shop/data, both with UID root-uid.
type users struct {
	client.Reader
	root      *corev1.PersistentVolumeClaim
	claims    []corev1.PersistentVolumeClaim
	volume    *corev1.PersistentVolume
	snapshots []snapshotv1.VolumeSnapshot
	// fails is the error of lists of claims, and unserved that of lists of VolumeSnapshots.
	fails, unserved error
}

func (u users) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.PersistentVolumeClaim:
		if u.root != nil && u.root.Name == key.Name {
			u.root.DeepCopyInto(into)
			return nil
		}
	case *corev1.PersistentVolume:
		if u.volume != nil && u.volume.Name == key.Name {
			u.volume.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (u users) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.Namespace != "shop" {
		return errors.New("lists another namespace")
	}
	switch into := into.(type) {
	case *corev1.PersistentVolumeClaimList:
		into.Items = u.claims
		return u.fails
	case *snapshotv1.VolumeSnapshotList:
		into.Items = u.snapshots
		return u.unserved
	}
	return nil
}

func from(kind string, change ...func(*corev1.PersistentVolumeClaim)) corev1.PersistentVolumeClaim {
	c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "copy", UID: "copy-uid", Annotations: map[string]string{v1alpha1.AnnotationSource: "id38/root-uid"}}}
	c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: kind, Name: "data"}
	if kind == "VolumeSnapshot" {
		c.Spec.DataSource.APIGroup = ptr.To("snapshot.storage.k8s.io")
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func snapshotOf(claim string, change ...func(*snapshotv1.VolumeSnapshot)) snapshotv1.VolumeSnapshot {
	s := snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backup"}}
	s.Spec.Source.PersistentVolumeClaimName = &claim
	for _, f := range change {
		f(&s)
	}
	return s
}

// promiseOf returns the promise for claim copy, without a disk.
func promiseOf() *corev1.PersistentVolume {
	claim := from("PersistentVolumeClaim")
	return hostpv.NewPromiseFor(&claim, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "promise"}, Parameters: map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise}})
}

func boundTo(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName, c.Status.Phase = name, corev1.ClaimBound }
}

// held is a host whose lists of claims wait until they are released.
type held struct {
	users
	lists   *int
	release chan struct{}
}

func (h held) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	*h.lists++
	<-h.release
	return h.users.List(ctx, into, opts...)
}

// Concurrent proofs share a list of a namespace's claims. Each finds the claims that need its own data.
func TestUnneededSharesLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clone := from("PersistentVolumeClaim", boundTo(promiseOf().Name))
		host := held{users: users{claims: []corev1.PersistentVolumeClaim{clone}, volume: promiseOf()}, lists: new(int), release: make(chan struct{})}
		p := Prover{HostLive: host, Clock: clock.RealClock{}, WaitingClaims: &SharedReads[string, []corev1.PersistentVolumeClaim]{}}
		errs := map[types.UID]error{}
		for _, uid := range []types.UID{"first", "root-uid", "other-uid"} {
			go func() {
				_, errs[uid] = p.ProveVolumeUnneeded(t.Context(), types.NamespacedName{Namespace: "shop", Name: "data"}, uid, RootGone{})
			}()
			synctest.Wait()
		}
		for range 2 {
			host.release <- struct{}{}
			synctest.Wait()
		}
		if *host.lists != 2 {
			t.Errorf("%d lists; want one for the first proof, and one for the two that began meanwhile", *host.lists)
		}
		if errs["first"] != nil || errs["other-uid"] != nil || !errors.Is(errs["root-uid"], ErrDataNeeded) {
			t.Errorf("the results are %v; want ErrNeeded only for the claim that is still to be cloned", errs)
		}
	})
}

// Nobody may need data that is destroyed. Each need blocks the proof until it ends.
func TestUnneeded(t *testing.T) {
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid"}}
	recreated := root.DeepCopy()
	recreated.UID = "newer"
	down := errors.New("connection refused")
	fulfilled := hostpv.FulfillPromise(hostpv.PromiseWithMember(promiseOf(), here, nil), leafPV(deletes), deletes, here)
	for name, tc := range map[string]struct {
		users
		snapshot bool   // prove it for the VolumeSnapshot instead of the claim
		by       string // who needs the data
		err      error
	}{
		"nobody needs the volume":                             {users: users{root: root}},
		"a clone is pending":                                  {users: users{claims: []corev1.PersistentVolumeClaim{from("PersistentVolumeClaim")}}},
		"a clone is Bound to a promise without a disk":        {users: users{claims: []corev1.PersistentVolumeClaim{from("PersistentVolumeClaim", boundTo(promiseOf().Name))}, volume: promiseOf()}, by: `claim "copy"`},
		"a clone is Bound to a promise that is missing":       {users: users{claims: []corev1.PersistentVolumeClaim{from("PersistentVolumeClaim", boundTo(promiseOf().Name))}}, by: `claim "copy"`},
		"a clone has its disk":                                {users: users{claims: []corev1.PersistentVolumeClaim{from("PersistentVolumeClaim", boundTo(fulfilled.Name))}, volume: fulfilled}},
		"a clone is bound to a volume":                        {users: users{claims: []corev1.PersistentVolumeClaim{from("PersistentVolumeClaim", boundTo("pvc-1"))}}},
		"a clone that is Bound to a promise is being deleted": {users: users{claims: []corev1.PersistentVolumeClaim{from("PersistentVolumeClaim", boundTo(promiseOf().Name), func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} })}}},
		"a clone of a newer claim with that name":             {users: users{claims: []corev1.PersistentVolumeClaim{from("PersistentVolumeClaim", boundTo(promiseOf().Name), func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationSource] = "id38/newer" })}}},
		"a clone without a record":                            {users: users{claims: []corev1.PersistentVolumeClaim{from("PersistentVolumeClaim", boundTo(promiseOf().Name), func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil })}}},
		"a restore from a snapshot with the claim's name":     {users: users{claims: []corev1.PersistentVolumeClaim{from("VolumeSnapshot", boundTo(promiseOf().Name))}}},
		"a snapshot is to be taken":                           {users: users{root: root, snapshots: []snapshotv1.VolumeSnapshot{snapshotOf("data")}}, by: `VolumeSnapshot "backup"`},
		"a snapshot has failed": {users: users{root: root, snapshots: []snapshotv1.VolumeSnapshot{snapshotOf("data", func(s *snapshotv1.VolumeSnapshot) {
			s.Status = &snapshotv1.VolumeSnapshotStatus{ReadyToUse: ptr.To(false)}
		})}}, by: `VolumeSnapshot "backup"`},
		"a snapshot is ready": {users: users{root: root, snapshots: []snapshotv1.VolumeSnapshot{snapshotOf("data", func(s *snapshotv1.VolumeSnapshot) {
			s.Status = &snapshotv1.VolumeSnapshotStatus{ReadyToUse: ptr.To(true)}
		})}}},
		"a snapshot is being deleted":                    {users: users{root: root, snapshots: []snapshotv1.VolumeSnapshot{snapshotOf("data", func(s *snapshotv1.VolumeSnapshot) { s.DeletionTimestamp = &metav1.Time{} })}}},
		"a snapshot of another claim":                    {users: users{root: root, snapshots: []snapshotv1.VolumeSnapshot{snapshotOf("other")}}},
		"a snapshot of a newer claim with that name":     {users: users{root: recreated, snapshots: []snapshotv1.VolumeSnapshot{snapshotOf("data")}}},
		"the host serves no snapshots":                   {users: users{root: root, unserved: &meta.NoKindMatchError{}}},
		"the host no longer serves snapshots":            {users: users{root: root, unserved: apierrors.NewNotFound(schema.GroupResource{}, "")}},
		"the host does not list its snapshots":           {users: users{root: root, unserved: down}, err: down},
		"the host does not list its claims":              {users: users{fails: down}, err: down},
		"nobody needs the snapshot":                      {users: users{}, snapshot: true},
		"a restore is pending":                           {users: users{claims: []corev1.PersistentVolumeClaim{from("VolumeSnapshot")}}, snapshot: true},
		"a restore is Bound to a promise without a disk": {users: users{claims: []corev1.PersistentVolumeClaim{from("VolumeSnapshot", boundTo(promiseOf().Name))}, volume: promiseOf()}, snapshot: true, by: `claim "copy"`},
		"a clone of a claim with the snapshot's name":    {users: users{claims: []corev1.PersistentVolumeClaim{from("PersistentVolumeClaim", boundTo(promiseOf().Name))}}, snapshot: true},
	} {
		t.Run(name, func(t *testing.T) {
			key := client.ObjectKey{Namespace: "shop", Name: "data"}
			nobody, err := prover(tc.users).ProveVolumeUnneeded(t.Context(), key, "root-uid", RootGone{})
			if tc.snapshot {
				nobody, err = prover(tc.users).ProveSnapshotUnneeded(t.Context(), key, "root-uid")
			}
			switch {
			case tc.by != "" && (!errors.Is(err, ErrDataNeeded) || !strings.Contains(err.Error(), tc.by)):
				t.Errorf("got error %v, want ErrNeeded by %s", err, tc.by)
			case tc.by == "" && !errors.Is(err, tc.err):
				t.Errorf("got error %v, want %v", err, tc.err)
			case err == nil && (nobody.witness == nil || nobody.witness.UID != "root-uid"):
				t.Errorf("the proof is for %v", nobody.witness)
			}
		})
	}
}

// A need without a live read must name the proof that covers it. TestNeedsNameProofs checks that the proofs exist.
func TestNeeds(t *testing.T) {
	for _, need := range Needs {
		own := strings.Contains(need.Proof, "Unneeded")
		if read := need.findForVolume != nil || need.findForSnapshot != nil; read != own || need.Who == "" || need.Until == "" || need.Proof == "" {
			t.Errorf("need of %q: proof %q, live read %t", need.Who, need.Proof, read)
		}
	}
}

// The proof that nobody needs another object's data, or that was used before, is worth nothing.
func TestDestruction(t *testing.T) {
	g := given{prover(users{}), prover(users{}).Clock.Now()}
	evidence := func() DestroyingVolume {
		return DestroyingVolume{Host: HostReleased{g.host(deletes)}, Root: g.root()}
	}
	nobody := DataUnneeded{witness: g.newWitness(g.at, "root-uid", "")}
	if err := SpendEvidence(DestructionEvidence(DataUnneeded{}, evidence()), SetDelete, leafPV(retains)); !errors.Is(err, ErrUnproven) {
		t.Errorf("without the proof: %v", err)
	}
	if err := SpendEvidence(DestructionEvidence(DataUnneeded{witness: g.newWitness(g.at, "other-uid", "")}, evidence()), SetDelete, leafPV(retains)); !errors.Is(err, ErrUnproven) {
		t.Errorf("with another's proof: %v", err)
	}
	if err := SpendEvidence(DestructionEvidence(nobody, evidence()), SetDelete, leafPV(retains)); err != nil {
		t.Errorf("with the proof: %v", err)
	}
	if err := SpendEvidence(DestructionEvidence(nobody, evidence()), SetDelete, leafPV(retains)); !errors.Is(err, ErrUnproven) {
		t.Errorf("with a proof that was used before: %v", err)
	}
}
