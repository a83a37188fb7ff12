package observe

import (
	"cmp"
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

var here = mirror.Member{Registration: "cluster38", ClusterID: "id38", NodeName: "kosmos-cluster38", HostID: "host-id"}

// arriving is a cache whose objects appear after the first list.
type arriving struct {
	client.Reader
	volumes    []*corev1.PersistentVolume
	claims     []*corev1.PersistentVolumeClaim
	namespaces []*corev1.Namespace
}

func (arriving) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (a arriving) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	found := false
	switch into := into.(type) {
	case *corev1.PersistentVolume:
		found = copyNamed(a.volumes, key, into)
	case *corev1.PersistentVolumeClaim:
		found = copyNamed(a.claims, key, into)
	case *corev1.Namespace:
		found = copyNamed(a.namespaces, key, into)
	}
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return nil
}

func copyNamed[T any, P interface {
	*T
	client.Object
	DeepCopyInto(*T)
}](from []P, key client.ObjectKey, into P) bool {
	for _, obj := range from {
		if client.ObjectKeyFromObject(obj) == key {
			obj.DeepCopyInto(into)
			return true
		}
	}
	return false
}

// observer returns an Observer of a leaf PV that is ready to be mirrored, and of the given host
// PVs.
func observer(root *corev1.PersistentVolumeClaim, leaf *corev1.PersistentVolume, hosts ...*corev1.PersistentVolume) Observer {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "leaf-claim-uid"},
		Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: leaf.Name},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
	mirror.OriginForRoot(here.HostID, root).StampLeaf(claim)
	return Observer{Prover: proof.Prover{
		Member: here, MayBeRestored: func(metav1.Object) bool { return false }, MayLackRoot: func(metav1.Object) bool { return false },
		Host: arriving{volumes: hosts, claims: []*corev1.PersistentVolumeClaim{root},
			namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "namespace-uid"}}}},
		Cache: arriving{volumes: []*corev1.PersistentVolume{leaf}, claims: []*corev1.PersistentVolumeClaim{claim}},
	}}
}

func rootClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid", Annotations: map[string]string{v1alpha1.AnnotationPlacedIn: here.ClusterID}},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("disk")},
	}
}

// heldLeaf returns a stamped leaf PV with policy Retain.
func heldLeaf() *corev1.PersistentVolume {
	leaf := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-uid", Annotations: map[string]string{
			v1alpha1.AnnotationReclaimPolicy: string(corev1.PersistentVolumeReclaimDelete), v1alpha1.AnnotationNamespaceUID: "namespace-uid"}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "leaf-claim-uid"},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	mirror.OriginForRoot(here.HostID, rootClaim()).StampLeaf(leaf)
	return leaf
}

// A host PV that this process has just created may appear in the cache between two lookups. That
// host PV is the leaf's own mirror, and Xylem does not create a second one with another name.
func TestOneHostVolumeForALeaf(t *testing.T) {
	for name, collides := range map[string]bool{"the leaf PV's name": false, "the suffixed name": true} {
		t.Run(name, func(t *testing.T) {
			host := hostpv.TranslateVolume(heldLeaf(), rootClaim(), corev1.PersistentVolumeReclaimDelete, here)
			host.Name = hostpv.HostVolumeName("pv-1", here.ClusterID, collides)
			s, err := observer(rootClaim(), heldLeaf(), host).ObserveLeafVolume(t.Context(), "pv-1")
			if err != nil {
				t.Fatal(err)
			}
			if s.Host == nil {
				t.Fatal("the host PV was not recognized as the leaf's mirror")
			}
			if step := lifecycle.NextPlan(s).Step; step == lifecycle.CreateHost {
				t.Error("Xylem would create a second mirror")
			}
		})
	}
}

func TestForeignVolumeTakesTheName(t *testing.T) {
	other := hostpv.TranslateVolume(heldLeaf(), rootClaim(), corev1.PersistentVolumeReclaimDelete, here)
	other.Spec.CSI.VolumeHandle, other.Labels = "elsewhere/pv-1", nil
	s, err := observer(rootClaim(), heldLeaf(), other).ObserveLeafVolume(t.Context(), "pv-1")
	if err != nil {
		t.Fatal(err)
	}
	if s.Host != nil || !s.PlainNameTaken || s.SuffixedNameTaken {
		t.Errorf("host %v, name taken %v, suffixed name taken %v; want no host PV, and only the name taken", s.Host, s.PlainNameTaken, s.SuffixedNameTaken)
	}
	if step := lifecycle.NextPlan(s).Step; step != lifecycle.CreateHost {
		t.Errorf("step %q is next, want %q", step, lifecycle.CreateHost)
	}
}

