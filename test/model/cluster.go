package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/test/model/api"
)

// errKilled ends a reconcile at its second write, as if the process had been killed.
var errKilled = errors.New("the process was killed")

// side identifies the cluster of a reader or writer.
type side int

const (
	hostSide side = iota
	memberSide
	// secondSide is the second member, if it is modeled.
	secondSide
)

// contents provides the objects of a cluster in a state.
type contents struct {
	model *Model
	side  side
	state func() state
}

func (c contents) claims() []*corev1.PersistentVolumeClaim {
	s := c.state()
	ids := s.roots
	if c.side == memberSide {
		ids = s.claims
	}
	var found []*corev1.PersistentVolumeClaim
	for _, i := range ids {
		if claim := c.model.objects.claim(i); claim != nil {
			found = append(found, claim)
		}
	}
	if leaf := c.model.objects.pv(s.memberState.pvs[handMadeLeaf]); c.side == memberSide && takenInMember(leaf) {
		found = append(found, ownClaim())
	}
	return found
}

func (c contents) pvs() []*corev1.PersistentVolume {
	s := c.state()
	ids := s.hostState.pvs[:]
	if c.side == memberSide {
		ids = s.memberState.pvs[:]
	}
	var found []*corev1.PersistentVolume
	for _, i := range ids {
		if pv := c.model.objects.pv(i); pv != nil {
			found = append(found, pv)
		}
	}
	for n, i := range s.roots {
		if root := c.model.objects.claim(i); c.side == hostSide && root != nil && root.Spec.VolumeName == elsewhereNames[n] {
			found = append(found, elsewhere(root))
		}
	}
	return found
}

// objects returns all objects with the same type as like.
func (c contents) objects(like client.Object) []client.Object { //nolint:gocyclo // a table
	var found []client.Object
	switch like.(type) {
	case *corev1.PersistentVolumeClaim:
		for _, claim := range c.claims() {
			found = append(found, claim)
		}
	case *corev1.PersistentVolume:
		for _, pv := range c.pvs() {
			found = append(found, pv)
		}
	case *corev1.Pod:
		if pod := c.model.objects.pod(c.state().pod); c.side == hostSide && pod != nil {
			found = append(found, pod)
		}
	case *snapshotv1.VolumeSnapshot:
		if s := c.state().volumeSnapshot(); c.side == hostSide && s != nil {
			found = append(found, s)
		}
	case *storagev1.StorageClass:
		switch s := c.state(); {
		case c.side == hostSide && !s.lacksHostClass:
			return []client.Object{hostClass(s.hostPolicy.reclaim(), s.mode)}
		case c.side != hostSide && !s.lacksLeafClass:
			return []client.Object{leafClass(s.leafPolicy.reclaim())}
		}
	case *corev1.Namespace:
		if c.side == hostSide {
			return []client.Object{hostNamespace()}
		}
		return []client.Object{leafNamespace()}
	case *coordinationv1.Lease:
		return []client.Object{record(c.model.self)}
	case *v1alpha1.ClusterRegistration:
		return []client.Object{registration()}
	}
	return found
}

// reader reads a cluster, from the cache or live. It embeds cache.Cache only for the type, and
// implements Get and List.
type reader struct {
	cache.Cache
	contents
	live    bool
	watched *wakes // feeds the informers; nil for a cache without watchers
}

// objects returns the objects that a reader shows. The member's cache selects claims by their label, and
// records which ones Xylem did not create.
func (r reader) objects(like client.Object) []client.Object {
	all := r.contents.objects(like)
	if _, claims := like.(*corev1.PersistentVolumeClaim); !claims || r.live || r.side == hostSide {
		return all
	}
	var found []client.Object
	for _, obj := range all {
		if obj.GetLabels()[v1alpha1.LabelHost] == here.HostID {
			claim := *api.As[*corev1.PersistentVolumeClaim](obj)
			mirror.MarkLeafCreatedByOthers(&claim)
			found = append(found, &claim)
		}
	}
	return found
}

