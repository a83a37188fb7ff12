package account

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// volumesAnd is a reader that returns the given PVs and claim.
type volumesAnd struct {
	client.Reader
	volumes map[string]*corev1.PersistentVolume
	claim   *corev1.PersistentVolumeClaim
	lists   int
	err     error
}

func (r *volumesAnd) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	r.lists++
	if pvs, ok := list.(*corev1.PersistentVolumeList); ok {
		for _, pv := range r.volumes {
			pvs.Items = append(pvs.Items, *pv)
		}
	}
	return r.err
}

func (r *volumesAnd) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.PersistentVolume:
		if pv := r.volumes[key.Name]; pv != nil {
			pv.DeepCopyInto(into)
			return r.err
		}
	case *corev1.PersistentVolumeClaim:
		if r.claim != nil && r.claim.Name == key.Name {
			r.claim.DeepCopyInto(into)
			return r.err
		}
	}
	if r.err != nil {
		return r.err
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

var root = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root"}}

func hostVolume(name string, claim types.UID, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PersistentVolumeStatus{Phase: phase}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.ProvisionerName}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: claim}
	return pv
}

// One live list finds the PVs that an earlier process created, even if the cache still lacks them.
func TestMirrorsOfEarlierProcesses(t *testing.T) {
	bound := root.DeepCopy()
	bound.Spec.VolumeName = "pv-1"
	for name, tc := range map[string]struct {
		pv    *corev1.PersistentVolume
		claim *corev1.PersistentVolumeClaim // as in the cache
		want  string
	}{
		"none":                                  {pv: hostVolume("pv-1", "other", corev1.VolumeAvailable)},
		"volume and claim are not bound yet":    {pv: hostVolume("pv-1", "root", corev1.VolumeAvailable), want: "pv-1"},
		"the volume is Bound, the claim is not": {pv: hostVolume("pv-1", "root", corev1.VolumeBound), want: "pv-1"},
		"volume and claim are bound":            {pv: hostVolume("pv-1", "root", corev1.VolumeBound), claim: bound, want: "pv-1"},
		"the claim is bound to another volume":  {pv: hostVolume("pv-2", "root", corev1.VolumeAvailable), claim: bound, want: "pv-2"},
		"released":                              {pv: hostVolume("pv-1", "root", corev1.VolumeReleased)},
		"the volume belongs to another driver": {pv: func() *corev1.PersistentVolume {
			pv := hostVolume("pv-1", "root", corev1.VolumeAvailable)
			pv.Spec.CSI.Driver = "disk.example.com"
			return pv
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			live := &volumesAnd{volumes: map[string]*corev1.PersistentVolume{tc.pv.Name: tc.pv}}
			m := NewMirrorTracker(&volumesAnd{claim: tc.claim}, live)
			for range 2 {
				if got, err := m.HostVolumeFor(t.Context(), root); got != tc.want || err != nil {
					t.Errorf("got %q, %v; want %q", got, err, tc.want)
				}
			}
			if live.lists != 1 {
				t.Errorf("%d lists", live.lists)
			}
		})
	}
}

// Only one host PV at a time is created for a claim.
func TestMirrorsBegin(t *testing.T) {
	ctx := t.Context()
	live := &volumesAnd{volumes: map[string]*corev1.PersistentVolume{}}
	cache := &volumesAnd{}
	m := NewMirrorTracker(cache, live)
	begin := func(name, want string) func() {
		t.Helper()
		other, end, err := m.BeginCreation(ctx, root, name)
		if other != want || err != nil {
			t.Fatalf("volume %s: got %q, %v; want %q", name, other, err, want)
		}
		return end
	}
	end := begin("pv-1", "")
	m.ForgetClaim("root")
	for _, name := range []string{"pv-1", "pv-2"} {
		if _, _, err := m.BeginCreation(ctx, root, name); err == nil {
			t.Errorf("volume %s can be created while the first one is being created", name)
		}
	}
	live.volumes["pv-1"] = hostVolume("pv-1", "root", corev1.VolumeAvailable)
	end()
	begin("pv-2", "pv-1") // pv-1 exists, and may bind the claim
	begin("pv-1", "")()   // the response was lost, so the controller creates it again for the same leaf
	live.err = errors.New("connection refused")
	if _, _, err := m.BeginCreation(ctx, root, "pv-2"); !errors.Is(err, live.err) {
		t.Errorf("Begin succeeds without a live read: %v", err)
	}
	live.err = nil
	live.volumes["pv-1"].Spec.ClaimRef.UID = "other" // another claim's PV now has the name
	begin("pv-2", "")()
	delete(live.volumes, "pv-2") // an admin deleted it
	begin("pv-3", "")()
	m.ForgetClaim("root")
	cache.claim = root.DeepCopy()
	cache.claim.Spec.VolumeName = "pv-3"
	begin("pv-4", "pv-3") // the caller saw the claim unbound
	if len(m.created) != 0 || live.lists != 1 {
		t.Errorf("%d claims are recorded after %d lists, want none after 1 list", len(m.created), live.lists)
	}
}

func TestMirrorsRequireTheList(t *testing.T) {
	live := &volumesAnd{err: errors.New("connection refused")}
	m := NewMirrorTracker(&volumesAnd{}, live)
	if _, _, err := m.BeginCreation(t.Context(), root, "pv-1"); !errors.Is(err, live.err) {
		t.Errorf("error is %v, want %v", err, live.err)
	}
	live.err = nil
	if other, _, err := m.BeginCreation(t.Context(), root, "pv-1"); other != "" || err != nil {
		t.Errorf("got %q, %v", other, err)
	}
}
