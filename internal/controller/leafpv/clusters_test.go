package leafpv

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// cluster is a client that shares its objects with its readers, as a cache does, and records the
// PVs that are written.
type cluster struct {
	client.Client
	objects []client.Object
	indexes map[string]client.IndexerFunc
	written []*corev1.PersistentVolume
}

func (c *cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, obj := range c.objects {
		if reflect.TypeOf(obj) == reflect.TypeOf(into) && client.ObjectKeyFromObject(obj) == key {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c *cluster) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	var found []runtime.Object
	for _, obj := range c.objects {
		if fmt.Sprintf("%TList", obj) == fmt.Sprintf("%T", list) && c.matches(obj, options) {
			found = append(found, obj)
		}
	}
	return meta.SetList(list, found)
}

func (c *cluster) matches(obj client.Object, options client.ListOptions) bool {
	if options.FieldSelector == nil {
		return true
	}
	for _, want := range options.FieldSelector.Requirements() {
		if !slices.Contains(c.indexes[fmt.Sprintf("%T %s", obj, want.Field)](obj), want.Value) {
			return false
		}
	}
	return true
}

func (c *cluster) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	c.indexes[fmt.Sprintf("%T %s", obj, field)] = extract
	return nil
}

func (c *cluster) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	return c.write(obj)
}

func (c *cluster) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return c.write(obj)
}

func (c *cluster) write(obj client.Object) error {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok {
		return fmt.Errorf("unexpected write of a %T", obj)
	}
	c.written = append(c.written, pv)
	return nil
}

// clusters returns a host and a member that contain the observation's objects. The host also
// contains a PV for each name that the observation reports as taken.
func clusters(t testing.TB, s *volume.Observed) (host, leaf *cluster) {
	t.Helper()
	host = &cluster{indexes: map[string]client.IndexerFunc{}}
	if err := index.SetupHostIndexes(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	host.objects = []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: s.Tenant}}}
	host.objects = add(add(add(host.objects, s.Root, s.Successor), s.Host, s.Promise), s.Class)
	for i := range s.EarlierHosts {
		host.objects = append(host.objects, &s.EarlierHosts[i])
	}
	for name, taken := range map[string]bool{s.Name: s.PlainNameTaken, suffixed: s.SuffixedNameTaken, promiseOf(s.Root): s.Promise == nil && !s.PromiseLost} {
		if taken && name != "" && host.Get(t.Context(), types.NamespacedName{Name: name}, &corev1.PersistentVolume{}) != nil {
			host.objects = append(host.objects, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "in-the-way"}})
		}
	}
	leaf = &cluster{objects: add(add(nil, s.Leaf), s.LeafClaim)}
	return host, leaf
}

// promiseOf returns the name of the promise that a claim is bound to, or "".
func promiseOf(root *corev1.PersistentVolumeClaim) string {
	if root == nil || !hostpv.IsPromiseName(root.Spec.VolumeName) {
		return ""
	}
	return root.Spec.VolumeName
}

func add[T any, P interface {
	*T
	client.Object
}](objects []client.Object, more ...P) []client.Object {
	for _, obj := range more {
		if obj != nil {
			objects = append(objects, obj)
		}
	}
	return objects
}

// observedOf returns what the controller observes in the clusters of s, or nil if they have no leaf
// PV.
func observedOf(t testing.TB, s *volume.Observed) *volume.Observed {
	t.Helper()
	host, leaf := clusters(t, s)
	observed, err := observe.Observer{Rules: s.Rules, Prover: proof.Prover{Member: s.Member, Host: host, Cache: leaf,
		MayBeRestored: func(metav1.Object) bool { return s.MayBeRestored }, MayLackRoot: func(metav1.Object) bool { return s.LastClaimMayBeLost || s.RootMayBeLost }}}.ObserveLeafVolume(t.Context(), s.Name)
	if err != nil {
		t.Fatal(err)
	}
	return observed
}

// cached makes a cluster usable as a link's cache.
type cached struct {
	cache.Cache
	cluster *cluster
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return c.cluster.Get(ctx, key, into, opts...)
}

func (c cached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.cluster.List(ctx, list, opts...)
}

// controller returns the controller for two clusters, with caches that show the live state.
func controller(m mirror.Member, host, leaf *cluster) (*reconciler, *events.FakeRecorder) {
	recorder := events.NewFakeRecorder(10)
	return &reconciler{
		Link: &member.Link{Member: m, Host: host, HostLive: host, Cache: cached{cluster: leaf}, Live: leaf, Recorder: recorder,
			HostWriter:   guarded.NewHostWriter(host, m.Registration, guarded.HostOnlyGuard{}),
			MemberWriter: guarded.NewMemberWriter(leaf, m.HostID, m.Registration, guarded.HostOnlyGuard{})},
		Options: Options{Options: observe.Options{Orphans: account.NewOrphanTracker()}, Mirrors: account.NewMirrorTracker(host, host)},
	}, recorder
}

// take makes the controller act on a plan. It returns the PV written, if any, and the events
// emitted.
func take(t *testing.T, s *volume.Observed, plan lifecycle.Plan) (*corev1.PersistentVolume, []string) {
	t.Helper()
	host, leaf := clusters(t, s)
	r, recorder := controller(s.Member, host, leaf)
	if _, err := r.proceedWithPlan(t.Context(), s, plan); err != nil {
		t.Fatal(err)
	}
	close(recorder.Events)
	var emitted []string
	for event := range recorder.Events {
		emitted = append(emitted, event)
	}
	switch written := slices.Concat(host.written, leaf.written); len(written) {
	case 0:
		return nil, emitted
	case 1:
		return written[0], emitted
	default:
		t.Fatalf("%d writes", len(written))
		return nil, nil
	}
}
