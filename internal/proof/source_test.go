package proof

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// clusterWithSource is a reader that returns single objects by type and name.
type clusterWithSource struct {
	client.Reader
	objects map[string]client.Object
	fails   error
}

func clusterOf(objects ...client.Object) *clusterWithSource {
	c := &clusterWithSource{objects: map[string]client.Object{}}
	for _, obj := range objects {
		c.objects[fmt.Sprintf("%T %s", obj, client.ObjectKeyFromObject(obj))] = obj
	}
	return c
}

func (c *clusterWithSource) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if c.fails != nil {
		return c.fails
	}
	found := c.objects[fmt.Sprintf("%T %s", into, key)]
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

// scene contains a claim "copy", recorded as a clone of claim "golden", and the related objects in
// both clusters.
type scene struct {
	root, golden, leaf *corev1.PersistentVolumeClaim
	host, disk         *corev1.PersistentVolume
}

// A member finds a clone's source by name. So Xylem creates a clone only if the object with that
// name is the leaf of the recorded root, and is bound to the recorded volume.
func TestSourceHere(t *testing.T) {
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		change     func(*scene)
		host, leaf error
		proven     bool
		err        error
	}{
		"the source matches the record": {change: func(*scene) {}, proven: true},
		"no data source":                {change: func(s *scene) { s.root.Spec.DataSource = nil }},
		"the source is not recorded":    {change: func(s *scene) { s.root.Annotations = nil }},
		"recorded in another member":    {change: func(s *scene) { s.root.Annotations[v1alpha1.AnnotationSource] = "id39/golden-uid" }},
		"not found in the host":         {change: func(s *scene) { s.golden.Name = "gone" }},
		"gone, but its disk is kept for a promise": {change: func(s *scene) {
			s.golden.Name, s.host.Status.Phase, s.root.Spec.VolumeName = "gone", corev1.VolumeReleased, hostpv.PromiseName("copy-uid")
		}, proven: true},
		"gone, and the claim is Pending": {change: func(s *scene) { s.golden.Name, s.host.Status.Phase = "gone", corev1.VolumeReleased }},
		"re-created, but its disk is kept for a promise": {change: func(s *scene) {
			s.golden.UID, s.host.Status.Phase, s.root.Spec.VolumeName = "newer", corev1.VolumeReleased, hostpv.PromiseName("copy-uid")
		}, proven: true},
		"gone, and its disk belongs to another claim": {change: func(s *scene) {
			s.golden.Name, s.host.Status.Phase, s.host.Spec.ClaimRef.UID = "gone", corev1.VolumeReleased, "newer"
		}},
		"re-created in the host":                {change: func(s *scene) { s.golden.UID, s.host.Spec.ClaimRef.UID = "newer", "newer" }},
		"being deleted in the host":             {change: func(s *scene) { s.golden.DeletionTimestamp = &metav1.Time{} }},
		"not bound in the host":                 {change: func(s *scene) { s.golden.Spec.VolumeName = "" }},
		"the host PV does not exist":            {change: func(s *scene) { s.host.Name = "gone" }},
		"no leaf in the member":                 {change: func(s *scene) { s.leaf.Name = "gone" }},
		"a foreign claim in the member":         {change: func(s *scene) { s.leaf.Labels = nil }},
		"a newer root's leaf in the member":     {change: func(s *scene) { s.leaf.Annotations[v1alpha1.AnnotationRootUID] = "newer" }},
		"the leaf is stamped for another claim": {change: func(s *scene) { s.leaf.Annotations[v1alpha1.AnnotationRoot] = "shop/other" }},
		"being deleted in the member":           {change: func(s *scene) { s.leaf.DeletionTimestamp = &metav1.Time{} }},
		"not bound in the member":               {change: func(s *scene) { s.leaf.Status.Phase = corev1.ClaimPending }},
		"bound to another volume in the member": {change: func(s *scene) { s.leaf.Spec.VolumeName = "pv-2" }},
		"no leaf volume in the member":          {change: func(s *scene) { s.disk.Name = "gone" }},
		"a replaced leaf volume in the member":  {change: func(s *scene) { s.disk.UID = "newer" }},
		"the host does not respond":             {change: func(*scene) {}, host: down, err: down},
		"the member does not respond":           {change: func(*scene) {}, leaf: down, err: down},
	} {
		t.Run(name, func(t *testing.T) {
			s := sourceScene()
			tc.change(&s)
			hosts, leaves := clusterOf(s.golden, s.host), clusterOf(s.leaf, s.disk)
			hosts.fails, leaves.fails = tc.host, tc.leaf
			verifySource(t, s.root, hosts, leaves, tc.proven, tc.err)
		})
	}
}

// verifySource runs ProveSourceHere for a claim whose data source has UID golden-uid.
func verifySource(t *testing.T, root *corev1.PersistentVolumeClaim, hosts, leaves *clusterWithSource, want bool, wantErr error) {
	t.Helper()
	uid, proven, err := ProveSourceHere(t.Context(), Prover{Member: here, Host: hosts, HostLive: hosts, Live: leaves}, root)
	if proven != want || !errors.Is(err, wantErr) || proven && uid != "golden-uid" {
		t.Errorf("proven %t for %q, error %v; want %t, error %v", proven, uid, err, want, wantErr)
	}
}

func sourceScene() scene {
	named := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	}
	s := scene{root: named("copy"), golden: named("golden"), leaf: named("golden"), disk: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-1"}}}
	s.root.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "golden"}
	s.root.Annotations = map[string]string{v1alpha1.AnnotationSource: here.ClusterID + "/golden-uid"}
	s.golden.UID = "golden-uid"
	for _, claim := range []*corev1.PersistentVolumeClaim{s.golden, s.leaf} {
		claim.Spec.VolumeName, claim.Status.Phase = "pv-1", corev1.ClaimBound
	}
	mirror.OriginForRoot(here.HostID, s.golden).StampLeaf(s.leaf)
	s.disk.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}
	s.host = hostpv.TranslateVolume(s.disk, s.golden, corev1.PersistentVolumeReclaimDelete, here)
	return s
}
