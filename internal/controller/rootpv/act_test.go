package rootpv

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// reads serves live reads of a few objects.
type reads struct {
	client.Reader
	volume *corev1.PersistentVolume
	claim  *corev1.PersistentVolumeClaim
	nodes  map[string]string              // Node name -> cluster ID in the Node's label
	claims []corev1.PersistentVolumeClaim // only in lists
	err    error
}

func (r reads) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if claims, ok := into.(*corev1.PersistentVolumeClaimList); ok {
		claims.Items = r.claims
	}
	return r.err
}

func (r reads) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.PersistentVolume:
		if r.volume != nil && r.volume.Name == key.Name {
			r.volume.DeepCopyInto(into)
			return r.err
		}
	case *corev1.PersistentVolumeClaim:
		if r.claim != nil && r.claim.Name == key.Name {
			r.claim.DeepCopyInto(into)
			return r.err
		}
	case *corev1.Node:
		if cluster, there := r.nodes[key.Name]; there {
			into.Name, into.Labels = key.Name, map[string]string{v1alpha1.LabelClusterID: cluster}
			return r.err
		}
	}
	if r.err != nil {
		return r.err
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

var errWrite = errors.New("a write was attempted")

// writes rejects every write, so that tests detect the attempt.
type writes struct{ client.Client }

func (writes) Delete(context.Context, client.Object, ...client.DeleteOption) error { return errWrite }

func (writes) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errWrite
}

// The evidence of I2 is read live before the write, regardless of the caches at the time of the
// decision.
func TestEvidenceIsLive(t *testing.T) {
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		change func(s *volume.Observed, host, leaf *reads)
		fails  error
		// written means that the write is attempted.
		written bool
	}{
		"nothing has changed": {change: func(*volume.Observed, *reads, *reads) {}, written: true},
		"reclaiming the host PV has failed": {change: func(_ *volume.Observed, host, _ *reads) {
			host.volume.Status.Phase = corev1.VolumeFailed
		}, written: true},
		"the host PV is in use again": {change: func(_ *volume.Observed, host, _ *reads) {
			host.volume.Status.Phase = corev1.VolumeBound
		}},
		"the host PV was re-created": {change: func(_ *volume.Observed, host, _ *reads) { host.volume.UID = "newer" }},
		"the host PV was freed": {change: func(_ *volume.Observed, host, _ *reads) {
			host.volume.Spec.ClaimRef = nil
		}},
		"the host PV belongs to another claim": {change: func(_ *volume.Observed, host, _ *reads) { host.volume.Spec.ClaimRef.UID = "other" }},
		"an admin has just set Retain": {change: func(_ *volume.Observed, host, _ *reads) {
			host.volume.Spec.PersistentVolumeReclaimPolicy = retains
		}},
		"the root claim exists": {change: func(_ *volume.Observed, host, _ *reads) { host.claim = root }},
		"a newer claim has the root's name": {change: func(_ *volume.Observed, host, _ *reads) {
			host.claim = root.DeepCopy()
			host.claim.UID = "newer"
		}, written: true},
		"a claim is still to be cloned from the claim": {change: func(_ *volume.Observed, host, _ *reads) {
			clone := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "copy", Annotations: map[string]string{v1alpha1.AnnotationSource: "id38/" + string(root.UID)}}}
			clone.Spec.VolumeName = hostpv.PromiseName("copy-uid")
			clone.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: root.Name}
			host.claims = append(host.claims, clone)
		}},
		"the host does not respond":                  {change: func(_ *volume.Observed, host, _ *reads) { host.err = down }, fails: down},
		"the member does not respond":                {change: func(_ *volume.Observed, _, leaf *reads) { leaf.err = down }, fails: down},
		"the leaf PV was restored under another UID": {change: func(_ *volume.Observed, _, leaf *reads) { leaf.volume.UID = "restored" }},
		"the leaf PV was restored under another UID, and was observed as absent": {change: func(s *volume.Observed, _, leaf *reads) {
			noLeaf(s)
			leaf.volume.UID = "restored"
		}},
		"the leaf PV was re-created, and has policy Retain": {change: func(s *volume.Observed, _, leaf *reads) {
			recreated(retains)(s)
			leaf.volume = s.Recreated
		}, written: true},
		"the leaf PV was re-created, and its policy was just set to Delete": {change: func(s *volume.Observed, _, leaf *reads) {
			recreated(retains)(s)
			leaf.volume = s.Recreated.DeepCopy()
			leaf.volume.Spec.PersistentVolumeReclaimPolicy = deletes
		}},
		"the leaf PV was re-created, and another claim has it": {change: func(s *volume.Observed, _, leaf *reads) {
			recreated(deletes)(s)
			s.Recreated.Spec.ClaimRef.UID = "foreign"
			leaf.volume = s.Recreated
		}, written: true},
		"the leaf PV was re-created again": {change: func(s *volume.Observed, _, leaf *reads) {
			recreated(retains)(s)
			leaf.volume = s.Recreated.DeepCopy()
			leaf.volume.UID = "newer"
		}},
		"the leaf PV is gone, and its claim is Lost": {change: func(s *volume.Observed, _, leaf *reads) {
			noLeaf(s)
			leaf.volume = nil
		}, written: true},
		"the host PV has policy Retain, and the leaf PV was just set to Delete": {change: func(s *volume.Observed, host, leaf *reads) {
			s.Leaf.Spec.PersistentVolumeReclaimPolicy = retains
			s.Host.Spec.PersistentVolumeReclaimPolicy = retains
			host.volume.Spec.PersistentVolumeReclaimPolicy = retains
			leaf.volume.Spec.PersistentVolumeReclaimPolicy = deletes
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen(leafPolicy(deletes))
			host := &reads{volume: s.Host.DeepCopy()}
			leaf := &reads{volume: s.Leaf.DeepCopy()}
			tc.change(s, host, leaf)
			plan := lifecycle.NextPlan(s)
			if plan.StepOwnedBy(lifecycle.RootPV) != lifecycle.DeleteClaim {
				t.Fatalf("the plan is %+v, want DeleteClaim", plan)
			}
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: host, Live: leaf,
				MemberWriter: guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
			}}
			_, err := r.executeStep(t.Context(), s, plan)
			switch {
			case tc.written && !errors.Is(err, errWrite):
				t.Errorf("the leaf claim was not deleted: %v", err)
			case !tc.written && errors.Is(err, errWrite):
				t.Error("the leaf claim was deleted")
			case tc.fails != nil && !errors.Is(err, tc.fails):
				t.Errorf("error is %v, want %v", err, tc.fails)
			case !tc.written && tc.fails == nil && err != nil:
				t.Errorf("unexpected error: %v", err)
			}
		})
	}
}

