package guarded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/proof"
)

const (
	hostID = "host-id"
	actor  = Actor("test")
)

// untouchable is a client that must not be called: every method of the nil interface panics.
type untouchable struct{ client.Client }

// touched is a client that returns an error when a write reaches it.
type touched struct{ client.Client }

var errTouched = errors.New("the client received a request")

func (touched) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errTouched
}
func (touched) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return errTouched
}
func (touched) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errTouched
}
func (touched) SubResource(string) client.SubResourceClient { return touchedSubResource{} }

type touchedSubResource struct{ client.SubResourceClient }

func (touchedSubResource) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errTouched
}

func (touched) Status() client.SubResourceWriter { return touchedStatus{} }

type touchedStatus struct{ client.SubResourceWriter }

func (touchedStatus) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errTouched
}
func (touchedStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errTouched
}

type guard struct{ held, destroy, host error }

func (g guard) CheckFenceHeld() error    { return g.held }
func (g guard) CheckNotSuspended() error { return g.destroy }

func (g guard) CheckHostCurrent(context.Context) error { return g.host }

var (
	open      = guard{}
	fenced    = guard{held: fmt.Errorf("%w: test", ErrFenced)}
	suspended = guard{destroy: fmt.Errorf("%w: test", ErrSuspended)}
	restored  = guard{host: fmt.Errorf("%w: test", ErrSuspended)}
)

func meta(name string, change ...func(*metav1.ObjectMeta)) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid", ResourceVersion: "7"}
	for _, c := range change {
		c(&m)
	}
	return m
}

// stamped adds the complete stamp of this host.
func stamped(m *metav1.ObjectMeta) {
	mirror.Origin{HostID: hostID, Root: client.ObjectKey{Namespace: "shop", Name: m.Name}, UID: "root-uid"}.StampLeaf(m)
}

func without(keys ...string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) {
		for _, key := range keys {
			delete(m.Labels, key)
			delete(m.Annotations, key)
		}
	}
}

func claim(change ...func(*metav1.ObjectMeta)) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta("data", change...), Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}}
}

func volume(policy corev1.PersistentVolumeReclaimPolicy, change ...func(*metav1.ObjectMeta)) *corev1.PersistentVolume {
	clusterScoped := func(m *metav1.ObjectMeta) { m.Namespace = "" }
	return &corev1.PersistentVolume{ObjectMeta: meta("pv-1", append([]func(*metav1.ObjectMeta){clusterScoped}, change...)...),
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: policy, ClaimRef: &corev1.ObjectReference{UID: "uid"}}}
}

func hostVolume() *corev1.PersistentVolume {
	return hostpv.TranslateVolume(volume(corev1.PersistentVolumeReclaimDelete), claim(), corev1.PersistentVolumeReclaimDelete,
		mirror.Member{Registration: "cluster38", ClusterID: "id38"})
}

var here = mirror.Member{Registration: "cluster38", ClusterID: "id38"}

// handed returns a volume that the member's admin handed to the host.
func handed(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := volume(corev1.PersistentVolumeReclaimDelete)
	pv.Labels, pv.Status.Phase = map[string]string{v1alpha1.LabelHost: hostID}, corev1.VolumeAvailable
	for _, f := range change {
		f(pv)
	}
	return pv
}

// asking returns an admin's host PV that requests the given leaf PV.
func asking(leaf *corev1.PersistentVolume) *corev1.PersistentVolume {
	pv := hostpv.TranslateVolume(leaf, claim(), corev1.PersistentVolumeReclaimRetain, here)
	pv.ObjectMeta, pv.Spec.ClaimRef, pv.Spec.CSI.VolumeAttributes = metav1.ObjectMeta{Name: "static", UID: "static-uid", ResourceVersion: "1"}, nil, nil
	return pv
}

func recordedFor(leaf *corev1.PersistentVolume) *corev1.PersistentVolume {
	return hostpv.RecordImport(asking(leaf), leaf, here)
}

func ours(m *metav1.ObjectMeta) {
	m.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}
}

func TestPatchesHavePreconditions(t *testing.T) {
	before := claim()
	for name, tc := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   map[string]any
	}{
		"nothing changes": {func(*corev1.PersistentVolumeClaim) {}, map[string]any{}},
		"an annotation is set": {func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{"a": "b"} },
			map[string]any{"annotations": map[string]any{"a": "b"}}},
		"a removed UID is ignored": {func(c *corev1.PersistentVolumeClaim) { c.UID = "" }, map[string]any{}},
		"a changed UID and resourceVersion are ignored": {func(c *corev1.PersistentVolumeClaim) { c.UID, c.ResourceVersion = "other", "9" },
			map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			tc.change(after)
			data, err := ConditionalPatch(before).Data(after)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"uid": "uid", "resourceVersion": "7"}
			maps.Copy(want, tc.want)
			if diff := cmp.Diff(map[string]any{"metadata": want}, got); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if before.UID != "uid" || before.ResourceVersion != "7" {
				t.Error("creating the patch changed its base object")
			}
		})
	}
}

