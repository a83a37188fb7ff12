package route

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

var (
	one = Owner{NodeName: "kosmos-one", ClusterID: "id-one"}
	two = Owner{NodeName: "kosmos-two", ClusterID: "id-two"}
)

func pod(name, node, nominated string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{NominatedNodeName: nominated}}
}

func pushedPod(name, node, nominated string) *corev1.Pod {
	p := pod(name, node, nominated)
	p.Status.Conditions = []corev1.PodCondition{{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue}}
	return p
}

func claim(name, selected, placed string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{}}}
	if selected != "" {
		c.Annotations[AnnSelectedNode] = selected
	}
	if placed != "" {
		c.Annotations[v1alpha1.AnnotationPlacedIn] = placed
	}
	return c
}

// reported returns a claim on which the root_pvc of the second member has reported.
func reported(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim.Annotations[v1alpha1.AnnotationReportedBy] = two.ClusterID
	return claim
}

func boundClaim(name, placed, provisioner string) *corev1.PersistentVolumeClaim {
	c := claim(name, "", placed)
	c.Spec.VolumeName = "pv"
	if provisioner != "" {
		c.Annotations[volumehelpers.AnnStorageProvisioner] = provisioner
	}
	return c
}

func volume(name, cluster string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if cluster != "" {
		pv.Labels = map[string]string{v1alpha1.LabelClusterID: cluster}
	}
	return pv
}

