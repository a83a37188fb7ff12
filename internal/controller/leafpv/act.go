package leafpv

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/proof"
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
	case unused:
		ctrl.LoggerFrom(ctx).Info("leaf volume that may be its root's own is not used: its data are kept", "leaf", o.leaf.Name, "root", o.rootKey(), "why", d.why)
		r.eventUnused(o, d)
		return nil
	case patchLeaf:
		return r.Leaf.PatchVolume(ctx, actor, o.leaf, d.after, o.claim)
	case create:
		return r.create(ctx, o, d.host)
	case adopt:
		return r.adopt(ctx, o, d.host)
	case patchHost:
		return r.Root.Patch(ctx, actor, o.host, d.after)
	case fulfil:
		return r.fulfil(ctx, o, d.after)
	}
	return fmt.Errorf("unknown decision %T", d)
}

// adopt makes the host PV of a volume that was let go of, for the claim that asks
// for it: if, by live reads, the claim is the one that was seen and asks for it
// still, so that the earlier one of its name is gone, and nothing holds the volume.
func (r *reconciler) adopt(ctx context.Context, o observed, host *corev1.PersistentVolume) error {
	asking, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.HostLive, client.ObjectKeyFromObject(o.asking))
	if err != nil || asking == nil || asking.UID != o.asking.UID || !mirror.AsksFor(asking, o.leaf, r.Member) {
		return err
	}
	leaf, err := index.Find[corev1.PersistentVolume](ctx, r.Live, index.Named(o.leaf.Name))
	if err != nil || leaf == nil || leaf.UID != o.leaf.UID || leaf.Status.Phase != corev1.VolumeReleased {
		return err
	}
	if err := r.Root.Create(ctx, actor, host); err != nil {
		return err
	}
	r.eventAdopted(asking, host)
	return nil
}

// fulfil records the leaf PV on its promise, if a live read shows that it is there
// and held: a promise may have had a disk before, which a cache that lags still has.
func (r *reconciler) fulfil(ctx context.Context, o observed, after *corev1.PersistentVolume) error {
	_, held, err := r.Proof().LeafVolume(ctx, o.leaf.Name, func(leaf *corev1.PersistentVolume) bool {
		return leaf != nil && leaf.UID == o.leaf.UID && leaf.DeletionTimestamp == nil && proof.Retained(leaf)
	})
	if err != nil || !held {
		return err
	}
	if err := r.Root.Patch(ctx, actor, o.promise, after); err != nil {
		return err
	}
	r.eventFulfilled(o, after, r.consumers(ctx, o.root))
	return nil
}

// create makes the host PV, which binds the root: if no other one may bind it (I3). Its
// leaf claim may have come after another, whose volume was mirrored a moment ago. A PV of that name that was
// not in the cache is either ours, just made, or makes us take another name.
func (r *reconciler) create(ctx context.Context, o observed, host *corev1.PersistentVolume) error {
	if o.root.Spec.VolumeName == "" {
		other, end, err := r.Mirrors.Begin(ctx, o.root, host.Name)
		if err != nil {
			return err
		}
		if other != "" {
			return fmt.Errorf("leaf volume %s is not mirrored: claim %s is about to be bound to volume %s", o.leaf.Name, o.rootKey(), other)
		}
		defer end()
	}
	err := r.Root.Create(ctx, actor, host)
	if !apierrors.IsAlreadyExists(err) {
		switch {
		case err != nil:
		case o.root.Spec.VolumeName != "":
			r.eventMadeAnew(o.root, host)
		default:
			r.eventMirrored(o.root, host)
		}
		return err
	}
	var there corev1.PersistentVolume
	if err := r.HostLive.Get(ctx, client.ObjectKeyFromObject(host), &there); err != nil {
		return fmt.Errorf("read the volume in the way: %w", err)
	}
	if r.standsFor(&there, o.leaf) {
		return nil
	}
	return fmt.Errorf("create volume %s: %w", host.Name, err) // with the cache caught up, under another name
}