func TestAnnotateClaim(t *testing.T) {
	own, foreignKey := v1alpha1.AnnotationPlacedIn, "team"
	for name, tc := range map[string]struct {
		before map[string]string
		change func(*corev1.PersistentVolumeClaim)
		ok     bool
	}{
		"one of Xylem's keys is set":                                      {nil, func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{own: "x"} }, true},
		"one of Xylem's keys is changed":                                  {map[string]string{own: "y"}, func(c *corev1.PersistentVolumeClaim) { c.Annotations[own] = "x" }, true},
		"one of Xylem's keys is removed":                                  {map[string]string{own: "y"}, func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, own) }, true},
		"the annotations, which contain only Xylem's key, are set to nil": {map[string]string{own: "y"}, func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }, true},
		"selected-node is removed":                                        {map[string]string{volumehelpers.AnnSelectedNode: "n", foreignKey: "a"}, func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, volumehelpers.AnnSelectedNode) }, true},
		"a user's key is set":                                             {nil, func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{foreignKey: "x"} }, false},
		"a user's key is changed":                                         {map[string]string{foreignKey: "y"}, func(c *corev1.PersistentVolumeClaim) { c.Annotations[foreignKey] = "x" }, false},
		"a user's key is removed":                                         {map[string]string{foreignKey: "y"}, func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, foreignKey) }, false},
		"a user's key is removed and one of Xylem's is set":               {map[string]string{foreignKey: "y"}, func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{own: "x"} }, false},
		"a key without Xylem's complete prefix is set":                    {nil, func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{"xylem.io": "x"} }, false},
		"a label is set":                                                  {nil, func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{own: "x"} }, false},
		"a finalizer is set":                                              {nil, func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{v1alpha1.FinalizerLeafVolume} }, false},
		"the spec is changed":                                             {nil, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-2" }, false},
		"the status is changed":                                           {nil, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }, false},
		"an owner reference is set":                                       {nil, func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := claim(func(m *metav1.ObjectMeta) { m.Annotations = maps.Clone(tc.before) })
			after := before.DeepCopy()
			tc.change(after)
			err := NewHostWriter(touched{}, "cluster38", open).AnnotateClaim(t.Context(), actor, before, after)
			if tc.ok && !errors.Is(err, errTouched) {
				t.Errorf("refused: %v", err)
			}
			if !tc.ok && !errors.Is(err, ErrForeign) {
				t.Errorf("not rejected: %v", err)
			}
			if diff := cmp.Diff(tc.before, before.Annotations); diff != "" {
				t.Errorf("the check changed the object:\n%s", diff)
			}
		})
	}
}

func TestOwnedLeaf(t *testing.T) {
	l := NewMemberWriter(untouchable{}, hostID, "cluster38", open)
	namespace := func(labels map[string]string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: labels}}
	}
	for name, tc := range map[string]struct {
		object client.Object
		want   bool
	}{
		"the complete stamp":                     {claim(stamped), true},
		"no stamp":                               {claim(), false},
		"a stamp for another name":               {claim(stamped, func(m *metav1.ObjectMeta) { m.Name = "copied" }), false},
		"another host's stamp":                   {claim(stamped, func(m *metav1.ObjectMeta) { m.Labels[v1alpha1.LabelHost] = "other" }), false},
		"no host label":                          {claim(stamped, without(v1alpha1.LabelHost)), false},
		"no managed-by label":                    {claim(stamped, without(v1alpha1.LabelManagedBy)), false},
		"a copy of a leaf":                       {claim(stamped, func(m *metav1.ObjectMeta) { m.Name = "data-2" }), false},
		"no root annotation":                     {claim(stamped, without(v1alpha1.AnnotationRoot)), false},
		"no root UID annotation":                 {claim(stamped, without(v1alpha1.AnnotationRootUID)), false},
		"a claim with only the labels":           {claim(stamped, without(v1alpha1.AnnotationRoot, v1alpha1.AnnotationRootUID)), false},
		"a namespace that Xylem created":         {namespace(map[string]string{v1alpha1.LabelHost: hostID, v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}), true},
		"a namespace handed over to this host":   {namespace(map[string]string{v1alpha1.LabelHost: hostID}), false},
		"a namespace of another host":            {namespace(map[string]string{v1alpha1.LabelHost: "other", v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}), false},
		"a namespace that belongs to the member": {namespace(nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			err := l.checkStamped(tc.object)
			if (err == nil) != tc.want || err != nil && !errors.Is(err, ErrForeign) {
				t.Errorf("owned: %v", err)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	l := NewMemberWriter(untouchable{}, hostID, "cluster38", open)
	for name, tc := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		change func(*corev1.PersistentVolume)
		want   bool
	}{
		"our claim is bound to the volume":     {claim(stamped), func(*corev1.PersistentVolume) {}, true},
		"no claim":                             {nil, func(*corev1.PersistentVolume) {}, false},
		"a foreign claim":                      {claim(), func(*corev1.PersistentVolume) {}, false},
		"our claim names another volume":       {claim(stamped), func(v *corev1.PersistentVolume) { v.Name = "pv-2" }, false},
		"the volume is bound to another claim": {claim(stamped), func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "other" }, false},
		"the volume is not bound":              {claim(stamped), func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }, false},
		"the claimRef has no UID":              {claim(stamped), func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := volume(corev1.PersistentVolumeReclaimRetain)
			tc.change(v)
			if got := l.claimHoldsVolume(tc.claim, v); got != tc.want {
				t.Errorf("holds() = %v", got)
			}
		})
	}
}

