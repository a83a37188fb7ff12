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
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// scene is the input of an observation: some of its objects are in the caches, and the other fields
// replace results of the observer. leafVolume is the PV in the member, whichever claim uses it.
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
	restores              fencing.RestoreTimes
	lost, boundAway       bool
	promise               *corev1.PersistentVolume
	podsHere              []corev1.Pod
	asked                 *corev1.PersistentVolume
	rivals, memberClasses []string
	tenant                types.UID
	namespace             *corev1.Namespace
	// labels are the labels of the host's namespace. unlisted means that the cache lacks this
	// namespace.
	labels   map[string]string
	unlisted bool
	attempt  volume.Attempt
	// from is the root's data source.
	from *volume.SourceInMember
	// hosts are the host PVs, except for the promise to which the root is bound.
	hosts []corev1.PersistentVolume
	// other is another claim in the host, otherLeaf is its leaf claim, and pods use the claims.
	other, otherLeaf *corev1.PersistentVolumeClaim
	pods             []corev1.Pod
}

// observe returns what the controller observes in the scene.
func (s scene) observe() observe.Claim {
	ctx := context.Background()
	r, key := s.reconciler(), types.NamespacedName{Namespace: "shop", Name: "data"}
	o, err := r.newClaimObserver().ObserveClaim(ctx, key)
	if err != nil {
		panic(err)
	}
	if o.Stale != nil {
		checkOwner(ctx, r, o.Stale.Observed)
	}
	if o = subjectOf(o); o.Observed == nil {
		return o
	}
	seen := o.Observed
	seen.Class, seen.Tenant = s.class, s.tenant
	seen.Placement = &volume.Placement{
		Node: s.node, Namespace: placement.Namespace{Name: "shop", Labels: s.labels, Known: !s.unlisted}, MemberObjects: placement.MemberObjects{Classes: s.memberClasses, Namespace: s.namespace}, LeafClass: s.leafClass, ProvisionedVolume: seen.Placement.ProvisionedVolume,
		UnboundMirror: s.mirror, BoundOutsideMember: s.boundAway, RequestedVolume: s.asked, RivalMembers: s.rivals, PromisePods: s.podsHere,
		HostRestored: s.restores.Host, HostRestoreUnconfirmed: s.restores.HostUnconfirmed, Attempt: s.attempt, Source: s.from,
	}
	if seen.ClaimWithoutVolume() {
		seen.PromiseLost = s.lost
	}
	checkOwner(ctx, r, seen)
	return o
}

// checkOwner panics unless the controller that owns a plan's step plans the same step based on its
// own observation. Otherwise, no controller would take the step.
func checkOwner(ctx context.Context, r *reconciler, s *volume.Observed) {
	plan, observer := lifecycle.NextPlan(s), r.newClaimObserver()
	var own *volume.Observed
	var err error
	switch {
	case plan.Step == lifecycle.None || plan.Owner == lifecycle.RootPVC:
		return
	case plan.Owner == lifecycle.LeafPV:
		own, err = observer.ObserveLeafVolume(ctx, s.Leaf.Name)
	default:
		own, err = observer.ObserveHostVolume(ctx, s.Host.Name)
	}
	if err != nil || own == nil {
		panic(fmt.Sprintf("%s observes %v, %v", plan.Owner, own, err))
	}
	if got := lifecycle.NextPlan(own); got.StepOwnedBy(plan.Owner) != plan.Step {
		panic(fmt.Sprintf("%s must take step %s, but plans %+v", plan.Owner, plan.Step, got))
	}
}

// reconciler returns a reconciler whose caches contain the objects of the scene.
func (s scene) reconciler() *reconciler {
	host, leaf := newStore(hostIndexes), newStore(memberIndexes)
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
		Member: s.member, Host: host, Cache: leaf, RestoreTimes: func() fencing.RestoreTimes { return s.restores }, Rules: s.rules, Clock: clock.RealClock{},
	}, Options{Options: observe.Options{Orphans: account.NewOrphanTracker()}})
}

// decision contains the parts of a plan that the tests compare.
type decision struct {
	// owner is the step's owner, if another controller must take the step.
	owner lifecycle.Owner
	step  lifecycle.Step
	// reason is the reported reason. live means that it is reported only after a live read.
	reason string
	live   bool
	// rootGone means that the withdrawn leaf claim has no root.
	rootGone bool
	// volume is the volume for which a leaf claim is created. to is its size after an expansion.
	volume, to string
}

func decided(o observe.Claim) decision {
	if o.Stale != nil {
		if next := lifecycle.NextPlan(o.Stale.Observed); next.Step != lifecycle.None && next.Owner != lifecycle.RootPVC {
			return decision{owner: next.Owner, step: next.Step}
		}
	}
	plan := planForClaim(o)
	if plan.Owner != lifecycle.RootPVC {
		next := lifecycle.NextPlan(o.Observed)
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
		leaf, refusal := volume.LeafClaim(o.Observed)
		if refusal != nil {
			panic(refusal)
		}
		d.volume = leaf.Spec.VolumeName
	case lifecycle.Grow:
		to, _ := pvc.LeafStorageRequest(o.Root, o.Leaf)
		d.to = to.String()
	default:
	}
	return d
}

// takes returns the decision to take one of this controller's steps.
func takes(step lifecycle.Step) decision { return decision{step: step} }

// step returns a plan with one of this controller's steps.
func step(s lifecycle.Step) lifecycle.Plan { return lifecycle.Plan{Owner: lifecycle.RootPVC, Step: s} }

// store is a cache of a few objects, with its indexes.
type store struct {
	cache.Cache
	objects []client.Object
	indexes indexes
	// late is the number of reads that do not find the object yet.
	late map[client.Object]int
}

// hostIndexes and memberIndexes are the indexes of the caches. They take longer to set up than a store takes
// to fill.
var hostIndexes, memberIndexes = indexesOf(index.SetupHostIndexes), indexesOf(index.SetupMemberIndexes)

type indexes map[string]client.IndexerFunc

func indexesOf(setup func(context.Context, client.FieldIndexer) error) indexes {
	i := indexes{}
	if err := setup(context.Background(), i); err != nil {
		panic(err)
	}
	return i
}

func (i indexes) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	i[indexOf(obj, field)] = extract
	return nil
}

func indexOf(obj client.Object, field string) string {
	return reflect.TypeOf(obj).String() + " " + field
}

func newStore(i indexes) *store { return &store{indexes: i, late: map[client.Object]int{}} }

func (s *store) add(obj client.Object) { s.objects = append(s.objects, obj) }

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

// matches reports whether an object has the index values that a list selects.
func (s *store) matches(obj client.Object, options client.ListOptions) bool {
	if options.FieldSelector == nil {
		return true
	}
	for _, want := range options.FieldSelector.Requirements() {
		extract := s.indexes[indexOf(obj, want.Field)]
		if extract == nil {
			panic(fmt.Sprintf("index %s of %T does not exist", want.Field, obj))
		}
		if !slices.Contains(extract(obj), want.Value) {
			return false
		}
	}
	return true
}
