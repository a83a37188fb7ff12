package snapshots

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/test/model/api"
)

const (
	namespace    = "shop"
	snapshotName = "nightly"
	claimName    = "data"
	className    = "fast"
	driver       = "disk.example.com"
)

// here is the model's member.
var here = mirror.Member{Registration: "one", ClusterID: "id-one", NodeName: "kosmos-one", HostID: "id-host"}

// errKilled ends a reconcile at its second write, as if the process had been killed.
var errKilled = errors.New("the process was killed")

// side identifies the cluster of a reader or writer.
type side int

const (
	hostSide side = iota
	memberSide
)

// fixed returns a cluster's objects that never change: the claim, its volume and the class.
func fixed(s side) []client.Object {
	class := &snapshotv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: className}, Driver: v1alpha1.ProvisionerName}
	claim := func(uid, volume string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: claimName}}
		c.Spec.VolumeName, c.Status.Phase = volume, corev1.ClaimBound
		c.SetUID(types.UID(uid))
		return c
	}
	onHost := claim("root-claim", "pvc-1")
	onMember := claim("leaf-claim", "pvc-1")
	mirror.OriginForRoot(here.HostID, onHost).StampLeaf(onMember)
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", UID: "leaf-volume"}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: claimName, UID: onMember.UID}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "disk-1"}
	if s == hostSide {
		return []client.Object{class, onHost, hostpv.TranslateVolume(volume, onHost, corev1.PersistentVolumeReclaimDelete, here)}
	}
	class.Driver = driver
	return []client.Object{class, onMember, volume}
}

// restoreFrom returns a claim that is Bound to a promise, and must be restored from a root.
func restoreFrom(root types.UID) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "restored", UID: "restored", Annotations: map[string]string{
		v1alpha1.AnnotationSource: mirror.DataSourceRecord{ClusterID: here.ClusterID, UID: root}.AnnotationValue(),
	}}}
	claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To(mirror.SnapshotGroup), Kind: mirror.SnapshotKind, Name: snapshotName}
	claim.Spec.VolumeName = hostpv.PromiseName(claim.UID)
	return claim
}

// fixedOf returns the constant objects of both clusters. Do not modify them.
var fixedOf = [2][]client.Object{fixed(hostSide), fixed(memberSide)}

// reader reads a cluster, from the cache or live. It embeds cache.Cache only for the type, and
// implements Get and List.
type reader struct {
	cache.Cache
	model *Model
	side  side
	state func() state
	// promised is that of the world.
	promised uint8
}

// objects returns all objects with the same type as like.
func (r reader) objects(like any) []client.Object {
	var found []client.Object
	from, to := root, leaf
	if r.side == memberSide {
		from, to = leaf, slots
	}
	s := r.state()
	for slot := from; slot < to; slot++ {
		if obj := r.model.objects.object(s[slot]); obj != nil {
			found = append(found, obj)
		}
	}
	found = append(found, fixedOf[r.side]...)
	return slices.DeleteFunc(found, func(obj client.Object) bool { return reflect.TypeOf(obj) != reflect.TypeOf(like) })
}

func (r reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	obj, err := api.Find(r.objects(into), key, into)
	if err == nil {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj.DeepCopyObject()).Elem())
	}
	return err
}

func (r reader) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	var like client.Object
	switch list.(type) {
	case *snapshotv1.VolumeSnapshotList:
		like = &snapshotv1.VolumeSnapshot{}
	case *snapshotv1.VolumeSnapshotContentList:
		like = &snapshotv1.VolumeSnapshotContent{}
	case *corev1.PersistentVolumeClaimList:
		if r.side == hostSide && r.promised != 0 {
			return meta.SetList(list, []runtime.Object{restoreFrom(rootUID(int(r.promised) - 1))})
		}
		return meta.SetList(list, nil)
	case *v1alpha1.ClusterRegistrationList:
		return meta.SetList(list, []runtime.Object{registration()})
	default:
		return fmt.Errorf("the model has no %T", list)
	}
	var found []runtime.Object
	for _, obj := range r.objects(like) {
		if (options.Namespace == "" || obj.GetNamespace() == options.Namespace) && r.model.matches(obj, options) {
			found = append(found, obj.DeepCopyObject())
		}
	}
	return meta.SetList(list, found)
}

// matches reports whether an object has the index or field value that a list's options select.
func (m *Model) matches(obj client.Object, options client.ListOptions) bool {
	if options.FieldSelector == nil {
		return true
	}
	for _, want := range options.FieldSelector.Requirements() {
		if want.Field == "metadata.name" {
			if obj.GetName() != want.Value {
				return false
			}
			continue
		}
		extract := m.indexes[fmt.Sprintf("%T %s", obj, want.Field)]
		if extract == nil {
			panic(fmt.Sprintf("there is no index %s of %T", want.Field, obj))
		}
		if !slices.Contains(extract(obj), want.Value) {
			return false
		}
	}
	return true
}