func promise() *corev1.PersistentVolume {
	return hostpv.NewPromiseFor(claim(), &storagev1.StorageClass{ObjectMeta: meta("fast")})
}

func TestOwnedRoot(t *testing.T) {
	for name, tc := range map[string]struct {
		object client.Object
		want   bool
	}{
		"a host PV created by Xylem": {hostVolume(), true},
		"a promise created by Xylem": {promise(), true},
		"a mock volume with another driver": {func() client.Object {
			v := promise()
			v.Annotations = map[string]string{v1alpha1.AnnotationMockPV: "true"}
			return v
		}(), false},
		"a promise with another driver":          {func() client.Object { v := promise(); v.Spec.CSI.Driver = "other"; return v }(), false},
		"a PV with another driver":               {func() client.Object { v := hostVolume(); v.Spec.CSI.Driver = "other"; return v }(), false},
		"a PV without a CSI source":              {volume(corev1.PersistentVolumeReclaimDelete, ours), false},
		"a PV that does not name a member":       {func() client.Object { v := hostVolume(); v.Labels = nil; return v }(), false},
		"an object that Xylem manages":           {&corev1.Node{ObjectMeta: meta("n", ours)}, true},
		"an object that another program manages": {&corev1.Node{ObjectMeta: meta("n", func(m *metav1.ObjectMeta) { m.Labels = map[string]string{v1alpha1.LabelManagedBy: "Helm"} })}, false},
		"an object without labels":               {&corev1.ConfigMap{ObjectMeta: meta("c")}, false},
		"a user's Pod":                           {&corev1.Pod{ObjectMeta: meta("p")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkOwned(tc.object); (err == nil) != tc.want || err != nil && !errors.Is(err, ErrForeign) {
				t.Errorf("ownedRoot: %v", err)
			}
		})
	}
}

func TestOwnedLease(t *testing.T) {
	node := func(change ...func(*metav1.ObjectMeta)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-cluster38", UID: "node-uid", Labels: map[string]string{
			v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelVirtualNode: "true"}}}
		for _, c := range change {
			c(&n.ObjectMeta)
		}
		return n
	}
	lease := func(change ...func(*metav1.ObjectMeta)) *coordinationv1.Lease {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "kosmos-cluster38",
			OwnerReferences: []metav1.OwnerReference{{Kind: "Node", Name: "kosmos-cluster38", UID: "node-uid"}}}}
		for _, c := range change {
			c(&l.ObjectMeta)
		}
		return l
	}
	for name, tc := range map[string]struct {
		node  *corev1.Node
		lease *coordinationv1.Lease
		want  bool
	}{
		"owned by the virtual node":                {node(), lease(), true},
		"labelled, but without an owner":           {node(), lease(ours, func(m *metav1.ObjectMeta) { m.OwnerReferences = nil }), true},
		"owned by another node (I4)":               {node(), lease(func(m *metav1.ObjectMeta) { m.OwnerReferences[0].UID = "other" }), false},
		"with another name (I4)":                   {node(), lease(func(m *metav1.ObjectMeta) { m.Name = "worker-1" }), false},
		"in another namespace (I4)":                {node(), lease(func(m *metav1.ObjectMeta) { m.Namespace = "kube-system" }), false},
		"owned by a node that is not virtual (I4)": {node(without(v1alpha1.LabelVirtualNode)), lease(), false},
		"owned by a foreign node (I4)":             {node(without(v1alpha1.LabelManagedBy)), lease(), false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkNodeLease(tc.node, tc.lease); (err == nil) != tc.want {
				t.Errorf("ownedLease: %v", err)
			}
		})
	}
}

// deleting is a client that records the preconditions of deletes.
type deleting struct {
	client.Client
	on *metav1.Preconditions
}

func (d *deleting) Delete(_ context.Context, _ client.Object, opts ...client.DeleteOption) error {
	d.on = (&client.DeleteOptions{}).ApplyOptions(opts).AsDeleteOptions().Preconditions
	return nil
}

