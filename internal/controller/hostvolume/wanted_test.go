package hostvolume

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// claimed returns a claim with the name of promise()'s claim, the given UID, and the given
// spec.volumeName.
func claimed(uid types.UID, volume string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: uid}}
	claim.Spec.VolumeName = volume
	return claim
}

func noUID(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" }

func TestSuperseded(t *testing.T) {
	own := hostpv.PromiseName("root")
	for name, tc := range map[string]struct {
		pv    *corev1.PersistentVolume
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		"the promise is gone":                                                       {},
		"the claim is bound to the promise":                                         {promise(in(corev1.VolumeBound)), claimed("root", own), false},
		"the claim is not bound yet":                                                {promise(in(corev1.VolumeAvailable)), claimed("root", ""), false},
		"the claim has another volume":                                              {promise(in(corev1.VolumeAvailable)), claimed("root", "other"), true},
		"released, and the claim has another volume":                                {promise(in(corev1.VolumeReleased)), claimed("root", "other"), true},
		"being deleted, and the claim has another volume":                           {promise(in(corev1.VolumeReleased), deleted), claimed("root", "other"), true},
		"being deleted without Xylem's finalizer, and the claim has another volume": {promise(in(corev1.VolumeReleased), deleted, withoutFinalizer), claimed("root", "other"), false},
		"policy Retain, and the claim has another volume":                           {promise(in(corev1.VolumeAvailable), retained, noUID), claimed("root", "other"), true},
		"policy Retain, and the claim is not bound yet":                             {promise(in(corev1.VolumeAvailable), retained, noUID), claimed("root", ""), false},
		"policy Retain, and the claim was deleted":                                  {promise(in(corev1.VolumeAvailable), retained, noUID), nil, true},
		"policy Retain, and another claim now has the claim's name":                 {promise(in(corev1.VolumeAvailable), retained, noUID), claimed("next", ""), true},
		"policy Retain, and another claim requests the promise":                     {promise(in(corev1.VolumeAvailable), retained, noUID), claimed("next", own), false},
		"the claim was deleted: the PV controller decides":                          {promise(in(corev1.VolumeBound)), nil, false},
		"another claim reuses the promise":                                          {promise(in(corev1.VolumeBound), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "next" }), claimed("next", own), false},
		"freed by an admin":                                                         {promise(in(corev1.VolumeAvailable), freed), nil, false},
		"a member has the promise":                                                  {promise(in(corev1.VolumeReleased), placed), claimed("root", "other"), false},
		"a mirrored volume, not a promise":                                          {mirrored(in(corev1.VolumeReleased)), claimed("root", "other"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stepFor(t, tc.pv, tc.claim) == lifecycle.DropPromise; got != tc.want {
				t.Errorf("superseded: %t, want %t", got, tc.want)
			}
			if tc.want && !mayNeedStep(tc.pv) {
				t.Error("the promise's events are ignored")
			}
		})
	}
}

// reads serves live reads of one claim and one PV.
type reads struct {
	client.Reader
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
	err    error
}

func (r reads) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.PersistentVolume:
		if r.volume != nil {
			r.volume.DeepCopyInto(into)
			return r.err
		}
	case *corev1.PersistentVolumeClaim:
		if r.claim != nil {
			r.claim.DeepCopyInto(into)
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

// A promise is deleted only if live reads show that it is unchanged and that no claim needs it.
func TestPromiseDeletionIsLive(t *testing.T) {
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		pv   *corev1.PersistentVolume
		live func(*reads)
		want error
	}{
		"the claim is gone":                             {promise(in(corev1.VolumeReleased)), func(*reads) {}, errWrite},
		"the claim exists":                              {promise(in(corev1.VolumeReleased)), func(r *reads) { r.claim = claimed("root", hostpv.PromiseName("root")) }, nil},
		"the claim is not bound yet":                    {promise(in(corev1.VolumeReleased)), func(r *reads) { r.claim = claimed("root", "") }, nil},
		"the claim has another volume":                  {promise(in(corev1.VolumeReleased)), func(r *reads) { r.claim = claimed("root", "other") }, errWrite},
		"another claim now has the claim's name":        {promise(in(corev1.VolumeReleased)), func(r *reads) { r.claim = claimed("next", "") }, errWrite},
		"freed, and another claim requests the promise": {promise(in(corev1.VolumeAvailable), noUID), func(r *reads) { r.claim = claimed("next", hostpv.PromiseName("root")) }, nil},
		"the promise has changed":                       {promise(in(corev1.VolumeReleased)), func(r *reads) { r.volume.ResourceVersion = "9" }, nil},
		"the promise was re-created":                    {promise(in(corev1.VolumeReleased)), func(r *reads) { r.volume.UID = "newer" }, nil},
		"the promise is gone":                           {promise(in(corev1.VolumeReleased)), func(r *reads) { r.volume = nil }, nil},
		"the host does not respond":                     {promise(in(corev1.VolumeReleased)), func(r *reads) { r.err = down }, down},
	} {
		t.Run(name, func(t *testing.T) {
			tc.pv.UID = "promise"
			live := &reads{volume: tc.pv.DeepCopy()}
			tc.live(live)
			r := &Reconciler{Client: writes{}, Live: live}
			if err := r.executeStep(t.Context(), tc.pv, lifecycle.DropPromise); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}

func TestOfClaim(t *testing.T) {
	there, down := reads{volume: promise()}, reads{err: errors.New("the cache fails")}
	for name, tc := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		cache reads
		want  string
	}{
		"not bound":                        {claimed("root", ""), there, ""},
		"bound to the claim's own promise": {claimed("root", hostpv.PromiseName("root")), there, ""},
		"bound to another volume":          {claimed("root", hostpv.PromiseName("earlier")), there, hostpv.PromiseName("root")},
		"bound to another volume, and the claim has no promise":   {claimed("root", "disk"), reads{}, ""},
		"bound to another volume, and the promise cannot be read": {claimed("root", "disk"), down, hostpv.PromiseName("root")},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, request := range claimToRequests(tc.cache)(t.Context(), tc.claim) {
				got += request.Name
			}
			if got != tc.want {
				t.Errorf("enqueues %q, want %q", got, tc.want)
			}
		})
	}
}

var errRecord = errors.New("the record was written")

// recording rejects every write, and tells a record from other writes.
type recording struct{ writes }

func (recording) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errRecord
}

// If no finalizer keeps an abandoned PV, nothing names the disk after its deletion, so the record comes
// first. Otherwise, it follows with the removal of the finalizer.
func TestAbandonedIsRecordedFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		pv   *corev1.PersistentVolume
		want error
	}{
		"Xylem's finalizer keeps the PV":             {mirrored(in(corev1.VolumeReleased)), errWrite},
		"the record of a member's copy keeps it":     {hostpv.VolumeWithCopyIn(mirrored(in(corev1.VolumeReleased), withoutFinalizer), "id39"), errWrite},
		"its cluster was deregistered: nothing does": {mirrored(in(corev1.VolumeReleased), withoutFinalizer), errRecord},
	} {
		t.Run(name, func(t *testing.T) {
			tc.pv.UID = "uid"
			live := reads{volume: tc.pv}
			r := &Reconciler{
				Client: recording{}, Live: live,
				Records: &fencing.HostRecords{Live: live, Namespace: "xylem-system", Clock: clock.RealClock{}},
			}
			if err := r.executeStep(t.Context(), tc.pv, lifecycle.DeleteHost); !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
		})
	}
}
