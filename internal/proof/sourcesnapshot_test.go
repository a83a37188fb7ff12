package proof

import (
	"context"
	"errors"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// List returns the objects with the name in the field selector, or all PVs, as a lookup of a claim's PVs
// in the cache.
func (c *clusterWithSource) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	if c.fails != nil {
		return c.fails
	}
	o := (&client.ListOptions{}).ApplyOptions(options)
	name, _ := o.FieldSelector.RequiresExactMatch("metadata.name")
	var found []runtime.Object
	for _, obj := range c.objects {
		same := false
		switch into.(type) {
		case *snapshotv1.VolumeSnapshotList:
			_, same = obj.(*snapshotv1.VolumeSnapshot)
		case *snapshotv1.VolumeSnapshotContentList:
			_, same = obj.(*snapshotv1.VolumeSnapshotContent)
		}
		if pv, is := obj.(*corev1.PersistentVolume); is {
			if _, volumes := into.(*corev1.PersistentVolumeList); volumes {
				found = append(found, pv.DeepCopy())
			}
			continue
		}
		if same && obj.GetName() == name && obj.GetNamespace() == o.Namespace {
			found = append(found, obj.DeepCopyObject())
		}
	}
	return meta.SetList(into, found)
}

// restoreScene contains a claim "copy", recorded as a restore of snapshot "golden", and the related
// objects in both clusters.
type restoreScene struct {
	root              *corev1.PersistentVolumeClaim
	golden, leaf      *snapshotv1.VolumeSnapshot
	content, leafHeld *snapshotv1.VolumeSnapshotContent
}

// A member finds the snapshot to restore by name. So Xylem creates a leaf claim only if the object
// with that name is the leaf of the recorded snapshot, with the recorded content.
func TestSnapshotHere(t *testing.T) {
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		change     func(*restoreScene)
		host, leaf error
		proven     bool
		err        error
	}{
		"the source matches the record": {change: func(*restoreScene) {}, proven: true},
		"the source is not recorded":    {change: func(s *restoreScene) { s.root.Annotations = nil }},
		"recorded in another member":    {change: func(s *restoreScene) { s.root.Annotations[v1alpha1.AnnotationSource] = "id39/golden-uid" }},
		"placed in another member":      {change: func(s *restoreScene) { s.content.Annotations[v1alpha1.AnnotationPlacedIn] = "id39" }},
		"not found in the host":         {change: func(s *restoreScene) { s.golden.Name = "gone" }},
		"re-created in the host":        {change: func(s *restoreScene) { s.golden.UID = "newer" }},
		"being deleted in the host with its content, which Xylem keeps for a promise": {change: func(s *restoreScene) {
			s.golden.DeletionTimestamp, s.content.DeletionTimestamp, s.root.Spec.VolumeName = &metav1.Time{}, &metav1.Time{}, hostpv.PromiseName("copy-uid")
		}, proven: true},
		"being deleted in the host, and its content is gone": {change: func(s *restoreScene) { s.golden.DeletionTimestamp, s.content.Name = &metav1.Time{}, "gone" }},
		"being deleted in the host, but kept for a restore, with its deletion announced": {change: func(s *restoreScene) {
			s.golden.DeletionTimestamp, s.golden.Finalizers = &metav1.Time{}, []string{mirrorsnapshot.FinalizerRestored}
			s.content.Annotations[mirrorsnapshot.AnnBeingDeleted] = "yes"
		}, proven: true},
		"not ready in the host":                     {change: func(s *restoreScene) { s.content.Status.ReadyToUse = ptr.To(false) }},
		"a content with another driver in the host": {change: func(s *restoreScene) { s.content.Spec.Driver = "host.example.com" }},
		"no leaf in the member":                     {change: func(s *restoreScene) { s.leaf.Name = "gone" }},
		"a foreign snapshot in the member":          {change: func(s *restoreScene) { s.leaf.Labels = nil }},
		"a newer root's leaf in the member":         {change: func(s *restoreScene) { s.leaf.Annotations[v1alpha1.AnnotationRootUID] = "newer" }},
		"the leaf is stamped for another snapshot":  {change: func(s *restoreScene) { s.leaf.Annotations[v1alpha1.AnnotationRoot] = "shop/other" }},
		"replaced in the member":                    {change: func(s *restoreScene) { s.leaf.UID = "newer" }},
		"being deleted in the member":               {change: func(s *restoreScene) { s.leaf.DeletionTimestamp = &metav1.Time{} }},
		"bound to another content in the member":    {change: func(s *restoreScene) { s.leaf.Status.BoundVolumeSnapshotContentName = ptr.To("imported") }},
		"no leaf content in the member":             {change: func(s *restoreScene) { s.leafHeld.Name = "gone" }},
		"a replaced leaf content in the member":     {change: func(s *restoreScene) { s.leafHeld.UID = "newer" }},
		"another snapshot's content in the member":  {change: func(s *restoreScene) { s.leafHeld.Annotations[v1alpha1.AnnotationRootUID] = "newer" }},
		"not ready in the member":                   {change: func(s *restoreScene) { s.leafHeld.Status.ReadyToUse = nil }},
		"no handle in the member":                   {change: func(s *restoreScene) { s.leafHeld.Status.SnapshotHandle = nil }},
		"another snapshot's handle in the member":   {change: func(s *restoreScene) { s.leafHeld.Status.SnapshotHandle = ptr.To("s-2") }},
		"the host does not respond":                 {change: func(*restoreScene) {}, host: down, err: down},
		"the member does not respond":               {change: func(*restoreScene) {}, leaf: down, err: down},
	} {
		t.Run(name, func(t *testing.T) {
			s := restored()
			tc.change(&s)
			hosts, leaves := clusterOf(s.golden, s.content), clusterOf(s.leaf, s.leafHeld)
			hosts.fails, leaves.fails = tc.host, tc.leaf
			verifySource(t, s.root, hosts, leaves, tc.proven, tc.err)
		})
	}
}