func TestOwnersOf(t *testing.T) {
	for name, tc := range map[string]struct {
		object client.Object
		want   []Owner
	}{
		"an unplaced Pod":                    {pod("a", "", ""), nil},
		"a Pod on a member's node":           {pod("a", one.NodeName, ""), []Owner{one}},
		"a Pod on a host node":               {pod("a", "worker-1", ""), nil},
		"a Pod nominated to a member's node": {pod("a", "", one.NodeName), []Owner{one}},
		"a Pod bound to a member's node after it was nominated to another member's": {pod("a", one.NodeName, two.NodeName), []Owner{one, two}},
		"a Pod that runs before it is bound, no longer nominated":                   {pushedPod("a", "", ""), []Owner{one, two}},
		"a Pod that runs before it is bound, nominated to another member's node":    {pushedPod("a", "", two.NodeName), []Owner{one, two}},
		"a Pod that runs and is bound to the member's node":                         {pushedPod("a", one.NodeName, ""), []Owner{one}},
		"an unplaced claim":                                                       {claim("a", "", ""), nil},
		"a claim with a member's selected node":                                   {claim("a", one.NodeName, ""), []Owner{one}},
		"a claim placed in a member":                                              {claim("a", "", one.ClusterID), []Owner{one}},
		"a claim placed in a member, with another member's node selected":         {claim("a", two.NodeName, one.ClusterID), []Owner{one, two}},
		"a claim whose selected node is a cluster ID":                             {claim("a", one.ClusterID, one.NodeName), nil},
		"an unplaced claim bound to an existing volume":                           {boundClaim("a", "", ""), []Owner{one, two}},
		"an unplaced claim with Xylem's provisioner, bound to an existing volume": {boundClaim("a", "", v1alpha1.ProvisionerName), []Owner{one, two}},
		"a bound claim that is placed":                                            {boundClaim("a", one.ClusterID, v1alpha1.ProvisionerName), []Owner{one}},
		"an unplaced, bound claim with another provisioner":                       {boundClaim("a", "", "ebs.csi.aws.com"), nil},
		"a member's volume":                                                       {volume("a", one.ClusterID), []Owner{one}},
		"a host volume without a member":                                          {volume("a", ""), nil},
		"a volume in a cluster that is not registered":                            {volume("a", "id-three"), nil},
		"a claim without a member, on which a member reported":                    {reported(claim("a", "", "")), []Owner{two}},
		"a claim that is placed elsewhere, on which a member reported":            {reported(claim("a", "", one.ClusterID)), []Owner{one}},
		"a claim that is selected elsewhere, on which a member reported":          {reported(claim("a", one.NodeName, "")), []Owner{one}},
		"a virtual node": {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelClusterID: two.ClusterID}}}, []Owner{two}},
		"another node":   {&corev1.Node{}, nil},
		"a class":        {&storagev1.StorageClass{}, []Owner{one, two}},
		"a namespace":    {&corev1.Namespace{}, []Owner{one, two}},
		"a member's capacity": {&storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{v1alpha1.LabelClusterID: two.ClusterID}}}, []Owner{two}},
		"another driver's capacity": {&storagev1.CSIStorageCapacity{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []Owner
			for _, o := range []Owner{one, two} {
				owned := concernsMember(o.routingKeys(), tc.object)
				if owned {
					got = append(got, o)
				}
				// A subscription is filled by the same keys that route its events.
				names, err := ownerIndexValues(tc.object)
				if err != nil {
					t.Fatal(err)
				}
				listed := slices.ContainsFunc(o.routingKeys(), func(k ownerKey) bool { return slices.Contains(names, k.String()) })
				if listed != owned {
					t.Errorf("events and lists disagree about %v", o)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
	for _, object := range []client.Object{pod("a", "", ""), claim("a", "", ""), volume("a", "")} {
		if concernsMember(Owner{}.routingKeys(), object) {
			t.Errorf("an Owner without names owns a %T without a member", object)
		}
	}
}

// reads is a cache that has only the method that the router uses. It returns informers for existing
// objects.
type reads struct {
	cache.Cache
	pods []*corev1.Pod
	err  error
	// listed is called when the router lists the objects, before they are returned.
	listed   func()
	handlers []toolscache.ResourceEventHandler
}

func (r *reads) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if _, capacities := object.(*storagev1.CSIStorageCapacity); capacities {
		return namespaced{reads: r}, r.err
	}
	there := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	if _, pods := object.(*corev1.Pod); pods {
		for _, pod := range r.pods {
			if err := there.Add(pod); err != nil {
				return nil, err
			}
		}
	}
	return informer{reads: r, there: there}, r.err
}

// routed returns a router for a cache.
func routed(t *testing.T, r *reads) *Router {
	t.Helper()
	router := New(r)
	if err := router.SetupHandlers(t.Context()); err != nil {
		t.Fatal(err)
	}
	return router
}

type informer struct {
	toolscache.SharedIndexInformer
	reads *reads
	there toolscache.Indexer
}

func (i informer) AddIndexers(indexers toolscache.Indexers) error {
	return i.there.AddIndexers(indexers)
}

func (i informer) GetIndexer() toolscache.Indexer { return indexer{i.there, i.reads} }

func (i informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.reads.handlers = append(i.reads.handlers, h)
	return nil, nil
}

// namespaced is an informer without an indexer, like the informer of a kind that is watched only in
// some namespaces.
type namespaced struct {
	cache.Informer
	reads *reads
}

func (n namespaced) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	n.reads.handlers = append(n.reads.handlers, h)
	return nil, nil
}

type indexer struct {
	toolscache.Indexer
	reads *reads
}

func (i indexer) ByIndex(name, value string) ([]any, error) {
	if i.reads.listed != nil {
		i.reads.listed()
	}
	return i.Indexer.ByIndex(name, value)
}

// subscriber records the objects for which it was called.
type subscriber struct {
	ctx   context.Context //nolint:containedctx // ended by the tests
	end   context.CancelFunc
	asked []string
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func subscribe(t *testing.T, r *Router, o Owner, kind client.Object, only ...ConcernsFunc) *subscriber {
	t.Helper()
	s := &subscriber{queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())}
	t.Cleanup(s.queue.ShutDown)
	s.ctx, s.end = context.WithCancel(t.Context())
	t.Cleanup(s.end)
	source := r.MemberSource(o, kind, func(_ context.Context, obj client.Object) []reconcile.Request {
		s.asked = append(s.asked, obj.GetName())
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetName()}}}
	}, only...)
	if err := source.Start(s.ctx, s.queue); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *subscriber) take() []string {
	asked := s.asked
	s.asked = nil
	return asked
}

