package leafpv

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// creates is a client that records the created PVs, and serves reads of them.
type creates struct {
	client.Client
	volumes map[string]*corev1.PersistentVolume
}

func (c creates) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	if pv, ok := obj.(*corev1.PersistentVolume); ok {
		c.volumes[pv.Name] = pv
	}
	return nil
}

func (creates) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (c creates) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if pv, ok := into.(*corev1.PersistentVolume); ok && c.volumes[key.Name] != nil {
		c.volumes[key.Name].DeepCopyInto(pv)
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// taken is a client whose cluster already has the PV to create.
type taken struct{ creates }

func (taken) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	return apierrors.NewAlreadyExists(schema.GroupResource{}, obj.GetName())
}

// A host PV that is not in the cache yet may be deleted before the cache observes it. No event
// would then reach the controller, so it must check the volume again, or the volume would not be
// mirrored.
func TestHostVolumeNotSeenYet(t *testing.T) {
	s := observedOf(t, seen(stamped))
	made := hostpv.TranslateVolume(s.Leaf, s.Root, corev1.PersistentVolumeReclaimDelete, here)
	host := taken{creates{volumes: map[string]*corev1.PersistentVolume{made.Name: made}}}
	r := &reconciler{
		Link: &member.Link{Member: here, HostLive: host, Recorder: events.NewFakeRecorder(10),
			HostWriter: guarded.NewHostWriter(host, here.Registration, guarded.HostOnlyGuard{})},
		Options: Options{Mirrors: account.NewMirrorTracker(creates{}, host)},
	}
	settled := guarded.WrapReconciler(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, r.executeStep(ctx, s, lifecycle.NextPlan(s))
	}))
	if result, err := settled.Reconcile(t.Context(), reconcile.Request{}); err != nil || result.RequeueAfter == 0 {
		t.Errorf("result is %v, error is %v; want a requeue without an error", result, err)
	}
}

// The leaf claim is deleted after its volume was mirrored and before the root is bound. While the
// cache does not show that yet, a second leaf claim gets another volume, which must not be mirrored
// (I3).
func TestOneHostVolumeForARoot(t *testing.T) {
	host := creates{volumes: map[string]*corev1.PersistentVolume{}}
	r := &reconciler{
		Link: &member.Link{Member: here, HostLive: host, Recorder: events.NewFakeRecorder(10),
			HostWriter: guarded.NewHostWriter(host, here.Registration, guarded.HostOnlyGuard{})},
		Options: Options{Mirrors: account.NewMirrorTracker(creates{}, host)},
	}
	first, second := observedOf(t, seen(stamped)), observedOf(t, seen(func(s *volume.Observed) {
		s.Name, s.Leaf.Name, s.Leaf.UID, s.LeafClaim.UID, s.LeafClaim.Spec.VolumeName = "pv-2", "pv-2", "leaf-uid-2", "leaf-claim-uid-2", "pv-2"
		s.Leaf.Spec.ClaimRef.UID = s.LeafClaim.UID
	}, stamped))
	for i, s := range []*volume.Observed{first, second} {
		if err := r.executeStep(t.Context(), s, lifecycle.NextPlan(s)); (err != nil) != (i == 1) {
			t.Errorf("volume %s: %v", s.Name, err)
		}
	}
	if len(host.volumes) != 1 || host.volumes["pv-1"] == nil {
		t.Errorf("host PVs are %v, want only pv-1", host.volumes)
	}
	// An admin deletes the host PV before the root is bound to it, so the second one may be created.
	delete(host.volumes, "pv-1")
	if err := r.executeStep(t.Context(), second, lifecycle.NextPlan(second)); err != nil || host.volumes["pv-2"] == nil {
		t.Errorf("host PVs are %v, want pv-2; error is %v", host.volumes, err)
	}
}