// A stamp has no date. It names a claim that a restored host may have lost only if the host PV's claim
// may be from the backup, too.
func TestLastClaimLost(t *testing.T) {
	restored := time.Unix(1000, 0)
	before, after := metav1.NewTime(restored.Add(-time.Hour)), metav1.NewTime(restored.Add(time.Hour))
	for name, tc := range map[string]struct {
		stamped          *corev1.PersistentVolumeClaim
		leaf             metav1.Time
		root             *metav1.Time // nil if the root is gone
		exists, restored bool
		phase            corev1.PersistentVolumePhase
		edit             func(host *corev1.PersistentVolume)
		want             bool
	}{
		"a claim from the backup is bound to it":  {stamped: other(), leaf: before, root: &before, restored: true, want: true},
		"a claim from the backup was bound to it": {stamped: other(), leaf: before, restored: true, phase: corev1.VolumeReleased, want: true},
		"the claim is not in the cache yet":       {stamped: other(), leaf: before, restored: true},
		"the host PV is free":                     {stamped: other(), leaf: before, restored: true, phase: corev1.VolumeAvailable, edit: func(host *corev1.PersistentVolume) { host.Spec.ClaimRef = nil }, want: true},
		"the host's clock is ahead":               {stamped: other(), leaf: before, root: ptr.To(metav1.NewTime(restored.Add(mirror.MaxClockSkew / 2))), restored: true, want: true},
		"Xylem has retained it for this reason": {stamped: other(), leaf: before, restored: true, phase: corev1.VolumeReleased, edit: func(host *corev1.PersistentVolume) {
			metav1.SetMetaDataAnnotation(&host.ObjectMeta, v1alpha1.AnnotationLastClaimLost, string(other().UID))
		}},
		"it was freed after the restore":               {stamped: other(), leaf: before, root: &after, restored: true},
		"it was created after the restore":             {stamped: other(), leaf: after, root: &after, restored: true},
		"the host was not restored":                    {stamped: other(), leaf: before, root: &before},
		"the stamp names the host PV's claim":          {stamped: rootClaim(), leaf: before, root: &before, restored: true},
		"the other claim exists":                       {stamped: other(), leaf: before, root: &before, exists: true, restored: true},
		"it was adopted, and no claim has used it yet": {leaf: before, root: &before, restored: true},
	} {
		t.Run(name, func(t *testing.T) {
			root, leaf := rootClaim(), heldLeaf()
			leaf.CreationTimestamp = tc.leaf
			leaf.Spec.ClaimRef.UID = "deleted"
			host := hostpv.TranslateVolume(leaf, root, corev1.PersistentVolumeReclaimDelete, here)
			host.Status.Phase = cmp.Or(tc.phase, corev1.VolumeBound)
			if tc.edit != nil {
				tc.edit(host)
			}
			if tc.stamped == nil {
				hostpv.OriginForImport(host, here.HostID).StampLeaf(leaf)
			} else {
				mirror.OriginForRoot(here.HostID, tc.stamped).StampLeaf(leaf)
			}
			var claims []*corev1.PersistentVolumeClaim
			if tc.root != nil {
				root.CreationTimestamp = *tc.root
				claims = append(claims, root)
			}
			if tc.exists {
				claims = append(claims, tc.stamped)
			}
			o := observer(rootClaim(), leaf)
			in := o.Host.(arriving)
			in.claims = claims
			o.Host = indexed{in, []corev1.PersistentVolume{*host}}
			o.Cache = arriving{volumes: []*corev1.PersistentVolume{leaf}}
			o.MayLackRoot = func(obj metav1.Object) bool { return tc.restored && !obj.GetCreationTimestamp().After(restored) }
			s, err := o.ObserveLeafVolume(t.Context(), leaf.Name)
			if err != nil {
				t.Fatal(err)
			}
			if s.Host == nil || s.LastClaimMayBeLost != tc.want {
				t.Errorf("the last claim may be lost: %t, want %t; host PV %v", s.LastClaimMayBeLost, tc.want, s.Host)
			}
			if step := lifecycle.NextPlan(s).Step; (step == lifecycle.UpdateHost) != tc.want {
				t.Errorf("step %q is next", step)
			}
		})
	}
}

// other is the claim that used a volume after an admin had freed it.
func other() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "later", UID: "later-uid"}}
}

// indexed is a cache that lists host PVs.
type indexed struct {
	arriving
	listed []corev1.PersistentVolume
}

func (i indexed) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if list, ok := into.(*corev1.PersistentVolumeList); ok {
		list.Items = i.listed
	}
	return nil
}