// IndexField records an index of the caches.
func (m *Model) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	m.indexes[fmt.Sprintf("%T %s", obj, field)] = extract
	return nil
}

// registration returns the registration of the connected member.
func registration() *v1alpha1.ClusterRegistration {
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: here.Registration}}
	cr.Status.ClusterID = here.ClusterID
	meta.SetStatusCondition(&cr.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionConnected, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected})
	return cr
}

// writer represents the API server for Xylem's writes. It executes the first write that changes the
// world, and rejects all later ones.
type writer struct {
	client.Client
	reader
	run    *run
	status bool
}

func (w writer) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return w.reader.Get(ctx, key, into, opts...)
}

func (w writer) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return w.reader.List(ctx, list, opts...)
}

func (w writer) Status() client.SubResourceWriter { return statusWriter{writer: w} }

type statusWriter struct {
	client.SubResourceWriter
	writer writer
}

func (s statusWriter) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	s.writer.status = true
	return s.writer.Patch(ctx, obj, patch)
}

// slot returns the index of an object in the world, or -1 if the world does not model it.
func (w writer) slot(obj client.Object) int {
	from, to := root, leaf
	if w.side == memberSide {
		from, to = leaf, slots
	}
	_, isSnapshot := obj.(*snapshotv1.VolumeSnapshot)
	for slot := from; slot < to; slot++ {
		if nameOf(slot) == obj.GetName() && isSnapshot == (slot == root || slot == leaf) {
			return slot
		}
	}
	return -1
}

// unrecorded reports whether the world does not record an object.
func unrecorded(obj client.Object) bool {
	_, lease := obj.(*coordinationv1.Lease)
	return lease
}

func (w writer) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	if unrecorded(obj) {
		return nil
	}
	if slot := w.slot(obj); w.side != memberSide || slot != leaf {
		return fmt.Errorf("the model has no slot for %T %s", obj, obj.GetName())
	}
	if w.run.world.state[leaf] != 0 {
		return api.Exists(obj)
	}
	n := slices.Index(w.run.world.of[:], 0)
	if n < 0 {
		w.run.exhausted = true
		return errors.New("the model has run out of UIDs")
	}
	created := api.As[*snapshotv1.VolumeSnapshot](obj.DeepCopyObject())
	created.UID, created.CreationTimestamp, created.Finalizers = leafUID(n), made, []string{finalizerSnapshot}
	return w.write("create", leaf, nil, created)
}

func (w writer) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	if unrecorded(obj) {
		return nil
	}
	slot := w.slot(obj)
	before, after, err := api.Patch(obj, patch, func(want metav1.Preconditions) (client.Object, error) { return w.checked(slot, obj, want) })
	if err != nil {
		return err
	}
	// A write to the status subresource ignores the spec, and vice versa.
	if was, is := api.As[*snapshotv1.VolumeSnapshotContent](before), api.As[*snapshotv1.VolumeSnapshotContent](after); w.status {
		status := is.Status
		*is = *was.DeepCopy()
		is.Status = status
	} else {
		is.Status = was.Status
	}
	return w.write("patch", slot, before, after)
}

func (w writer) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	slot := w.slot(obj)
	before, err := w.checked(slot, obj, api.Preconditions(opts))
	if err != nil {
		return err
	}
	after := api.As[client.Object](before.DeepCopyObject())
	delet(after)
	return w.write("delete", slot, before, after)
}

// checked returns the object to write to, if the preconditions hold.
func (w writer) checked(slot int, obj client.Object, want metav1.Preconditions) (client.Object, error) {
	if slot < 0 || w.run.world.state[slot] == 0 {
		return nil, api.NotFound(obj, obj.GetName())
	}
	there := api.Copy(w.model.objects.object(w.run.world.state[slot]))
	return there, api.Check(there, want)
}

// write executes a write if it is the first that changes anything.
func (w writer) write(verb string, slot int, before, after client.Object) error {
	if before != nil && equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	if w.run.wrote != "" {
		return errKilled
	}
	w.run.wrote = fmt.Sprintf("%s %T in the %s, %s", verb, after, [...]string{"host", "member"}[w.side], after.GetName())
	w.run.slot = slot
	w.run.status = w.status
	w.run.violations = append(w.run.violations, w.model.violations(w.run.world, slot, before, after)...)
	if before == nil {
		origin, _ := mirror.LeafOriginFromHost(here.HostID, after)
		n := slices.Index(w.run.world.of[:], 0)
		w.run.world.of[n] = numberOf(origin.UID)
	}
	w.run.world.state[slot] = w.model.left(after)
	return nil
}
