package rootpvc

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/controller/rootpvc/observing"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// scene is the input of an observation: objects, most of which are in the caches, and the
// observer's results for others. Its leafVolume is the PV in the member, regardless of its user.
type scene struct {
	member                mirror.Member
	rules                 placement.Rules
	node                  *corev1.Node
	root                  *corev1.PersistentVolumeClaim
	class, leafClass      *storagev1.StorageClass
	leaf                  *corev1.PersistentVolumeClaim
	origin                mirror.Origin
	leafVolume            *corev1.PersistentVolume
	mirror                *corev1.PersistentVolume
	restores              fencing.Restores
	lost, boundAway       bool
	promise               *corev1.PersistentVolume
	podsHere              []corev1.Pod
	asked                 *corev1.PersistentVolume
	rivals, memberClasses []string
	tenant                types.UID
	namespace             *corev1.Namespace
	// labels are those of the host's namespace. unlisted: the cache does not have it.
	labels   map[string]string
	unlisted bool
	attempt  volume.Attempt
	// from is the data source of the root.
	from *volume.From
	// hosts are the PVs of the host, beside the promise that the root is bound to.
	hosts []corev1.PersistentVolume
	// other is another claim of the host, otherLeaf its leaf claim, and pods use the claims.
	other, otherLeaf *corev1.PersistentVolumeClaim
	pods             []corev1.Pod
}

// observe is the observation that the controller makes of a scene.
func (s scene) observe() observing.Claim {
	ctx := context.Background()
	r, key := s.reconciler(), types.NamespacedName{Namespace: "shop", Name: "data"}
	o, err := r.observer().OfClaim(ctx, key)
	if err != nil {
		panic(err)
	}
	if o.Observed == nil {
		return o
	}
	seen := o.Observed
	seen.Class, seen.Tenant = s.class, s.tenant
	seen.Placement = &volume.Placement{
		Node: s.node, Namespace: placement.Namespace{Name: "shop", Labels: s.labels, Known: !s.unlisted}, Inside: placement.Inside{Classes: s.memberClasses, Namespace: s.namespace}, LeafClass: s.leafClass, Provisioned: seen.Placement.Provisioned,
		Mirror: s.mirror, BoundAway: s.boundAway, Asked: s.asked, Rivals: s.rivals, Pods: s.podsHere,
		HostRestored: s.restores.Host, HostUnconfirmed: s.restores.HostUnconfirmed, Attempt: s.attempt, From: s.from,
	}
	if seen.Alone() {
		seen.PromiseLost = s.lost
	}
	checkOwner(ctx, r, seen)
	return o
}

// checkOwner panics unless the controller that owns a plan's step plans the same step based on its
// own observation. Otherwise, no controller would take the step.
func checkOwner(ctx context.Context, r *reconciler, s *volume.Observed) {
	plan, observer := lifecycle.Next(s), r.observer().Observer
	var own *volume.Observed
	var err error
	switch {
	case plan.Step == lifecycle.None || plan.Owner == lifecycle.RootPVC:
		return
	case plan.Owner == lifecycle.LeafPV:
		own, err = observer.OfLeaf(ctx, s.Leaf.Name)
	default:
		own, err = observer.OfHost(ctx, s.Host.Name)
	}
	if err != nil || own == nil {
		panic(fmt.Sprintf("%s observes %v, %v", plan.Owner, own, err))
	}
	if got := lifecycle.Next(own); got.By(plan.Owner) != plan.Step {
		panic(fmt.Sprintf("%s must take step %s, but plans %+v", plan.Owner, plan.Step, got))
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
	return newReconciler(&member.Link{
		Member: s.member, Host: host, Cache: leaf, Restores: func() fencing.Restores { return s.restores }, Rules: s.rules,
	}, Options{Book: account.NewBook()})
}

// decision is what a plan comes to.
type decision struct {
	// owner of the step, if that is another controller's.
	owner lifecycle.Owner
	step  lifecycle.Step
	// reason of what is reported; live: once a live read shows it.
	reason string
	live   bool
	// rootGone: the leaf claim that is withdrawn has no root.
	rootGone bool
	// volume that a leaf claim is created for, and what it grows to.
	volume, to string
}

func decided(o observing.Claim) decision {
	plan := planned(o)
	if plan.Owner != lifecycle.RootPVC {
		next := lifecycle.Next(o.Observed)
		return decision{owner: next.Owner, step: next.Step}
	}
	d := decision{step: plan.Step}
	if plan.Report != nil {
		d.reason, d.live = plan.Report.Reason, plan.Phase == lifecycle.Unconfirmed || plan.Phase == lifecycle.InUse
	}
	switch plan.Step {
	case lifecycle.Withdraw:
		d.rootGone = o.Observed.Root == nil
	case lifecycle.CreateClaim:
		leaf, refusal := o.Observed.LeafClaim()
		if refusal != nil {
			panic(refusal)
		}
		d.volume = leaf.Spec.VolumeName
	case lifecycle.Grow:
		to, _ := pvc.Growth(o.Root, o.Leaf)
		d.to = to.String()
	default:
	}
	return d
}

// takes is the decision to take a step of this controller.
func takes(step lifecycle.Step) decision { return decision{step: step} }

// step is the plan to take one of this controller.
func step(s lifecycle.Step) lifecycle.Plan { return lifecycle.Plan{Owner: lifecycle.RootPVC, Step: s} }

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
