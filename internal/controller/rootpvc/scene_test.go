package rootpvc

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/volume"
)

// scene is an observation in the making. Its leafVolume is the PV that the member has, whoever
// uses it.
type scene struct {
	observed
	// hosts are the PVs of the host, beside the promise that the root is bound to.
	hosts []corev1.PersistentVolume
	// other is another claim of the host, otherLeaf its leaf claim, and pods use the claims.
	other, otherLeaf *corev1.PersistentVolumeClaim
	pods             []corev1.Pod
}

// observe completes an observation with what the controller looks up in the caches.
func (s scene) observe() observed {
	ctx := context.Background()
	r, o := s.reconciler(), s.observed
	var err error
	if o.volume, err = (volume.Observer{Prover: r.Proof()}).OfClaim(ctx, o.root, o.leaf, o.origin); err != nil {
		panic(err)
	}
	o.refresh()
	o.leafVolume = nil
	if o.leaf != nil {
		if err := r.observeLeafVolume(ctx, &o); err != nil {
			panic(err)
		}
	}
	if o.volume != nil {
		checkOwner(ctx, r, o.volume)
	}
	return o
}

// checkOwner panics unless the controller whose step a plan is plans the same step by what it
// observes itself: else nobody would take it.
func checkOwner(ctx context.Context, r *reconciler, s *volume.Snapshot) {
	plan, observer := volume.Next(s), volume.Observer{Prover: r.Proof()}
	var own *volume.Snapshot
	var err error
	switch {
	case plan.Step == volume.None || plan.Owner == volume.RootPVC:
		return
	case plan.Owner == volume.LeafPV:
		own, err = observer.OfLeaf(ctx, s.Leaf.Name)
	default:
		own, err = observer.OfHost(ctx, s.Host.Name)
	}
	if err != nil || own == nil {
		panic(fmt.Sprintf("%s observes %v, %v", plan.Owner, own, err))
	}
	if got := volume.Next(own); got.By(plan.Owner) != plan.Step {
		panic(fmt.Sprintf("%s is to take step %s, and plans %+v", plan.Owner, plan.Step, got))
	}
}

// reconciler whose caches have the objects of the scene.
func (s scene) reconciler() *reconciler {
	host, leaf := newStore(index.SetupHost), newStore(index.SetupMember)
	host.add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: s.tenant}})
	if s.root != nil {
		host.add(s.root)
	}
	for i := range s.hosts {
		host.add(&s.hosts[i])
	}
	if s.promise != nil {
		host.add(s.promise)
	}
	if s.other != nil {
		host.add(s.other)
	}
	for i := range s.pods {
		host.add(&s.pods[i])
	}
	if s.leaf != nil {
		leaf.add(s.leaf)
	}
	if s.otherLeaf != nil {
		leaf.add(s.otherLeaf)
	}
	if s.leafVolume != nil {
		leaf.add(s.leafVolume)
	}
	return &reconciler{pace: newPace(), Options: Options{Book: account.NewBook()}, Link: &member.Link{
		Member: s.member, Host: host, Cache: leaf, Restores: func() fencing.Restores { return s.restores },
	}}
}

// awaits is what an observation is decided on whose next step is another controller's.
type awaits struct {
	owner volume.Owner
	step  volume.Step
}

func (awaits) decision() {}

// decided is a decision, and whose step it waits for.
func decided(o observed) decision {
	d := decide(o)
	if _, abstains := d.(abstain); abstains {
		plan := volume.Next(o.volume)
		return awaits{plan.Owner, plan.Step}
	}
	return d
}

// store is a cache of a few objects, with its indexes.
type store struct {
	cache.Cache
	objects []client.Object
	indexes map[string]client.IndexerFunc
	// late shows an object from so many reads of it on.
	late map[client.Object]int
}

func newStore(setup func(context.Context, client.FieldIndexer) error) *store {
	s := &store{indexes: map[string]client.IndexerFunc{}, late: map[client.Object]int{}}
	if err := setup(context.Background(), s); err != nil {
		panic(err)
	}
	return s
}

func (s *store) add(obj client.Object) { s.objects = append(s.objects, obj) }

func (s *store) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	s.indexes[fmt.Sprintf("%T %s", obj, field)] = extract
	return nil
}

func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, obj := range s.objects {
		if reflect.TypeOf(obj) != reflect.TypeOf(into) || client.ObjectKeyFromObject(obj) != key {
			continue
		}
		if s.late[obj]--; s.late[obj] >= 0 {
			break
		}
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj).Elem())
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
}

func (s *store) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	for _, obj := range s.objects {
		if value := reflect.ValueOf(obj).Elem(); value.Type() == items.Type().Elem() && s.matches(obj, options) {
			items.Set(reflect.Append(items, value))
		}
	}
	return nil
}

// matches reports whether an object has the values in indexes that a list asks for.
func (s *store) matches(obj client.Object, options client.ListOptions) bool {
	if options.FieldSelector == nil {
		return true
	}
	for _, want := range options.FieldSelector.Requirements() {
		extract := s.indexes[fmt.Sprintf("%T %s", obj, want.Field)]
		if extract == nil {
			panic(fmt.Sprintf("there is no index %s of %T", want.Field, obj))
		}
		if !slices.Contains(extract(obj), want.Value) {
			return false
		}
	}
	return true
}
