package pods

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/controller/rootpod"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/test/model/api"
)

// errKilled ends a reconcile at its second write, as if the process had been killed.
var errKilled = errors.New("the process was killed")

// kindsIn are the kinds of objects in the host and in the member.
var kindsIn = map[bool][]kind{true: {root, claim, hostVolume}, false: {leaf, leafClaim}}

// reader reads a cluster in a state. It embeds cache.Cache only for the type.
type reader struct {
	cache.Cache
	model *Model
	host  bool
	waits bool
	state func() state
}

// objects returns the objects with the type of like.
func (r reader) objects(like client.Object) []client.Object {
	var found []client.Object
	switch like.(type) {
	case *corev1.Node:
		return []client.Object{newNode(here), newNode(other)}
	case *corev1.Namespace:
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, UID: "namespace"}}
		if !r.host {
			ns.Labels = map[string]string{v1alpha1.LabelHost: here.HostID, v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}
		}
		return []client.Object{ns}
	case *storagev1.StorageClass:
		return []client.Object{newClass(v1alpha1.ProvisionerName, r.waits)}
	}
	s := r.state()
	for _, k := range kindsIn[r.host] {
		if obj := r.model.objects.byID[s[k]]; obj != nil && reflect.TypeOf(obj) == reflect.TypeOf(like) {
			found = append(found, obj)
		}
	}
	return found
}

func (r reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	obj, err := api.Find(r.objects(into), key, into)
	if err == nil {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj.DeepCopyObject()).Elem())
	}
	return err
}

// List ignores selectors, because each kind has one object, which any selector of root_pod selects.
func (r reader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	var like client.Object
	switch list.(type) {
	case *corev1.PodList:
		like = &corev1.Pod{}
	case *corev1.PersistentVolumeClaimList:
		like = &corev1.PersistentVolumeClaim{}
	case *corev1.PersistentVolumeList:
		like = &corev1.PersistentVolume{}
	default:
		return nil
	}
	var found []runtime.Object
	for _, obj := range r.objects(like) {
		found = append(found, obj.DeepCopyObject())
	}
	return meta.SetList(list, found)
}

// run is one reconcile in a world. Its first write changes the world.
type run struct {
	model      *Model
	world      world
	wrote      string
	violations []string
	reported   bool
}

func (r *run) Eventf(_, _ runtime.Object, kind, _, _, _ string, _ ...any) {
	r.reported = r.reported || kind == corev1.EventTypeWarning
}

// writer represents the API server of a cluster for Xylem's writes.
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

func (w writer) Status() client.SubResourceWriter { return statusWriter{run: w.run} }

// kindOf returns the kind of an object in a writer's cluster.
func (w writer) kindOf(obj client.Object) kind {
	switch _, pod := obj.(*corev1.Pod); {
	case pod && w.host:
		return root
	case pod:
		return leaf
	case w.host:
		return claim
	}
	return leafClaim
}

func (w writer) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	k := w.kindOf(obj)
	if w.run.world.state[k] != 0 {
		return api.Exists(obj)
	}
	made := api.Copy(obj)
	made.SetUID(w.run.model.unused(w.run.world, leafUIDs))
	made.SetCreationTimestamp(created)
	if made.GetUID() == "" {
		return errors.New("the model has run out of UIDs")
	}
	return w.run.write("create", k, made)
}

func (w writer) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	k := w.kindOf(obj)
	_, after, err := api.Patch(obj, patch, func(want metav1.Preconditions) (client.Object, error) { return w.run.checked(k, obj, want) })
	if err != nil {
		return err
	}
	return w.run.write("patch", k, after)
}

func (w writer) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	k := w.kindOf(obj)
	there, err := w.run.checked(k, obj, api.Preconditions(opts))
	if err != nil {
		return err
	}
	var options client.DeleteOptions
	if options.ApplyOptions(opts); k == root && options.GracePeriodSeconds != nil && *options.GracePeriodSeconds == 0 {
		return w.run.write("remove", k, nil)
	}
	after := api.Copy(there)
	if after.GetDeletionTimestamp() == nil {
		after.SetDeletionTimestamp(&deleted)
	}
	return w.run.write("delete", k, after)
}

type statusWriter struct {
	client.SubResourceWriter
	run *run
}

// Apply applies Xylem's condition and annotations to the root.
func (s statusWriter) Apply(_ context.Context, obj runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	bytes, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	var applied corev1.Pod
	if err := json.Unmarshal(bytes, &applied); err != nil {
		return err
	}
	there, err := s.run.checked(root, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: podName}}, metav1.Preconditions{UID: &applied.UID})
	if err != nil {
		return err
	}
	after := api.As[*corev1.Pod](api.Copy(there))
	// Xylem is the only owner of its keys, so those that the body lacks are removed.
	for key := range after.Annotations {
		if v1alpha1.Reserved(key) {
			delete(after.Annotations, key)
		}
	}
	for key, value := range applied.Annotations {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, key, value)
	}
	for _, c := range applied.Status.Conditions {
		c.LastTransitionTime = metav1.Time{}
		after.Status.Conditions = append(slices.DeleteFunc(after.Status.Conditions, func(has corev1.PodCondition) bool { return has.Type == c.Type }), c)
		s.run.reported = s.run.reported || c.Status == corev1.ConditionFalse
	}
	return s.run.write("apply the status of", root, after)
}