// cached is a cache with the objects of a reader.
type cached struct {
	cache.Cache
	reads *reads
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return c.reads.Get(ctx, key, into, opts...)
}

// A promise without a disk ends with its claim. Only a leaf claim that the cache lacks is worth a retry;
// everything else leads to an event.
func TestEndPromiseIsLive(t *testing.T) {
	down := errors.New("connection refused")
	left := root.DeepCopy()
	mirror.Origin{HostID: here.HostID, Root: client.ObjectKeyFromObject(root), UID: root.UID}.StampLeaf(&left.ObjectMeta)
	for name, tc := range map[string]struct {
		change func(host, leaf *reads)
		cached bool // the cache has the leaf claim
		want   error
		retry  bool
	}{
		"its claim is gone":                {want: errWrite},
		"its claim exists":                 {change: func(host, _ *reads) { host.claim = root }},
		"the promise has changed":          {change: func(host, _ *reads) { host.volume.ResourceVersion = "newer" }},
		"the promise is gone":              {change: func(host, _ *reads) { host.volume = nil }},
		"the leaf claim exists":            {change: func(_, leaf *reads) { leaf.claim = left }, cached: true},
		"the leaf claim is not cached yet": {change: func(_, leaf *reads) { leaf.claim = left }, retry: true},
		"the host does not respond":        {change: func(host, _ *reads) { host.err = down }, want: down},
	} {
		t.Run(name, func(t *testing.T) {
			s := unfulfilled()
			host, leaf, member38 := &reads{volume: s.Host.DeepCopy()}, &reads{}, &reads{}
			if tc.change != nil {
				tc.change(host, leaf)
			}
			if tc.cached {
				member38.claim = left
			}
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: host, Live: leaf, Cache: cached{reads: member38}, CheckNotSuspended: func() error { return nil },
				HostWriter:      guarded.NewHostWriter(writes{}, here.Registration, guarded.HostOnlyGuard{}),
				CheckUnrestored: func(context.Context) error { return nil },
			}, options: observe.Options{UnusedPromises: observe.NewUnusedPromises()}, leafGoneEvidence: newLeafGoneEvidence()}
			plan := lifecycle.NextPlan(s)
			if plan.StepOwnedBy(lifecycle.RootPV) != lifecycle.EndPromise {
				t.Fatalf("the plan is %+v, want EndPromise", plan)
			}
			_, err := r.executeStep(t.Context(), s, plan)
			if tc.retry && (err == nil || errors.Is(err, errWrite)) || !tc.retry && !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v, or any for a retry: %t", err, tc.want, tc.retry)
			}
		})
	}
}

