package proof

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
	"github.com/xylem-io/xylem/internal/mirror"
)

// pagedVolumes is a host that lists its PVs on one or two pages.
type pagedVolumes struct {
	client.Reader
	volumes     [][]corev1.PersistentVolume
	secondFails error
}

func (p pagedVolumes) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	list, ok := into.(*corev1.PersistentVolumeList)
	switch {
	case !ok:
		return errors.New("only PVs are listed")
	case o.Continue == "":
		list.Items = p.volumes[0]
		if len(p.volumes) > 1 {
			list.Continue = "second"
		}
		return nil
	}
	list.Items, list.Continue = p.volumes[1], ""
	return p.secondFails
}

func TestSoleImport(t *testing.T) {
	down := errors.New("connection refused")
	asks := func(uid types.UID, handle string) corev1.PersistentVolume {
		pv := corev1.PersistentVolume{}
		pv.Name, pv.UID = string(uid), uid
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.ProvisionerName, VolumeHandle: handle}
		return pv
	}
	fulfilled := asks("promise", "mock-vol-1")
	fulfilled.Spec.CSI.Driver, fulfilled.Annotations = v1alpha1.PromiseDriverName, map[string]string{v1alpha1.AnnotationVolume: "id38/disk-7"}
	first := asks("first", "id38/disk-7")
	for name, tc := range map[string]struct {
		host pagedVolumes
		sole bool
		err  error
	}{
		"the only import":                    {pagedVolumes{volumes: [][]corev1.PersistentVolume{{first}, {asks("other", "id38/disk-8"), asks("there", "id39/disk-7")}}}, true, nil},
		"a second import on the second page": {pagedVolumes{volumes: [][]corev1.PersistentVolume{{first}, {asks("second", "id38/disk-7")}}}, false, nil},
		"a promise records the leaf PV":      {pagedVolumes{volumes: [][]corev1.PersistentVolume{{first, fulfilled}}}, false, nil},
		"the second page fails":              {pagedVolumes{volumes: [][]corev1.PersistentVolume{{first}, {}}, secondFails: down}, false, down},
	} {
		t.Run(name, func(t *testing.T) {
			p := Prover{Member: mirror.Member{ClusterID: "id38"}, HostLive: tc.host, RecordedLeaves: &SharedReads[struct{}, map[string][]types.UID]{}}
			sole, err := ProveSoleImport(t.Context(), p, &first, "disk-7")
			if sole != tc.sole || !errors.Is(err, tc.err) {
				t.Errorf("got %t, %v; want %t, %v", sole, err, tc.sole, tc.err)
			}
		})
	}
}

// clusterWithLeaf is a reader of a few PVs and at most one claim.
type clusterWithLeaf struct {
	client.Reader
	volumes []*corev1.PersistentVolume
	claim   *corev1.PersistentVolumeClaim
	fails   error
}

func (c clusterWithLeaf) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if c.fails != nil {
		return c.fails
	}
	switch into := into.(type) {
	case *corev1.PersistentVolume:
		for _, pv := range c.volumes {
			if pv.Name == key.Name {
				pv.DeepCopyInto(into)
				return nil
			}
		}
	case *corev1.PersistentVolumeClaim:
		if c.claim != nil && client.ObjectKeyFromObject(c.claim) == key {
			c.claim.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// A claim gets an earlier claim's volume only if live reads show that it still requests the volume, and
// that nothing else uses it.
func TestRequestedVolumes(t *testing.T) {
	here, down := mirror.Member{HostID: "h0", ClusterID: "id38"}, errors.New("connection refused")
	asks := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "later-root"}}
	asks.Spec.VolumeName = "disk-7"
	asksFor := func(change func(*corev1.PersistentVolumeClaim)) clusterWithLeaf {
		claim := asks.DeepCopy()
		change(claim)
		return clusterWithLeaf{claim: claim}
	}
	leafClaim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "leaf-claim"}}
	leaf := func(phase corev1.PersistentVolumePhase, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk-7", UID: "leaf-uid"}}
		pv.Spec.ClaimRef, pv.Status.Phase = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "leaf-claim"}, phase
		mirror.Origin{HostID: "h0", Root: client.ObjectKeyFromObject(asks), UID: "earlier-root"}.StampLeaf(pv)
		for _, f := range change {
			f(pv)
		}
		return pv
	}
	in := func(pv *corev1.PersistentVolume) clusterWithLeaf {
		return clusterWithLeaf{volumes: []*corev1.PersistentVolume{pv}}
	}
	released, bound := in(leaf(corev1.VolumeReleased)), in(leaf(corev1.VolumeBound))
	for name, tc := range map[string]struct {
		host, member     clusterWithLeaf
		released, leaves bool
		err              error
	}{
		"the volume is released":                  {host: clusterWithLeaf{claim: asks}, member: released, released: true, leaves: true},
		"the earlier leaf claim is bound to it":   {host: clusterWithLeaf{claim: asks}, member: bound, leaves: true},
		"another leaf claim is bound to it":       {host: clusterWithLeaf{claim: asks}, member: in(leaf(corev1.VolumeBound, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "newer" }))},
		"the volume is free":                      {host: clusterWithLeaf{claim: asks}, member: in(leaf(corev1.VolumeAvailable, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }))},
		"the volume was re-created":               {host: clusterWithLeaf{claim: asks}, member: in(leaf(corev1.VolumeReleased, func(pv *corev1.PersistentVolume) { pv.UID = "newer" }))},
		"the volume is gone":                      {host: clusterWithLeaf{claim: asks}},
		"the claim is gone":                       {member: released},
		"the claim was re-created":                {host: asksFor(func(c *corev1.PersistentVolumeClaim) { c.UID = "newest" }), member: released},
		"the claim requests another volume":       {host: asksFor(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "disk-8" }), member: released},
		"a host PV has the name that it requests": {host: clusterWithLeaf{claim: asks, volumes: []*corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "disk-7"}}}}, member: released, released: true},
		"the host does not respond":               {host: clusterWithLeaf{fails: down}, member: released, err: down},
		"the member does not respond":             {host: clusterWithLeaf{claim: asks}, member: clusterWithLeaf{fails: down}, err: down},
	} {
		t.Run(name, func(t *testing.T) {
			p := Prover{Member: here, HostLive: tc.host, Live: tc.member}
			if got, err := ProveLeafReleasedFor(t.Context(), p, asks, leaf(corev1.VolumeReleased)); got != tc.released || !errors.Is(err, tc.err) {
				t.Errorf("ReleasedFor returned %t, %v; want %t, %v", got, err, tc.released, tc.err)
			}
			if got, err := ProveLeafClaimFor(t.Context(), p, asks, leafClaim, leaf(corev1.VolumeBound)); got != tc.leaves || !errors.Is(err, tc.err) {
				t.Errorf("LeafClaimFor returned %t, %v; want %t, %v", got, err, tc.leaves, tc.err)
			}
		})
	}
}