// checked returns the object to write if it meets the preconditions, and an error otherwise.
func (r *run) checked(k kind, like client.Object, want metav1.Preconditions) (client.Object, error) {
	there := r.model.objects.byID[r.world.state[k]]
	if there == nil {
		return nil, api.NotFound(like, like.GetName())
	}
	return there, api.Check(there, want)
}

// write writes an object, or removes it if it is nil, if no earlier write has changed the world.
func (r *run) write(verb string, k kind, after client.Object) error {
	to := id(0)
	if after != nil {
		to = r.model.objects.keep(after)
	}
	if to == r.world.state[k] {
		if r.wrote == "" && r.world.lagging == none {
			r.violations = append(r.violations, "I5: root_pod writes forever, without a change")
		}
		return nil
	}
	if r.wrote != "" {
		return errKilled
	}
	r.wrote = verb + " the " + k.String()
	r.violations = append(r.violations, r.model.violations(r.world, verb, k, after)...)
	r.world.state[k] = to
	return nil
}

// step runs one reconcile of root_pod, as in a process that has just started.
func (m *Model) step(ctx context.Context, w world) *run {
	r := &run{model: m, world: w}
	seen := w.seen()
	cached := func(host bool) reader {
		return reader{model: m, host: host, waits: w.waits, state: func() state { return seen }}
	}
	live := func(host bool) reader {
		return reader{model: m, host: host, waits: w.waits, state: func() state { return r.world.state }}
	}
	g := guard{}
	link := &member.Link{
		Member: here, Cache: cached(false), Live: live(false), Host: cached(true), HostLive: live(true), Recorder: r, Clock: clock.RealClock{},
		Snapshots: member.NewOptionalCache(), HostSnapshots: route.NewOptionalCache(), Attachments: member.NewOptionalCache(),
		MemberWriter:      guarded.NewMemberWriter(writer{reader: live(false), run: r}, here.HostID, here.Registration, g),
		HostWriter:        guarded.NewHostWriter(writer{reader: live(true), run: r}, here.Registration, g),
		CheckNotSuspended: g.CheckNotSuspended, RestoreTimes: func() fencing.RestoreTimes { return fencing.RestoreTimes{} },
		CheckUnrestored: func(context.Context) error { return nil },
		AnnotateFence:   func(context.Context, func(*coordinationv1.Lease) (*coordinationv1.Lease, error)) error { return nil },
	}
	if err := rootpod.Setup(link, rootpod.Options{SchedulerNominates: true, Mirrors: account.NewMirrorTracker(cached(true), live(true))}); err != nil {
		panic(err)
	}
	err := api.Recovered(func() error {
		_, err := link.Controllers()[0].Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: podName}})
		return err
	})
	if api.Panicked(err) {
		r.violations = append(r.violations, "root_pod panics: "+err.Error())
	}
	return r
}

// guard implements the guard of a manager that holds the fence.
type guard struct{}

func (guard) CheckFenceHeld() error                  { return nil }
func (guard) CheckNotSuspended() error               { return nil }
func (guard) CheckHostCurrent(context.Context) error { return nil }

// mayRunHere reports whether a Pod is bound to the virtual node, or will be because of its claim.
func (m *Model) mayRunHere(w world, pod *corev1.Pod) bool {
	c, there := get[*corev1.PersistentVolumeClaim](m, w.state, claim)
	return pod.Spec.NodeName == here.NodeName ||
		there && (c.Spec.VolumeName == volume || c.Spec.VolumeName == "" && c.Annotations[route.AnnSelectedNode] == here.NodeName)
}

// violations returns the invariants that a write of root_pod violates. w is the world before the write.
func (m *Model) violations(w world, verb string, k kind, after client.Object) []string { //nolint:gocyclo // a table
	pod, there := get[*corev1.Pod](m, w.state, root)
	running := w.started > 0 && there && pod.UID == rootUIDs[w.started-1]
	switch {
	case verb == "create" && running && w.recorded:
		return []string{"I3: a Pod whose containers have started gets a second leaf"}
	case verb == "create" && (!there || pod.DeletionTimestamp != nil || podstatus.IsPodFinished(pod)):
		return []string{"a leaf is created for a Pod that is gone, is being deleted, or has ended"}
	case verb == "delete" && k == leaf:
		was, _ := get[*corev1.Pod](m, w.state, leaf)
		if there && pod.DeletionTimestamp == nil && !podstatus.IsPodFinished(pod) && m.mayRunHere(w, pod) && was.Annotations[v1alpha1.AnnotationRootUID] == string(pod.UID) {
			return []string{"the leaf of a Pod that runs, or is to run, in this member is deleted"}
		}
	case verb == "remove" && w.state[leaf] != 0:
		if was, _ := get[*corev1.Pod](m, w.state, leaf); was.Annotations[v1alpha1.AnnotationRootUID] == string(pod.UID) {
			return []string{"a Pod is removed while its leaf exists"}
		}
	case k == root && after != nil && running && podstatus.HadLeafPod(pod) && !podstatus.HadLeafPod(api.As[*corev1.Pod](after)):
		return []string{"I3: the record of a leaf whose containers have started is removed"}
	}
	return nil
}
