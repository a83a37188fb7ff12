// Package broken has a controller that reads unwatched objects, in every way that controllers can
// read objects.
package broken

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
)

type reconciler struct {
	*member.Link
	unnamed client.Reader
	look    looker
}

// looker is the package's own interface.
type looker interface{ look(context.Context) error }

type byName struct{ link *member.Link }

func (b byName) look(ctx context.Context) error {
	var node corev1.Node
	return b.link.Host.Get(ctx, client.ObjectKey{}, &node)
}

// Setup watches only host claims.
func Setup(link *member.Link) error {
	r := &reconciler{Link: link, look: byName{link}}
	return link.AddController("broken", 1, r, link.RootObjectSource(&corev1.PersistentVolumeClaim{}, member.RequestOfSameKey))
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// Reads of watched kinds and live reads are not reported.
	_, _ = index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Host, request.NamespacedName)
	_, _ = index.FindObject[corev1.Service](ctx, r.HostLive, request.NamespacedName)
	// Read through a generic function, and through a function for a specific kind.
	_, _, _ = index.FindStamped[corev1.Pod](ctx, r.Cache, r.HostID, request.NamespacedName)
	_, _ = index.HostVolumesOfLeaf(ctx, r.Host, r.ClusterID, request.Name)
	// Read through a variable that is one of two readers.
	from := r.Live
	if request.Name != "" {
		from = r.Cache
	}
	var class storagev1.StorageClass
	_ = from.Get(ctx, request.NamespacedName, &class)
	// Read through a list of objects, a function literal, and a method value.
	for _, object := range []client.Object{&corev1.Secret{}} {
		_ = r.Cache.Get(ctx, request.NamespacedName, object)
	}
	read := func(into client.ObjectList) error { return r.Cache.List(ctx, into) }
	_ = read(&corev1.EventList{})
	r.later(r.segments)
	// Read through an interface that the module defines.
	_ = r.look.look(ctx)
	// Read through a struct that contains the reader.
	carried := struct{ reader client.Reader }{r.Host}
	_ = carried.reader.Get(ctx, request.NamespacedName, &corev1.Namespace{})
	return reconcile.Result{}, nested(ctx, r.Host, &corev1.ConfigMap{}, r.unnamed)
}

func nested(ctx context.Context, host client.Reader, object client.Object, unnamed client.Reader) error {
	var unknown client.Object
	_ = host.Get(ctx, client.ObjectKey{}, unknown)
	_ = unnamed.Get(ctx, client.ObjectKey{}, &corev1.Pod{})
	_, err := index.GetIfExists(ctx, host, client.ObjectKey{Name: "x"}, object)
	return err
}

func (r *reconciler) later(do func(context.Context) error) { r.AddRunnable(do) }

func (r *reconciler) segments(ctx context.Context) error {
	return r.Cache.List(ctx, &storagev1.CSIStorageCapacityList{})
}