func TestDeliver(t *testing.T) {
	for name, tc := range map[string]struct {
		was, is  any
		one, two []string
	}{
		"one owner":                           {pod("a", one.NodeName, ""), nil, []string{"a"}, nil},
		"no owner":                            {pod("a", "", ""), nil, nil, nil},
		"an old and a new owner":              {pod("a", "", one.NodeName), pod("a", "", two.NodeName), []string{"a"}, []string{"a"}},
		"only an old owner":                   {pod("a", "", one.NodeName), pod("a", "", ""), []string{"a"}, nil},
		"two fields name the same owner":      {pod("a", one.NodeName, one.NodeName), nil, []string{"a"}, nil},
		"both states have the same owner":     {pod("a", "", one.NodeName), pod("a", one.NodeName, one.NodeName), []string{"a", "a"}, nil},
		"a deletion that the informer missed": {toolscache.DeletedFinalStateUnknown{Key: "shop/a", Obj: pod("a", one.NodeName, "")}, nil, []string{"a"}, nil},
		"a tombstone without an object":       {toolscache.DeletedFinalStateUnknown{Key: "shop/a"}, nil, nil, nil},
		"another kind":                        {claim("a", one.NodeName, ""), nil, nil, nil},
		"not an object":                       {"a", nil, nil, nil},
		"an early Pod concerns every member":  {pushedPod("a", "", ""), nil, []string{"a"}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := routed(t, &reads{})
			first, second := subscribe(t, r, one, &corev1.Pod{}), subscribe(t, r, two, &corev1.Pod{})
			r.deliverEvent(objectOfEvent(tc.was), objectOfEvent(tc.is))
			if diff := cmp.Diff(tc.one, first.take()); diff != "" {
				t.Errorf("requests of the first member (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.two, second.take()); diff != "" {
				t.Errorf("requests of the second member (-want +got):\n%s", diff)
			}
		})
	}
}

// A member may have a leaf of a claim that names another member or none, so DeletionsSource reports deletions
// in all members.
func TestEnds(t *testing.T) {
	withUID := func(uid types.UID) *corev1.PersistentVolumeClaim {
		c := claim("a", "", one.ClusterID)
		c.UID = uid
		return c
	}
	for name, tc := range map[string]struct {
		was, is client.Object
		want    []string
	}{
		"created": {nil, withUID("1"), nil},
		"changed": {withUID("1"), withUID("1"), nil},
		"deleted": {withUID("1"), nil, []string{"a"}},
		"replaced by another object with the same name": {withUID("1"), withUID("2"), []string{"a"}},
		"another kind": {pod("a", one.NodeName, ""), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := routed(t, &reads{})
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			t.Cleanup(queue.ShutDown)
			var got []string
			if err := r.DeletionsSource(&corev1.PersistentVolumeClaim{}, func(_ context.Context, obj client.Object) []reconcile.Request {
				got = append(got, obj.GetName())
				return nil
			}).Start(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			r.deliverEvent(tc.was, tc.is)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reported objects (-want +got):\n%s", diff)
			}
		})
	}
}

// A subscription does not miss an object that is created while it is filled, because the
// subscription is created before the list.
func TestSubscribesBeforeItLists(t *testing.T) {
	host := &reads{pods: []*corev1.Pod{pod("there", one.NodeName, ""), pod("elsewhere", two.NodeName, ""), pushedPod("early", "", one.NodeName)}}
	r := routed(t, host)
	host.listed = sync.OnceFunc(func() { r.deliverEvent(nil, pod("meanwhile", one.NodeName, "")) })
	s := subscribe(t, r, one, &corev1.Pod{})
	got := s.take()
	slices.Sort(got)
	if diff := cmp.Diff([]string{"early", "meanwhile", "there"}, got); diff != "" {
		t.Errorf("reported objects (-want +got):\n%s", diff)
	}
	if s.queue.Len() != 3 {
		t.Errorf("%d requests are queued, want 3", s.queue.Len())
	}
}

