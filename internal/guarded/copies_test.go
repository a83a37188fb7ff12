package guarded

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/proof"
)

// copied adds the stamp of a copy.
func copied(m *metav1.ObjectMeta) {
	mirror.VolumeCopy{HostID: hostID, Volume: "pv-1", VolumeUID: "host-uid", ClaimUID: "root-uid"}.StampCopy(m)
}

// copyVolume returns the PV of a copy.
func copyVolume(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := volume(corev1.PersistentVolumeReclaimRetain, copied)
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "nfs.example.com", VolumeHandle: "export-1"}
	for _, f := range change {
		f(pv)
	}
	return pv
}

func TestCreateCopy(t *testing.T) {
	for name, tc := range map[string]struct {
		object client.Object
		ok     bool
	}{
		"a claim":                  {claim(copied), true},
		"a claim that names no PV": {func() client.Object { c := claim(copied); c.Spec.VolumeName = ""; return c }(), false},
		"a claim without a stamp":  {claim(), false},
		"a claim with an Origin":   {claim(stamped), false},
		"a claim with both stamps": {claim(copied, stamped), false},
		"a claim of another host":  {claim(copied, func(m *metav1.ObjectMeta) { m.Labels[v1alpha1.LabelHost] = "other" }), false},
		"a PV":                     {copyVolume(), true},
		"a PV with policy Delete": {copyVolume(func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}), false},
		"a PV with policy Recycle": {copyVolume(func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRecycle
		}), false},
		"a PV without a policy":      {copyVolume(func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = "" }), false},
		"a PV without a claimRef":    {copyVolume(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }), false},
		"a PV without a claim's UID": {copyVolume(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" }), false},
		"a PV without a CSI source":  {copyVolume(func(pv *corev1.PersistentVolume) { pv.Spec.CSI = nil }), false},
		"a PV without a stamp":       {copyVolume(func(pv *corev1.PersistentVolume) { pv.Labels = nil }), false},
		"neither a claim nor a PV":   {&corev1.Pod{ObjectMeta: meta("data", copied)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := NewMemberWriter(touched{}, hostID, "cluster38", open).CreateVolumeCopy(t.Context(), actor, tc.object)
			if tc.ok && !errors.Is(err, errTouched) || !tc.ok && !errors.Is(err, ErrForeign) {
				t.Errorf("got %v, want success: %t", err, tc.ok)
			}
			if err := NewMemberWriter(untouchable{}, hostID, "cluster38", fenced).CreateVolumeCopy(t.Context(), actor, tc.object); err == nil {
				t.Error("a fenced manager created an object")
			}
		})
	}
}

// missing is a reader of a cluster without objects.
type missing struct{ client.Reader }

func (missing) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// obsolete proves that the host PV of a copy is gone.
func obsolete(t *testing.T, object *corev1.PersistentVolumeClaim) proof.CopyObsolete {
	t.Helper()
	p := proof.Prover{Member: mirror.Member{HostID: hostID}, HostLive: missing{}, Live: missing{}, Clock: clock.RealClock{}}
	e, proven, err := proof.ProveCopyClaimObsolete(t.Context(), p, object)
	if err != nil || !proven {
		t.Fatalf("proven: %t, %v", proven, err)
	}
	return e
}

func TestDeleteCopy(t *testing.T) {
	for name, tc := range map[string]struct {
		object   client.Object
		guard    guard
		evidence func(t *testing.T) proof.CopyObsolete
		want     error
	}{
		"the evidence covers it": {claim(copied), open, func(t *testing.T) proof.CopyObsolete { return obsolete(t, claim(copied)) }, errTouched},
		"no evidence":            {claim(copied), open, func(*testing.T) proof.CopyObsolete { return proof.CopyObsolete{} }, proof.ErrUnproven},
		"the evidence is for another claim": {claim(copied), open, func(t *testing.T) proof.CopyObsolete {
			return obsolete(t, claim(copied, func(m *metav1.ObjectMeta) { m.UID = "another" }))
		}, proof.ErrUnproven},
		"the manager is fenced":                {claim(copied), fenced, func(t *testing.T) proof.CopyObsolete { return obsolete(t, claim(copied)) }, ErrFenced},
		"destruction is suspended":             {claim(copied), suspended, func(t *testing.T) proof.CopyObsolete { return obsolete(t, claim(copied)) }, ErrSuspended},
		"the host was restored meanwhile":      {claim(copied), restored, func(t *testing.T) proof.CopyObsolete { return obsolete(t, claim(copied)) }, ErrSuspended},
		"a leaf claim, which is not a copy":    {claim(stamped), open, func(t *testing.T) proof.CopyObsolete { return obsolete(t, claim(copied)) }, ErrForeign},
		"an object that belongs to the member": {claim(), open, func(t *testing.T) proof.CopyObsolete { return obsolete(t, claim(copied)) }, ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewMemberWriter(touched{}, hostID, "cluster38", tc.guard)
			e := tc.evidence(t)
			if err := l.DeleteVolumeCopy(t.Context(), tc.object, e); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if errors.Is(tc.want, errTouched) {
				if err := l.DeleteVolumeCopy(t.Context(), tc.object, e); !errors.Is(err, proof.ErrUnproven) {
					t.Errorf("on the second use, error is %v, want ErrUnproven", err)
				}
			}
		})
	}
}