// A restored cluster may have lost objects. Xylem keeps the host PV until an admin confirms the
// restore.
func TestReleaseWaitsForTheAdmin(t *testing.T) {
	for name, suspended := range map[string]error{"restored": guarded.ErrSuspended, "confirmed": nil} {
		t.Run(name, func(t *testing.T) {
			s := seen(noLeaf, func(s *volume.Observed) { s.LeafClaim = nil })
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: &reads{}, Live: &reads{}, CheckNotSuspended: func() error { return suspended },
				HostWriter: guarded.NewHostWriter(writes{}, here.Registration, guarded.HostOnlyGuard{}),
			}, options: observe.Options{UnusedPromises: observe.NewUnusedPromises()}, leafGoneEvidence: newLeafGoneEvidence()}
			want := suspended
			if want == nil {
				want = errWrite
			}
			if _, err := r.executeStep(t.Context(), s, lifecycle.NextPlan(s)); !errors.Is(err, want) {
				t.Errorf("error is %v, want %v", err, want)
			}
		})
	}
}

// Absence in a restored member is not evidence even before the restore is detected. The host PV
// is the last record of the disk, whether volume or promise (I1).
func TestReleaseNoticesARestore(t *testing.T) {
	for name, s := range map[string]*volume.Observed{
		"a volume":                 seen(noLeaf, func(s *volume.Observed) { s.LeafClaim = nil }),
		"an unused promise":        unused(releasing, noLeaf, leafClaimGone),
		"a promise without a disk": unfulfilled(),
	} {
		t.Run(name, func(t *testing.T) {
			var restored error
			r := &reconciler{Link: &member.Link{
				Member: here, Host: &reads{}, HostLive: &reads{volume: s.Host}, Live: &reads{}, CheckNotSuspended: func() error { return nil },
				HostWriter:      guarded.NewHostWriter(writes{}, here.Registration, guarded.HostOnlyGuard{}),
				CheckUnrestored: func(context.Context) error { return restored },
			}, options: observe.Options{UnusedPromises: observe.NewUnusedPromises()}, leafGoneEvidence: newLeafGoneEvidence()}
			if _, err := r.executeStep(t.Context(), s, lifecycle.NextPlan(s)); !errors.Is(err, errWrite) {
				t.Fatalf("error is %v, want an attempted release", err)
			}
			restored = guarded.ErrFenced
			if _, err := r.executeStep(t.Context(), s, lifecycle.NextPlan(s)); !errors.Is(err, guarded.ErrFenced) {
				t.Errorf("error is %v, want ErrFenced", err)
			}
		})
	}
}

var errRecord = errors.New("a record was attempted")

// records rejects every write, too, and distinguishes the creation of the record.
type records struct{ writes }

func (records) Create(context.Context, client.Object, ...client.CreateOption) error { return errRecord }

// The host PV of a retained disk is released without a record, unless nothing else names the disk.
func TestDropKeptRecordsLostDisks(t *testing.T) {
	down := errors.New("connection refused")
	retained := seen()
	disk := func(handle string) *corev1.PersistentVolume {
		pv := retained.Leaf.DeepCopy()
		pv.UID, pv.Spec.CSI.VolumeHandle = "newer", handle
		return pv
	}
	recreated := func(handle string) func(*volume.Observed) {
		return func(s *volume.Observed) { s.Recreated = disk(handle) }
	}
	for name, tc := range map[string]struct {
		change func(*volume.Observed)
		live   reads // of the member
		never  bool  // never restored
		fenced error
		want   error
	}{
		"the member lost the volume":                 {want: errRecord},
		"it is not in the cache yet":                 {live: reads{volume: retained.Leaf}, want: errWrite},
		"it was re-created with the same disk":       {change: recreated("d-1"), live: reads{volume: disk("d-1")}, want: errWrite},
		"the same disk's volume is not in the cache": {live: reads{volume: disk("d-1")}, want: errWrite},
		"it was re-created with another disk":        {change: recreated("d-2"), live: reads{volume: disk("d-2")}, want: errRecord},
		"an admin's host PV still represents it":     {change: func(s *volume.Observed) { s.TwinHost = &corev1.PersistentVolume{} }, want: errWrite},
		"both host PVs are being deleted": {change: func(s *volume.Observed) {
			s.TwinHost = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}
		}, want: errRecord},
		"the member was never restored":              {never: true, want: errWrite},
		"the fence has not yet detected the restore": {never: true, fenced: guarded.ErrFenced, want: guarded.ErrFenced},
		"nor has the cache":                          {change: func(s *volume.Observed) { s.Leaf = retained.Leaf }, never: true, fenced: guarded.ErrFenced, want: guarded.ErrFenced},
		"the member does not respond":                {live: reads{err: down}, want: down},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen(hostPolicy(retains), noClaim, noLeaf, hostDeleted)
			if tc.change != nil {
				tc.change(s)
			}
			plan := lifecycle.NextPlan(s)
			if plan.StepOwnedBy(lifecycle.RootPV) != lifecycle.DropKept {
				t.Fatalf("the plan is %+v, want DropKept", plan)
			}
			r := &reconciler{
				Link: &member.Link{
					Member: here, HostLive: &reads{volume: s.Host}, Live: tc.live,
					HostWriter:      guarded.NewHostWriter(records{}, here.Registration, guarded.HostOnlyGuard{}),
					CheckUnrestored: func(context.Context) error { return tc.fenced },
					RestoreTimes: func() fencing.RestoreTimes {
						if tc.never {
							return fencing.RestoreTimes{}
						}
						return fencing.RestoreTimes{Member: now.Time}
					},
				},
				options: observe.Options{UnusedPromises: observe.NewUnusedPromises()}, leafGoneEvidence: newLeafGoneEvidence(), missingDisks: fencing.NewMissingStorage(&fencing.HostRecords{Live: reads{}, Namespace: "xylem-system", Clock: clocktesting.NewFakePassiveClock(now.Time)}),
			}
			if _, err := r.executeStep(t.Context(), s, plan); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}

