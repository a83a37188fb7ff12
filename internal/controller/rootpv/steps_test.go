package rootpv

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// recording accepts every write, and records it.
type recording struct {
	client.Client
	written []string
	patched func() // called after a patch
}

func (a *recording) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	a.written = append(a.written, "delete")
	return nil
}

func (a *recording) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	a.written = append(a.written, "patch")
	if a.patched != nil {
		a.patched()
	}
	return nil
}

// counted counts live reads by kind.
type counted struct {
	*reads
	got map[string]int
}

func (c counted) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	switch into.(type) {
	case *corev1.PersistentVolume:
		c.got["volume"]++
	case *corev1.PersistentVolumeClaim:
		c.got["claim"]++
	}
	return c.reads.Get(ctx, key, into, opts...)
}

// The leaf claim is deleted immediately after the leaf PV was set to Delete. Only proofs that stay true are
// shared: an admin or a new clone may still save the disk.
func TestSetDeleteThenDeletesTheClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*volume.Observed)
		// meanwhile is what happens between the two writes.
		meanwhile func(host, leaf *reads)
		kept      bool // the leaf claim is kept
		err       error
	}{
		"nothing happens":                         {meanwhile: func(_, _ *reads) {}},
		"there is no leaf claim":                  {change: func(s *volume.Observed) { noClaim(s); leafReleased(s) }, meanwhile: func(_, _ *reads) {}, kept: true},
		"the leaf claim is already being deleted": {change: claimDeleted, meanwhile: func(_, _ *reads) {}, kept: true},
		"an admin sets Retain":                    {meanwhile: func(host, _ *reads) { host.volume.Spec.PersistentVolumeReclaimPolicy = retains }, kept: true},
		"the leaf PV is re-created":               {meanwhile: func(_, leaf *reads) { leaf.volume.UID = "newer" }, kept: true},
		"an admin abandons the volume":            {meanwhile: func(host, _ *reads) { host.volume.Annotations[v1alpha1.AnnotationAbandon] = "true" }, kept: true},
		"another member copies the volume":        {meanwhile: func(host, _ *reads) { host.volume = hostpv.VolumeWithCopyIn(host.volume, "id39") }, kept: true, err: proof.ErrUnproven},
		"a claim is to be cloned from the claim": {meanwhile: func(host, _ *reads) {
			clone := corev1.PersistentVolumeClaim{}
			clone.Name, clone.Annotations = "copy", map[string]string{v1alpha1.AnnotationSource: "id38/" + string(root.UID)}
			clone.Spec.VolumeName = hostpv.PromiseName("copy-uid")
			clone.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: root.Name}
			host.claims = append(host.claims, clone)
		}, kept: true},
		"the first write takes too long": {meanwhile: func(_, _ *reads) { <-time.After(11 * time.Second) }, kept: true, err: proof.ErrUnproven},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := seen()
				if tc.change != nil {
					tc.change(s)
				}
				set := s.Leaf.DeepCopy()
				set.Spec.PersistentVolumeReclaimPolicy = deletes
				host, leaf := counted{&reads{volume: s.Host.DeepCopy()}, map[string]int{}}, &reads{volume: set}
				to := &recording{patched: func() { tc.meanwhile(host.reads, leaf) }}
				r := &reconciler{Link: &member.Link{
					Member: here, HostLive: host, Live: leaf, MemberWriter: guarded.NewMemberWriter(to, here.HostID, here.Registration, guarded.HostOnlyGuard{}),
				}}
				plan := lifecycle.NextPlan(s)
				if plan.StepOwnedBy(lifecycle.RootPV) != lifecycle.SetDelete {
					t.Fatalf("the plan is %+v, want SetDelete", plan)
				}
				if _, err := r.executeStep(t.Context(), s, plan); !errors.Is(err, tc.err) {
					t.Errorf("error is %v, want %v", err, tc.err)
				}
				want := []string{"patch", "delete"}
				if tc.kept {
					want = want[:1]
				}
				if !slices.Equal(to.written, want) {
					t.Errorf("writes are %v, want %v", to.written, want)
				}
				if host.got["claim"] != 1 {
					t.Errorf("the root was read %d times, want once", host.got["claim"])
				}
				if tc.kept {
					return
				}
				s.Leaf = set // the cache does not show yet that the claim is being deleted
				if _, err := r.executeStep(t.Context(), s, lifecycle.NextPlan(s)); !apierrors.IsConflict(err) || host.got["claim"] != 1 {
					t.Errorf("error is %v after %d reads of the root, want a conflict without more reads", err, host.got["claim"])
				}
			})
		})
	}
}

// The proof with which a host PV was deleted also allows the removal of its finalizer, once, and only soon after.
func TestDropHostSharesItsProof(t *testing.T) {
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		after     time.Duration
		change    func(*corev1.PersistentVolume)
		suspended error
		unproven  error // want this error, and no second write
	}{
		"Kubernetes has removed its own finalizer": {after: time.Second},
		"Kubernetes' controller was down":          {after: 6 * time.Second, unproven: down},
		"the host PV records another disk":         {change: func(pv *corev1.PersistentVolume) { pv.Annotations[v1alpha1.AttributeLeafUID] = "other" }, unproven: proof.ErrUnproven},
		"the host PV belongs to another claim":     {change: func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "other" }, unproven: proof.ErrUnproven},
		"it is another host PV with that name":     {change: func(pv *corev1.PersistentVolume) { pv.UID = "other" }, unproven: down},
		"a cluster was restored":                   {suspended: guarded.ErrSuspended, unproven: guarded.ErrSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := seen(noLeaf, noClaim)
				live, to, suspended := &reads{}, &recording{}, error(nil)
				r := &reconciler{Link: &member.Link{
					Member: here, HostLive: &reads{}, Live: live, CheckNotSuspended: func() error { return suspended },
					HostWriter: guarded.NewHostWriter(to, here.Registration, guarded.HostOnlyGuard{}),
				}, options: observe.Options{UnusedPromises: observe.NewUnusedPromises()}, leafGoneEvidence: newLeafGoneEvidence()}
				act := func() error {
					_, err := r.executeStep(t.Context(), s, lifecycle.NextPlan(s))
					return err
				}
				if err := act(); err != nil || !slices.Equal(to.written, []string{"delete"}) {
					t.Fatalf("writes are %v, error is %v; want the deletion of the host PV", to.written, err)
				}
				<-time.After(tc.after)
				s.Host = s.Host.DeepCopy()
				s.Host.ResourceVersion, s.Host.DeletionTimestamp = "9", &now
				if tc.change != nil {
					tc.change(s.Host)
				}
				live.err, suspended = down, tc.suspended
				if err := act(); !errors.Is(err, tc.unproven) || len(to.written) != map[bool]int{true: 2, false: 1}[tc.unproven == nil] {
					t.Errorf("writes are %v, error is %v, want %v", to.written, err, tc.unproven)
				}
				if suspended = nil; tc.unproven == nil {
					if err := act(); !errors.Is(err, down) {
						t.Errorf("the proof was used again: %v", err)
					}
				}
			})
		})
	}
}