// RetainVolumeCopy changes only the policy of a copy, and only if the copy has not changed since it was read.
func TestRetainCopy(t *testing.T) {
	deleted := func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	}
	seen := &recordedPatch{}
	if err := NewMemberWriter(seen, hostID, "cluster38", open).RetainVolumeCopy(t.Context(), actor, copyVolume(deleted)); err != nil {
		t.Fatal(err)
	}
	const want = `{"metadata":{"resourceVersion":"7","uid":"uid"},"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`
	if seen.body != want {
		t.Errorf("the patch is %s, want %s", seen.body, want)
	}
	for name, pv := range map[string]*corev1.PersistentVolume{
		"a leaf PV":                volume(corev1.PersistentVolumeReclaimDelete, stamped),
		"a foreign PV":             volume(corev1.PersistentVolumeReclaimDelete),
		"a copy of another host's": copyVolume(deleted, func(pv *corev1.PersistentVolume) { pv.Labels[v1alpha1.LabelHost] = "other" }),
	} {
		if err := NewMemberWriter(untouchable{}, hostID, "cluster38", open).RetainVolumeCopy(t.Context(), actor, pv); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v, want ErrForeign", name, err)
		}
	}
	if err := NewMemberWriter(untouchable{}, hostID, "cluster38", fenced).RetainVolumeCopy(t.Context(), actor, copyVolume(deleted)); !errors.Is(err, ErrFenced) {
		t.Errorf("a fenced manager: %v, want ErrFenced", err)
	}
}

// recordedPatch is a client that records the body of a patch.
type recordedPatch struct {
	client.Client
	body string
}

func (r *recordedPatch) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(obj)
	r.body = string(body)
	return err
}

// The other methods do not write to a copy.
func TestCopyIsNotALeaf(t *testing.T) {
	l := NewMemberWriter(untouchable{}, hostID, "cluster38", open)
	pv := copyVolume()
	for name, write := range map[string]func(context.Context) error{
		"Create":      func(ctx context.Context) error { return l.CreateStamped(ctx, actor, claim(copied)) },
		"Patch":       func(ctx context.Context) error { return l.PatchStamped(ctx, actor, claim(copied), claim(copied)) },
		"Delete":      func(ctx context.Context) error { return l.DeleteStamped(ctx, claim(copied)) },
		"DeleteClaim": func(ctx context.Context) error { return l.DeleteClaim(ctx, claim(copied), proof.KeepingVolume{}) },
		"SetDelete": func(ctx context.Context) error {
			_, err := l.SetVolumePolicyDelete(ctx, actor, pv, proof.DataUnneeded{}, proof.DestroyingVolume{})
			return err
		},
		"PatchVolume": func(ctx context.Context) error { return l.PatchLeafVolume(ctx, actor, pv, pv, claim(copied)) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := write(t.Context()); !errors.Is(err, ErrForeign) {
				t.Errorf("got %v, want ErrForeign", err)
			}
		})
	}
}

// A copy is deleted only if it has not changed since it was read.
func TestDeleteCopyHasPreconditions(t *testing.T) {
	seen := &recordedDelete{}
	object := claim(copied)
	if err := NewMemberWriter(seen, hostID, "cluster38", open).DeleteVolumeCopy(t.Context(), object, obsolete(t, object)); err != nil {
		t.Fatal(err)
	}
	if p := seen.options.Preconditions; p == nil || p.UID == nil || *p.UID != "uid" || p.ResourceVersion == nil || *p.ResourceVersion != "7" {
		t.Errorf("preconditions are %v", p)
	}
}

// recordedDelete is a client that records the options of a delete request.
type recordedDelete struct {
	client.Client
	options client.DeleteOptions
}

func (r *recordedDelete) Delete(_ context.Context, _ client.Object, options ...client.DeleteOption) error {
	r.options.ApplyOptions(options)
	return nil
}