// The leaf claim of an earlier root is deleted only if that root is gone and the leaf PV stays.
func TestDeleteStaleIsLive(t *testing.T) {
	down := errors.New("connection refused")
	earlier := root.DeepCopy()
	earlier.UID = "earlier-root"
	for name, tc := range map[string]struct {
		change func(host, leaf *reads)
		want   error
	}{
		"nothing has changed":                       {change: func(_, _ *reads) {}, want: errWrite},
		"the earlier root exists":                   {change: func(host, _ *reads) { host.claim = earlier }},
		"the next root has the earlier root's name": {change: func(host, _ *reads) { host.claim = root }, want: errWrite},
		"the host PV belongs to another claim":      {change: func(host, _ *reads) { host.volume.Spec.ClaimRef.UID = earlier.UID }},
		"the host PV was freed again":               {change: func(host, _ *reads) { host.volume.Spec.ClaimRef = nil }},
		"the host PV is gone":                       {change: func(host, _ *reads) { host.volume = nil }},
		"the leaf PV was set to Delete":             {change: func(_, leaf *reads) { leaf.volume.Spec.PersistentVolumeReclaimPolicy = deletes }},
		"the leaf PV was re-created":                {change: func(_, leaf *reads) { leaf.volume.UID = "newer" }},
		"the host does not respond":                 {change: func(host, _ *reads) { host.err = down }, want: down},
		"the member does not respond":               {change: func(_, leaf *reads) { leaf.err = down }, want: down},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen(phase(corev1.VolumeBound), staleClaim)
			host, leaf := &reads{volume: s.Host.DeepCopy()}, &reads{volume: s.Leaf.DeepCopy()}
			tc.change(host, leaf)
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: host, Live: leaf,
				MemberWriter: guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
			}}
			if _, err := r.executeStep(t.Context(), s, lifecycle.NextPlan(s)); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}

// A leaf PV with another root's stamp is destroyed only if that root is gone.
func TestSetDeleteProvesTheStampedRootGone(t *testing.T) {
	other := root.DeepCopy()
	other.Name, other.UID = "other", "other-root"
	for name, tc := range map[string]struct {
		live *corev1.PersistentVolumeClaim
		want error
	}{"the stamped root is gone": {nil, errWrite}, "the stamped root exists": {other, nil}} {
		t.Run(name, func(t *testing.T) {
			s := seen(noClaim, leafReleased, func(s *volume.Observed) { s.Stamp.Root.Name, s.Stamp.UID = other.Name, other.UID })
			r := &reconciler{Link: &member.Link{
				Member: here, HostLive: &reads{volume: s.Host, claim: tc.live}, Live: &reads{volume: s.Leaf},
				MemberWriter: guarded.NewMemberWriter(writes{}, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
			}}
			if _, err := r.executeStep(t.Context(), s, lifecycle.NextPlan(s)); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}

func TestProtected(t *testing.T) {
	deleted := metav1.Now()
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		want   bool
	}{
		"Kubernetes' finalizer exists":                               {func(*corev1.PersistentVolume) {}, true},
		"Kubernetes' finalizer was removed":                          {func(pv *corev1.PersistentVolume) { pv.Finalizers = []string{v1alpha1.FinalizerLeafVolume} }, false},
		"the PV is not being deleted":                                {func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = nil }, false},
		"the PV is Bound: Kubernetes does not remove its finalizer":  {func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeBound }, false},
		"another controller's finalizer, which may never be removed": {func(pv *corev1.PersistentVolume) { pv.Finalizers[0] = "example.com/backup" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			pv := &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted, Finalizers: []string{protectionFinalizer, v1alpha1.FinalizerLeafVolume}},
				Status:     corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased},
			}
			test.change(pv)
			if got := protectionPending(pv); got != test.want {
				t.Errorf("protected is %v, want %v", got, test.want)
			}
		})
	}
}