func TestEach(t *testing.T) {
	other := pod("of another namespace", one.NodeName, "")
	other.Namespace = "other"
	r := routed(t, &reads{pods: []*corev1.Pod{pod("there", one.NodeName, one.NodeName), pod("elsewhere", two.NodeName, ""), pushedPod("early", "", one.NodeName), other}})
	for namespace, want := range map[string][]string{
		metav1.NamespaceAll: {"early", "of another namespace", "there"},
		"shop":              {"early", "there"},
		"unowned":           nil,
	} {
		var got []string
		if err := r.VisitObjects(one, &corev1.Pod{}, namespace, func(obj client.Object) { got = append(got, obj.GetName()) }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in namespace %q (-want +got):\n%s", namespace, diff)
		}
	}
}

func TestUnsubscribesWithItsContext(t *testing.T) {
	r := routed(t, &reads{})
	gone, stays := subscribe(t, r, one, &corev1.Pod{}), subscribe(t, r, one, &corev1.Pod{})
	ended := make(chan struct{})
	// Functions that wait for the same context run in any order. So wait until the router has
	// dropped the subscription.
	gone.end()
	go func() {
		defer close(ended)
		for {
			r.mu.RLock()
			n := len(r.subscriptions[reflect.TypeFor[*corev1.Pod]()][ownerKey{byNode, one.NodeName}])
			r.mu.RUnlock()
			if n == 1 {
				return
			}
		}
	}()
	<-ended
	r.deliverEvent(nil, pod("a", one.NodeName, ""))
	if got := gone.take(); got != nil {
		t.Errorf("a subscription that has ended received %v", got)
	}
	if diff := cmp.Diff([]string{"a"}, stays.take()); diff != "" {
		t.Errorf("requests of the other subscription (-want +got):\n%s", diff)
	}
	stays.end()
	for {
		r.mu.RLock()
		n := len(r.subscriptions[reflect.TypeFor[*corev1.Pod]()])
		r.mu.RUnlock()
		if n == 0 {
			return // both have ended
		}
	}
}