func restored() restoreScene {
	snapshot := func(uid string) *snapshotv1.VolumeSnapshot {
		return &snapshotv1.VolumeSnapshot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "golden"},
			Status:     &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: ptr.To("snapcontent-" + uid)},
		}
	}
	content := func(of *snapshotv1.VolumeSnapshot, driver string) *snapshotv1.VolumeSnapshotContent {
		return &snapshotv1.VolumeSnapshotContent{
			ObjectMeta: metav1.ObjectMeta{Name: mirrorsnapshot.ContentName(of.UID)},
			Spec: snapshotv1.VolumeSnapshotContentSpec{
				Driver: driver, Source: snapshotv1.VolumeSnapshotContentSource{VolumeHandle: ptr.To("d-1")},
				VolumeSnapshotRef: corev1.ObjectReference{Namespace: "shop", Name: "golden", UID: of.UID},
			},
			Status: &snapshotv1.VolumeSnapshotContentStatus{ReadyToUse: ptr.To(true), SnapshotHandle: ptr.To("s-1")},
		}
	}
	s := restoreScene{root: sourceScene().root, golden: snapshot("golden-uid"), leaf: snapshot("leaf-uid")}
	s.root.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To(mirror.SnapshotGroup), Kind: mirror.SnapshotKind, Name: "golden"}
	s.golden.UID, s.leaf.UID = "golden-uid", "leaf-uid"
	s.content, s.leafHeld = content(s.golden, v1alpha1.ProvisionerName), content(s.leaf, "disk.example.com")
	s.leafHeld.UID = "content-uid"
	s.content.Annotations = map[string]string{
		v1alpha1.AnnotationPlacedIn: here.ClusterID, v1alpha1.AnnotationLeafSnapshotUID: "leaf-uid", v1alpha1.AttributeLeafUID: "content-uid",
		v1alpha1.AttributeHandle: "s-1",
	}
	origin := mirror.OriginForRoot(here.HostID, s.golden)
	origin.StampLeaf(s.leaf)
	origin.StampLeaf(s.leafHeld)
	return s
}