func (r reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	obj, err := api.Find(r.objects(into), key, into)
	if err == nil {
		r.copy(obj, into)
	}
	return err
}

// copy makes a deep copy of an object that was read live, and a shallow copy of a cached object,
// because caches share their objects.
func (r reader) copy(obj, into client.Object) {
	if r.live {
		obj = api.As[client.Object](obj.DeepCopyObject())
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj).Elem())
}

func (r reader) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	var like client.Object
	switch list.(type) {
	case *corev1.PersistentVolumeClaimList:
		like = &corev1.PersistentVolumeClaim{}
	case *corev1.PersistentVolumeList:
		like = &corev1.PersistentVolume{}
	case *corev1.PodList:
		like = &corev1.Pod{}
	case *snapshotv1.VolumeSnapshotList:
		like = &snapshotv1.VolumeSnapshot{}
	case *storagev1.StorageClassList:
		like = &storagev1.StorageClass{}
	case *v1alpha1.ClusterRegistrationList:
		like = &v1alpha1.ClusterRegistration{}
	default:
		return nil // the model does not contain events or nodes
	}
	var found []runtime.Object
	for _, obj := range r.objects(like) {
		if options.Namespace != "" && obj.GetNamespace() != options.Namespace || !r.model.matches(r.side, obj, options) {
			continue
		}
		if r.live {
			obj = api.As[client.Object](obj.DeepCopyObject())
		}
		found = append(found, obj)
	}
	return meta.SetList(list, found)
}

// matches reports whether an object has the index value that a list's options select.
func (m *Model) matches(s side, obj client.Object, options client.ListOptions) bool {
	if options.FieldSelector == nil {
		return true
	}
	for _, want := range options.FieldSelector.Requirements() {
		extract := m.indexes[indexed{s, fmt.Sprintf("%T", obj), want.Field}]
		if extract == nil {
			panic(fmt.Sprintf("there is no index %s of %T", want.Field, obj))
		}
		there := false
		for _, value := range extract(obj) {
			there = there || value == want.Value
		}
		if !there {
			return false
		}
	}
	return true
}

// indexed is a field index of a cache.
type indexed struct {
	side        side
	kind, field string
}

// indexer records the indexes of one side's caches.
type indexer struct {
	model *Model
	side  side
}

func (i indexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	i.model.indexes[indexed{i.side, fmt.Sprintf("%T", obj), field}] = extract
	return nil
}

// writer represents the API server for Xylem's writes. It executes the first write that changes the
// world, and rejects all later ones.
type writer struct {
	client.Client
	reader
	run *run
}

func (w writer) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return w.reader.Get(ctx, key, into, opts...)
}

func (w writer) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return w.reader.List(ctx, list, opts...)
}

// Status returns a writer for the status of claims, in which Xylem owns only the conditions.
func (w writer) Status() client.SubResourceWriter { return statusWriter{run: w.run} }

type statusWriter struct {
	client.SubResourceWriter
	run *run
}

func (s statusWriter) Apply(_ context.Context, obj runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	bytes, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	var applied struct {
		Status struct{ Conditions []metav1.Condition }
	}
	if err := json.Unmarshal(bytes, &applied); err != nil {
		return err
	}
	for _, c := range applied.Status.Conditions {
		s.run.tell(c.Reason)
	}
	return nil
}

// slot returns where the world has the object with that name, or nil if it has no such slot.
func (w writer) slot(obj client.Object) *id {
	s := &w.run.world.state
	switch obj.(type) {
	case *corev1.PersistentVolumeClaim:
		n := slices.Index(claimNames[:], obj.GetName())
		switch {
		case n < 0:
			return nil
		case w.side == hostSide:
			return &s.roots[n]
		}
		return &s.claims[n]
	case *corev1.PersistentVolume:
		if w.side == hostSide {
			for n, name := range hostNames {
				if name == obj.GetName() {
					return &s.hostState.pvs[n]
				}
			}
		}
		for n, name := range leafNames {
			if w.side == memberSide && name == obj.GetName() {
				return &s.memberState.pvs[n]
			}
		}
	}
	return nil
}

