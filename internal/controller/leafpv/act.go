package leafpv

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

func (r *reconciler) act(ctx context.Context, o observed, d decision) error {
	switch d := d.(type) {
	case nothing:
		return nil
	case orphan:
		ctrl.LoggerFrom(ctx).Info("leaf volume without a root: its data are kept", "leaf", o.leaf.Name, "root", o.rootKey())
		return nil
	case surplus:
		ctrl.LoggerFrom(ctx).Info("surplus leaf volume: it is not used, and its data are kept", "leaf", o.leaf.Name, "root", o.rootKey(), "why", d.why)
		r.eventSurplus(o.root, o.leaf, d.why)
		return nil
	case patchLeaf:
		return r.Leaf.PatchVolume(ctx, actor, o.leaf, d.after, o.claim)
	case create:
		return r.create(ctx, o, d.host)
	case patchHost:
		return r.Root.Patch(ctx, actor, o.host, d.after)
	}
	return fmt.Errorf("unknown decision %T", d)
}

// create makes the host PV, which binds the root. A PV of that name that was
// not in the cache is either ours, just made, or makes us take another name.
func (r *reconciler) create(ctx context.Context, o observed, host *corev1.PersistentVolume) error {
	err := r.Root.Create(ctx, actor, host)
	if !apierrors.IsAlreadyExists(err) {
		if err == nil {
			r.eventMirrored(o.root, host)
		}
		return err
	}
	var there corev1.PersistentVolume
	if err := r.HostLive.Get(ctx, client.ObjectKeyFromObject(host), &there); err != nil {
		return fmt.Errorf("read the volume in the way: %w", err)
	}
	if cluster, _, uid, ours := mirror.LeafVolumeOf(&there); ours && cluster == r.ClusterID && uid == o.leaf.UID {
		return nil
	}
	return fmt.Errorf("create volume %s: %w", host.Name, err) // with the cache caught up, under another name
}

// orphans counts the leaf volumes that have no root, and tells the fleet.
type orphans struct {
	link *member.Link

	mu    sync.Mutex
	names map[string]struct{}
}

func newOrphans(link *member.Link) *orphans {
	link.Orphaned(0)
	return &orphans{link: link, names: map[string]struct{}{}}
}

func (o *orphans) set(name string, is bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, was := o.names[name]; was == is {
		return
	}
	if is {
		o.names[name] = struct{}{}
	} else {
		delete(o.names, name)
	}
	o.link.Orphaned(len(o.names))
}