// A delete in the host applies only to the object as it was read. If an admin has changed the
// object since, it is kept (I4).
func TestHostDeletesHavePreconditions(t *testing.T) {
	written := func(obj client.Object) client.Object {
		obj.SetUID("uid")
		obj.SetResourceVersion("7")
		return obj
	}
	class := &storagev1.StorageClass{ObjectMeta: meta("fast", ours), Provisioner: v1alpha1.ProvisionerName}
	class.Labels[v1alpha1.LabelOfferedByPrefix+"cluster38"] = "true"
	for name, obj := range map[string]client.Object{
		"a reflected class": class,
		"a host PV":         abandoned(),
		"a node":            &corev1.Node{ObjectMeta: meta("n", ours)},
	} {
		t.Run(name, func(t *testing.T) {
			asked := &deleting{}
			root := NewHostWriter(asked, "cluster38", open)
			var err error
			if pv, ok := obj.(*corev1.PersistentVolume); ok {
				err = root.DeleteHostVolume(t.Context(), pv, ofAbandoned())
			} else {
				err = root.DeleteOwned(t.Context(), written(obj))
			}
			if err != nil {
				t.Fatal(err)
			}
			want := metav1.NewPreconditionDeleteOptions("uid").Preconditions
			want.ResourceVersion = ptr.To("7")
			if diff := cmp.Diff(want, asked.on); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// hostContent returns a host content that an admin has abandoned, and that is being deleted.
func hostContent() *snapshotv1.VolumeSnapshotContent {
	return &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{
			Name: "content", UID: "uid", ResourceVersion: "7", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)},
			Finalizers:  []string{mirrorsnapshot.FinalizerContent},
			Annotations: map[string]string{v1alpha1.AnnotationPlacedIn: "id38", v1alpha1.AnnotationAbandon: "true"},
		},
		Spec: snapshotv1.VolumeSnapshotContentSpec{Driver: v1alpha1.ProvisionerName},
	}
}

// abandoned returns a host PV that an admin has abandoned, and ofAbandoned the evidence to drop it.
func abandoned() *corev1.PersistentVolume {
	pv := hostVolume()
	pv.UID, pv.ResourceVersion, pv.Finalizers = "uid", "7", []string{v1alpha1.FinalizerLeafVolume}
	metav1.SetMetaDataAnnotation(&pv.ObjectMeta, v1alpha1.AnnotationAbandon, "true")
	return pv
}

func ofAbandoned() proof.DroppableVolume { return evidenceFor(abandoned()) }

// evidenceFor abandons a host PV, and returns the evidence to drop it.
func evidenceFor(pv *corev1.PersistentVolume) proof.DroppableVolume {
	metav1.SetMetaDataAnnotation(&pv.ObjectMeta, v1alpha1.AnnotationAbandon, "true")
	e, _ := proof.DroppableIfAbandoned(clock.RealClock{}, pv)
	return e
}

// bareOf returns a PV without its finalizers.
func bareOf(pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	after := pv.DeepCopy()
	after.Finalizers = nil
	return after
}

// emptyMember serves no resources, so each namespace is empty.
type emptyMember struct {
	discovery.DiscoveryInterfaceWithContext
	metadata.Interface
}

func (emptyMember) ServerPreferredNamespacedResourcesWithContext(context.Context) ([]*metav1.APIResourceList, error) {
	return nil, nil
}

// empty returns the evidence that a namespace is empty.
func empty(ctx context.Context, namespace *corev1.Namespace) proof.NamespaceEmpty {
	e, _, _ := proof.NamespaceProver{Discovery: emptyMember{}, Clock: clock.RealClock{}}.ProveNamespaceEmpty(ctx, namespace)
	return e
}

// nothing is a reader that finds no objects except the given PV.
type nothing struct {
	client.Reader
	pv *corev1.PersistentVolume
}

func (n nothing) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if pv, ok := into.(*corev1.PersistentVolume); ok && n.pv != nil && n.pv.Name == key.Name {
		n.pv.DeepCopyInto(pv)
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (nothing) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func prover(pv *corev1.PersistentVolume) proof.Prover {
	return proof.Prover{
		Member: mirror.Member{ClusterID: "id38", HostID: hostID}, Host: nothing{}, HostLive: nothing{pv: pv}, Cache: nothing{}, Live: nothing{},
		Clock: clock.RealClock{}, MayBeRestored: func(metav1.Object) bool { return false }, MayLackRoot: func(metav1.Object) bool { return false }, CheckUnrestored: func(context.Context) error { return nil },
	}
}

// unneeded returns the proof that nobody needs the data of a leaf's root.
func unneeded(ctx context.Context, leaf client.Object) proof.DataUnneeded {
	origin, _ := mirror.LeafOriginFromHost(hostID, leaf)
	nobody, _ := prover(nil).ProveVolumeUnneeded(ctx, origin.Root, origin.UID, proof.RootGone{})
	return nobody
}

// lost returns evidence for deleting a claim whose root and volume were deleted.
func lost(ctx context.Context, claim *corev1.PersistentVolumeClaim) (e proof.UnmirroredVolume) {
	p := prover(nil)
	origin, _ := mirror.LeafOriginFromHost(hostID, claim)
	e.Root, _, _ = p.ProveRootGone(ctx, origin.Root, origin.UID)
	e.Leaf, _, _ = p.ProveLeafVolume(ctx, claim.Spec.VolumeName, proof.IsLeafAbsent)
	e.NoMirror, _, _ = p.ProveNotMirrored(ctx, claim, true)
	e.Member, _ = p.ProveMemberCurrent(ctx)
	return e
}

// destroying returns evidence for destroying a leaf PV whose host PV has ended.
func destroying(ctx context.Context, leaf *corev1.PersistentVolume) (e proof.DestroyingVolume) {
	origin, _ := mirror.LeafOriginFromHost(hostID, leaf)
	root := claim()
	root.UID = origin.UID
	host := hostpv.TranslateVolume(leaf, root, corev1.PersistentVolumeReclaimDelete, mirror.Member{Registration: "cluster38", ClusterID: "id38"})
	host.Status.Phase = corev1.VolumeReleased
	p := prover(host)
	e.Root, _, _ = p.ProveRootGone(ctx, origin.Root, origin.UID)
	e.Host, _, _ = p.ProveHostReleased(ctx, host)
	return e
}

func status(kind, uid string) *unstructured.Unstructured {
	metadata := map[string]any{"namespace": "shop", "name": "data"}
	if uid != "" {
		metadata["uid"] = uid
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": metadata, "status": map[string]any{}}}
}

// TestWritesAreGuarded covers every write and what rejects it. Only writes that are not rejected
// reach the client.
func TestWritesAreGuarded(t *testing.T) {
	now := metav1.Now()
	deletedPod := &corev1.Pod{ObjectMeta: meta("web", func(m *metav1.ObjectMeta) { m.DeletionTimestamp = &now })}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid", Labels: map[string]string{
		v1alpha1.LabelHost: hostID, v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}}}
	leafPod := &corev1.Pod{ObjectMeta: meta("web", stamped)}
	retained, deleted := volume(corev1.PersistentVolumeReclaimRetain, stamped), volume(corev1.PersistentVolumeReclaimDelete, stamped)
	bare := volume(corev1.PersistentVolumeReclaimDelete)
	node := &corev1.Node{ObjectMeta: meta("n", ours, func(m *metav1.ObjectMeta) { m.Labels[v1alpha1.LabelVirtualNode] = "true" })}

	type write func(context.Context, *MemberWriter, *HostWriter) error
	for name, tc := range map[string]struct {
		write write
		// foreign means that the write is rejected because the object is not Xylem's, regardless of
		// the guard.
		foreign bool
		// unproven means that the write is rejected for lack of evidence, regardless of the guard.
		unproven bool
		// destroys means that the write is rejected while destruction is suspended.
		destroys bool
	}{
		"create a leaf": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.CreateStamped(ctx, actor, claim(stamped))
		}},
		"create a leaf without a stamp": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.CreateStamped(ctx, actor, claim())
		}, foreign: true},
		"patch a leaf": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.PatchStamped(ctx, actor, leafPod, leafPod)
		}},
		"patch an object so that it becomes a leaf": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.PatchStamped(ctx, actor, claim(), claim(stamped))
		}, foreign: true},
		"add ephemeral containers to a leaf Pod": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.AddEphemeralContainers(ctx, actor, leafPod, leafPod)
		}},
		"add ephemeral containers to a member's Pod": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.AddEphemeralContainers(ctx, actor, deletedPod, leafPod)
		}, foreign: true},
		"resize a leaf Pod": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.ResizePod(ctx, actor, leafPod, leafPod)
		}},
		"resize a member's Pod": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.ResizePod(ctx, actor, deletedPod, leafPod)
		}, foreign: true},
		"delete a leaf Pod": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error { return l.DeleteStamped(ctx, leafPod) }},
		"delete a leaf claim": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			c := claim(stamped)
			return l.DestroyClaim(ctx, c, unneeded(ctx, c), lost(ctx, c))
		}, destroys: true},
		"delete a leaf claim whose data may be needed": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			c := claim(stamped)
			return l.DestroyClaim(ctx, c, proof.DataUnneeded{}, lost(ctx, c))
		}, unproven: true},
		"delete a leaf claim if nobody needs another's data": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			c, other := claim(stamped), claim(stamped)
			other.Annotations[v1alpha1.AnnotationRootUID] = "other-uid"
			return l.DestroyClaim(ctx, c, unneeded(ctx, other), lost(ctx, c))
		}, unproven: true},
		"delete a leaf claim with another root's evidence": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			other := claim(stamped)
			other.Annotations[v1alpha1.AnnotationRootUID] = "other-uid"
			return l.DestroyClaim(ctx, claim(stamped), unneeded(ctx, other), lost(ctx, other))
		}, unproven: true},
		"delete a leaf claim without evidence": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.DeleteClaim(ctx, claim(stamped), nil)
		}, unproven: true},
		"destroy a leaf claim without evidence": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.DestroyClaim(ctx, claim(stamped), unneeded(ctx, claim(stamped)), nil)
		}, unproven: true},
		"delete a leaf claim with empty evidence": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.DeleteClaim(ctx, claim(stamped), proof.KeepingVolume{})
		}, unproven: true},
		"delete a leaf claim by the generic method": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.DeleteStamped(ctx, claim(stamped))
		}, unproven: true},
		"delete a leaf PV": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error { return l.DeleteStamped(ctx, retained) }, unproven: true},
		"patch a leaf PV by the generic method": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.PatchStamped(ctx, actor, retained, deleted)
		}, foreign: true},
		"delete a leaf namespace that is empty": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.DeleteNamespace(ctx, namespace, empty(ctx, namespace))
		}, destroys: true},
		"delete a leaf namespace with another's evidence": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			other := namespace.DeepCopy()
			other.UID = "other-uid"
			return l.DeleteNamespace(ctx, namespace, empty(ctx, other))
		}, unproven: true},
		"delete a leaf namespace without evidence": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.DeleteNamespace(ctx, namespace, nil)
		}, unproven: true},
		"delete a leaf namespace by the generic method": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.DeleteStamped(ctx, namespace)
		}, unproven: true},
		"delete a member's claim": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.DeleteClaim(ctx, claim(), proof.KeepingVolume{})
		}, foreign: true},
		"delete a leaf without a UID": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.DeleteStamped(ctx, &corev1.Pod{ObjectMeta: meta("web", stamped, func(m *metav1.ObjectMeta) { m.UID = "" })})
		}, foreign: true},
		"stamp the volume of a leaf claim": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.PatchLeafVolume(ctx, actor, bare, retained, claim(stamped))
		}},
		"stamp the volume of a member's claim": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.PatchLeafVolume(ctx, actor, bare, retained, claim())
		}, foreign: true},
		"take a volume with consent": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			leaf := handed()
			return l.StampImportedVolume(ctx, actor, leaf, retained, recordedFor(leaf))
		}},
		"take a released volume with consent": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			leaf := handed(func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased })
			return l.StampImportedVolume(ctx, actor, leaf, retained, recordedFor(leaf))
		}},
		"take a volume without consent": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			leaf := handed(func(pv *corev1.PersistentVolume) { pv.Labels = nil })
			return l.StampImportedVolume(ctx, actor, leaf, retained, recordedFor(leaf))
		}, foreign: true},
		"take a volume handed to another host": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			leaf := handed(func(pv *corev1.PersistentVolume) { pv.Labels[v1alpha1.LabelHost] = "other" })
			return l.StampImportedVolume(ctx, actor, leaf, retained, recordedFor(leaf))
		}, foreign: true},
		"take a volume in use": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			leaf := handed(func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeBound })
			return l.StampImportedVolume(ctx, actor, leaf, retained, recordedFor(leaf))
		}, foreign: true},
		"take a volume stamped for a claim": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			leaf := handed(func(pv *corev1.PersistentVolume) { stamped(&pv.ObjectMeta) })
			return l.StampImportedVolume(ctx, actor, leaf, retained, recordedFor(leaf))
		}, foreign: true},
		"take an unrecorded volume": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.StampImportedVolume(ctx, actor, handed(), retained, hostVolume())
		}, foreign: true},
		"take a re-created volume": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			leaf := handed()
			host := recordedFor(leaf)
			leaf.UID = "re-created"
			return l.StampImportedVolume(ctx, actor, leaf, retained, host)
		}, foreign: true},
		"take a volume without setting it to Retain": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			leaf := handed()
			return l.StampImportedVolume(ctx, actor, leaf, deleted, recordedFor(leaf))
		}, foreign: true},
		"record an admin's host PV": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.RecordVolumeImport(ctx, actor, asking(handed()), handed(), here)
		}},
		"record a host PV that names another member": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.RecordVolumeImport(ctx, actor, asking(handed()), handed(), mirror.Member{Registration: "cluster39", ClusterID: "id39"})
		}, foreign: true},
		"record a host PV that Xylem created": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.RecordVolumeImport(ctx, actor, hostVolume(), handed(), here)
		}, foreign: true},
		"set a leaf PV to Retain": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.PatchLeafVolume(ctx, actor, deleted, retained, nil)
		}},
		"patch a leaf PV to Delete": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.PatchLeafVolume(ctx, actor, retained, deleted, nil)
		}, unproven: true},
		"set a leaf PV to Delete": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			_, err := l.SetVolumePolicyDelete(ctx, actor, retained, unneeded(ctx, retained), destroying(ctx, retained))
			return err
		}, destroys: true},
		"set a leaf PV to Delete with another PV's evidence": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			other := retained.DeepCopy()
			other.UID = "other-uid"
			_, err := l.SetVolumePolicyDelete(ctx, actor, retained, unneeded(ctx, retained), destroying(ctx, other))
			return err
		}, unproven: true},
		"set a leaf PV to Delete with empty evidence": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			_, err := l.SetVolumePolicyDelete(ctx, actor, retained, unneeded(ctx, retained), proof.DestroyingVolume{})
			return err
		}, unproven: true},
		"set a leaf PV to Delete although its data may be needed": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			_, err := l.SetVolumePolicyDelete(ctx, actor, retained, proof.DataUnneeded{}, destroying(ctx, retained))
			return err
		}, unproven: true},
		"patch a leaf PV with policy Delete": {write: func(ctx context.Context, l *MemberWriter, _ *HostWriter) error {
			return l.PatchLeafVolume(ctx, actor, deleted, deleted, nil)
		}},

		"apply a Pod's status": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.ApplyStatus(ctx, actor, &corev1.Pod{}, status("Pod", "uid"))
		}},
		"apply a claim's status": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.ApplyStatus(ctx, actor, &corev1.PersistentVolumeClaim{}, status("PersistentVolumeClaim", "uid"))
		}},
		"apply a status without a UID": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.ApplyStatus(ctx, actor, &corev1.Pod{}, status("Pod", ""))
		}, foreign: true},
		"apply a volume's status": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.ApplyStatus(ctx, actor, &corev1.PersistentVolume{}, status("PersistentVolume", "uid"))
		}, foreign: true},
		"apply a node's status": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.ApplyStatus(ctx, actor, &corev1.Node{}, status("Node", "uid"))
		}, foreign: true},
		"annotate a claim": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.AnnotateClaim(ctx, actor, claim(), claim())
		}},
		"finish a deleted Pod": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.FinishPodDeletion(ctx, deletedPod)
		}},
		"finish a Pod that is not being deleted": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.FinishPodDeletion(ctx, &corev1.Pod{ObjectMeta: meta("web")})
		}, foreign: true},
		"create a host PV": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.CreateOwned(ctx, actor, hostVolume())
		}},
		"create a foreign PV": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.CreateOwned(ctx, actor, bare)
		}, foreign: true},
		"patch a host PV": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.PatchOwned(ctx, actor, hostVolume(), hostVolume())
		}},
		"patch a foreign PV": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.PatchOwned(ctx, actor, bare, hostVolume())
		}, foreign: true},
		"delete a host PV": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.DeleteHostVolume(ctx, abandoned(), ofAbandoned())
		}},
		"delete a host PV without a UID": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			v := abandoned()
			v.UID = ""
			return r.DeleteHostVolume(ctx, v, evidenceFor(v))
		}, foreign: true},
		"delete a host PV without evidence": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.DeleteHostVolume(ctx, abandoned(), nil)
		}, unproven: true},
		"delete a host PV by the generic method": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.DeleteOwned(ctx, abandoned())
		}, unproven: true},
		"delete a host PV that has changed": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			v := abandoned()
			v.ResourceVersion = "8"
			return r.DeleteHostVolume(ctx, v, ofAbandoned())
		}, unproven: true},
		"remove a host PV's finalizer": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.DropHostVolume(ctx, actor, abandoned(), bareOf(abandoned()), ofAbandoned())
		}},
		"remove a foreign PV's finalizer": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.DropHostVolume(ctx, actor, bare, bare, ofAbandoned())
		}, foreign: true},
		"remove a host PV's finalizer without evidence": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.DropHostVolume(ctx, actor, abandoned(), bareOf(abandoned()), nil)
		}, unproven: true},
		"remove a host PV's finalizer by the generic method": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.PatchOwned(ctx, actor, abandoned(), bareOf(abandoned()))
		}, unproven: true},
		"remove the record of a copy by the generic method": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.PatchOwned(ctx, actor, hostpv.VolumeWithCopyIn(hostVolume(), "id39"), hostVolume())
		}, unproven: true},
		"remove the record of a copy without evidence": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.DropCopyRecord(ctx, actor, hostpv.VolumeWithCopyIn(hostVolume(), "id39"), proof.NoCopy{})
		}, unproven: true},
		"remove the record of a disk from a promise by the generic method": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			fulfilled := hostpv.FulfillPromise(promise(), retained, corev1.PersistentVolumeReclaimDelete, mirror.Member{ClusterID: "id38"})
			return r.PatchOwned(ctx, actor, fulfilled, promise())
		}, unproven: true},
		"replace the record of a disk by the generic method": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			fulfilled := hostpv.FulfillPromise(promise(), retained, corev1.PersistentVolumeReclaimDelete, mirror.Member{ClusterID: "id38"})
			other := fulfilled.DeepCopy()
			other.Annotations[v1alpha1.AttributeLeafUID] = "other-uid"
			return r.PatchOwned(ctx, actor, fulfilled, other)
		}, unproven: true},
		"delete a foreign PV": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error { return r.DeleteOwned(ctx, bare) }, foreign: true},
		"remove the finalizer of a host content by the generic method": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.PatchHostContent(ctx, actor, hostContent(), mirrorsnapshot.ContentWithoutFinalizer(hostContent()))
		}, foreign: true},
		"remove the placement of a host content": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			after := hostContent()
			delete(after.Annotations, v1alpha1.AnnotationPlacedIn)
			return r.PatchHostContent(ctx, actor, hostContent(), after)
		}, unproven: true},
		"release a host content without evidence": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.DropHostContent(ctx, actor, hostContent(), nil)
		}, unproven: true},
		"release an abandoned host content": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			e, _ := proof.SnapshotProver{Prover: proof.Prover{Clock: clock.RealClock{}}}.DroppableIfReleased(hostContent())
			return r.DropHostContent(ctx, actor, hostContent(), e)
		}},
		"release a host content that is not being deleted": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			alive := hostContent()
			alive.DeletionTimestamp = nil
			e, _ := proof.SnapshotProver{Prover: proof.Prover{Clock: clock.RealClock{}}}.DroppableIfReleased(alive)
			return r.DropHostContent(ctx, actor, alive, e)
		}, foreign: true},
		"create a reflected class": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.CreateOwned(ctx, actor, reflectedClass())
		}},
		"create a class that no registration offers": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.CreateOwned(ctx, actor, unreflected())
		}, foreign: true},
		"patch a reflected class": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.PatchOwned(ctx, actor, reflectedClass(), reflectedClass())
		}},
		"patch an admin's class": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.PatchOwned(ctx, actor, unreflected(), reflectedClass())
		}, foreign: true},
		"delete an admin's class": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.DeleteOwned(ctx, unreflected())
		}, foreign: true},
		"delete another driver's class": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			class := reflectedClass()
			class.Provisioner = "ebs.csi.aws.com"
			return r.DeleteOwned(ctx, class)
		}, foreign: true},
		"patch a virtual node's status": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			return r.PatchNodeStatus(ctx, actor, node, node)
		}},
		"patch a foreign node's status": {write: func(ctx context.Context, _ *MemberWriter, r *HostWriter) error {
			n := &corev1.Node{ObjectMeta: meta("n")}
			return r.PatchNodeStatus(ctx, actor, n, n)
		}, foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(c client.Client, g Guard) error {
				return tc.write(t.Context(), NewMemberWriter(c, hostID, "cluster38", g), NewHostWriter(c, "cluster38", g))
			}
			if tc.foreign {
				if err := run(untouchable{}, open); !errors.Is(err, ErrForeign) {
					t.Errorf("not rejected as foreign: %v", err)
				}
				return
			}
			if tc.unproven {
				if err := run(untouchable{}, open); !errors.Is(err, proof.ErrUnproven) {
					t.Errorf("not rejected for lack of evidence: %v", err)
				}
				return
			}
			if err := run(touched{}, open); !errors.Is(err, errTouched) {
				t.Errorf("rejected although nothing forbids it: %v", err)
			}
			if err := run(untouchable{}, fenced); !errors.Is(err, ErrFenced) {
				t.Errorf("not rejected although the fence is lost: %v", err)
			}
			if !tc.destroys {
				for _, g := range []Guard{suspended, restored} {
					if err := run(touched{}, g); !errors.Is(err, errTouched) {
						t.Errorf("rejected although it destroys nothing: %v", err)
					}
				}
				return
			}
			if err := run(untouchable{}, suspended); !errors.Is(err, ErrSuspended) {
				t.Errorf("not rejected while destruction is suspended: %v", err)
			}
			if err := run(untouchable{}, restored); !errors.Is(err, ErrSuspended) {
				t.Errorf("not rejected although the host was restored: %v", err)
			}
		})
	}
}

func reflectedClass() *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gp3", UID: "uid", Labels: map[string]string{
			v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelOfferedByPrefix + "cluster38": "true",
		}},
		Provisioner: v1alpha1.ProvisionerName,
	}
}

// unreflected returns an admin's class with the managed-by label.
func unreflected() *storagev1.StorageClass {
	class := reflectedClass()
	delete(class.Labels, v1alpha1.LabelOfferedByPrefix+"cluster38")
	return class
}