// there returns a copy of the object in a slot, or nil.
func (w writer) there(slot *id, like client.Object) encoded {
	if _, claim := like.(*corev1.PersistentVolumeClaim); claim {
		if there := w.model.objects.claim(*slot); there != nil {
			return there.DeepCopy()
		}
		return nil
	}
	if there := w.model.objects.pv(*slot); there != nil {
		return there.DeepCopy()
	}
	return nil
}

// unrecorded reports whether the world does not record an object.
func unrecorded(obj client.Object) bool {
	_, lease := obj.(*coordinationv1.Lease)
	return lease
}

func (w writer) Create(_ context.Context, obj client.Object, opts ...client.CreateOption) error {
	if unrecorded(obj) {
		return nil
	}
	slot := w.slot(obj)
	if slot == nil {
		return fmt.Errorf("the model has no slot for %T %s", obj, obj.GetName())
	}
	if *slot != 0 {
		return api.Exists(obj)
	}
	var options client.CreateOptions
	if options.ApplyOptions(opts); len(options.DryRun) > 0 {
		return nil
	}
	obj = api.As[client.Object](obj.DeepCopyObject())
	switch obj := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		obj.UID = w.model.unused(w.run.world, claimUIDs[:]...)
		obj.ManagedFields = writtenBy(options.FieldManager, w.run.world.now())
		obj.Finalizers, obj.Status.Phase = []string{pvcProtection}, corev1.ClaimPending
	case *corev1.PersistentVolume:
		obj.UID = w.model.unused(w.run.world, volumeUIDs("h", obj.Name)...)
		obj.Finalizers = append(obj.Finalizers, pvProtection)
		obj.Status.Phase = corev1.VolumePending
	}
	if obj.GetUID() == "" {
		return errors.New("the model has run out of UIDs")
	}
	obj.SetCreationTimestamp(w.run.world.now())
	return w.write("create", slot, nil, api.As[encoded](obj))
}

func (w writer) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	if unrecorded(obj) {
		return nil
	}
	slot := w.slot(obj)
	before, after, err := api.Patch(obj, patch, func(want metav1.Preconditions) (encoded, error) { return w.checked(slot, obj, want) })
	if err != nil {
		return err
	}
	return w.write("patch", slot, before, after)
}

func (w writer) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	slot := w.slot(obj)
	before, err := w.checked(slot, obj, api.Preconditions(opts))
	if err != nil {
		return err
	}
	after := api.As[encoded](before.DeepCopyObject())
	if after.GetDeletionTimestamp() == nil {
		after.SetDeletionTimestamp(&deleted)
	}
	return w.write("delete", slot, before, after)
}

// checked returns the object to write if it meets the preconditions, and an error otherwise.
func (w writer) checked(slot *id, obj client.Object, want metav1.Preconditions) (encoded, error) {
	if slot == nil || *slot == 0 {
		return nil, api.NotFound(obj, obj.GetName())
	}
	there := w.there(slot, obj)
	return there, api.Check(there, want)
}

// write writes an object if no earlier write has changed the world. It also checks the invariants for a second
// write, before the process is killed.
func (w writer) write(verb string, slot *id, before, after encoded) error {
	to := w.model.left(after)
	if to == *slot {
		return nil
	}
	violations := w.model.violations(w.run.world, w.side, before, after)
	if w.run.wrote != (written{}) {
		w.run.second = true
		w.run.misuses = append(w.run.misuses, violations...)
		return errKilled
	}
	w.run.violations = append(w.run.violations, violations...)
	w.run.wrote = written{verb: verb, target: target{w.side, fmt.Sprintf("%T", after), after.GetName()}}
	*slot = to
	if w.run.meanwhile != nil {
		w.run.world = w.run.meanwhile(w.run.world)
	}
	return nil
}

// left returns the ID of an object after a write, or 0 if the object was deleted and has no
// finalizers.
func (m *Model) left(obj encoded) id {
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		return 0
	}
	return m.objects.keep(obj)
}