// The requests for an event may depend on other host objects, and a new Link may subscribe while
// the event is delivered. The router must not deadlock.
func TestRequestsReadObjectsWhileALinkBegins(t *testing.T) {
	r := routed(t, &reads{})
	begun := make(chan struct{})
	read := func(context.Context, client.Object) []reconcile.Request {
		go func() {
			defer close(begun)
			r.addSubscription(two.routingKeys(), reflect.TypeFor[*corev1.Pod](), &subscription{ctx: t.Context()})
		}()
		for r.mu.TryRLock() { // until the subscription waits
			r.mu.RUnlock()
			runtime.Gosched()
		}
		if err := r.VisitObjects(one, &corev1.Pod{}, metav1.NamespaceAll, func(client.Object) {}); err != nil {
			t.Error(err)
		}
		return nil
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	r.addSubscription(one.routingKeys(), reflect.TypeFor[*corev1.Pod](), &subscription{ctx: t.Context(), requests: read, queue: queue})
	r.deliverEvent(nil, pod("a", one.NodeName, ""))
	<-begun
}

func TestSourceErrors(t *testing.T) {
	down := errors.New("cache is not started")
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	none := func(context.Context, client.Object) []reconcile.Request { return nil }
	if err := routed(t, &reads{}).MemberSource(one, &corev1.Secret{}, none).Start(t.Context(), queue); err == nil {
		t.Error("a kind that is not routed has a source")
	}
	if err := New(&reads{err: down}).SetupHandlers(t.Context()); !errors.Is(err, down) {
		t.Errorf("error is %v, want %v", err, down)
	}
}

func TestSetupPassesOnEveryKindOfEvent(t *testing.T) {
	host := &reads{}
	r := routed(t, host)
	if len(host.handlers) != len(routedKinds()) {
		t.Fatalf("got %d handlers for %d kinds", len(host.handlers), len(routedKinds()))
	}
	s := subscribe(t, r, one, &corev1.Pod{})
	host.handlers[0].OnAdd(pod("added", one.NodeName, ""), false)
	host.handlers[0].OnAdd(pod("there at the start", one.NodeName, ""), true)
	host.handlers[0].OnUpdate(pod("left", one.NodeName, ""), pod("left", "", ""))
	again := pod("listed again", one.NodeName, "")
	again.ResourceVersion = "7"
	host.handlers[0].OnUpdate(again, again.DeepCopy())
	resynced := pod("reconciled after hours", one.NodeName, "")
	resynced.ResourceVersion = "7"
	host.handlers[0].OnUpdate(resynced, resynced)
	host.handlers[0].OnDelete(pod("deleted", one.NodeName, ""))
	if diff := cmp.Diff([]string{"added", "there at the start", "left", "reconciled after hours", "reconciled after hours", "deleted"}, s.take()); diff != "" {
		t.Errorf("reported objects (-want +got):\n%s", diff)
	}
}

// If an informer has no indexer, the router keeps the objects that it reports.
func TestKeepsObjectsOfInformersWithoutIndexer(t *testing.T) {
	host := &reads{}
	r := routed(t, host)
	capacity := func(name string) *storagev1.CSIStorageCapacity {
		return &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{
			Namespace: "xylem-system", Name: name, Labels: map[string]string{v1alpha1.LabelClusterID: one.ClusterID}}}
	}
	state := host.handlers[len(host.handlers)-1]
	state.OnAdd(capacity("stays"), true)
	state.OnAdd(capacity("goes"), true)
	state.OnAdd(capacity("is lost"), true)
	state.OnUpdate(capacity("stays"), capacity("stays"))
	state.OnDelete(capacity("goes"))
	state.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "xylem-system/is lost", Obj: capacity("is lost")})
	s := subscribe(t, r, one, &storagev1.CSIStorageCapacity{})
	if diff := cmp.Diff([]string{"stays"}, s.take()); diff != "" {
		t.Errorf("a subscription began with (-want +got):\n%s", diff)
	}
	state.OnAdd(capacity("comes"), false)
	if diff := cmp.Diff([]string{"comes"}, s.take()); diff != "" {
		t.Errorf("reported objects (-want +got):\n%s", diff)
	}
}

// An update does not concern a controller if it does not change what the controller reads. A
// resync does, and so does an update after which the object concerns another member.
func TestConcerns(t *testing.T) {
	named := PartChanged(func(pod *corev1.Pod) string { return pod.Labels["app"] })
	version := func(pod *corev1.Pod, version, app string) *corev1.Pod {
		pod.ResourceVersion, pod.Labels = version, map[string]string{"app": app}
		return pod
	}
	same := version(pod("a", one.NodeName, ""), "1", "shop")
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		want          []string
	}{
		"a relevant change":    {same, version(pod("a", one.NodeName, ""), "2", "db"), []string{"a", "a"}},
		"an irrelevant change": {same, version(pod("a", one.NodeName, ""), "2", "shop"), nil},
		"a relist":             {same, version(pod("a", one.NodeName, ""), "1", "db"), nil},
		"a resync":             {same, same, []string{"a", "a"}},
		"the object begins to concern the member":      {version(pod("a", two.NodeName, ""), "1", "shop"), version(pod("a", one.NodeName, ""), "2", "shop"), []string{"a"}},
		"the object ceases to concern the member":      {version(pod("a", one.NodeName, ""), "1", "shop"), version(pod("a", two.NodeName, ""), "2", "shop"), []string{"a"}},
		"the object names the member in another field": {version(pod("a", "", one.NodeName), "1", "shop"), version(pod("a", one.NodeName, ""), "2", "shop"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := routed(t, &reads{})
			asked := subscribe(t, r, one, &corev1.Pod{}, named)
			r.deliverUpdate(tc.before, tc.after)
			if diff := cmp.Diff(tc.want, asked.take()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
