package scenario

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// accidents returns the scenarios about admins' mistakes.
func accidents() []Scenario {
	return []Scenario{
		{
			Name: "lost-host-pv", About: "an admin deletes the host PV of a claim in use, and removes its finalizers: the claim becomes Lost, and recovers",
			Setup: func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassDelete) },
			Act: func(ctx context.Context, w *World) error {
				return w.lose(ctx, volume(w.Noted("volume")))
			},
			Settled: do((*World).healed),
		},
		{
			Name: "lost-leaf-claim", About: "a member's admin deletes a leaf claim: its volume is kept, and the next leaf claim uses it",
			Setup: func(ctx context.Context, w *World) error { return w.unused(ctx, rig.ClassDelete) },
			Act: func(ctx context.Context, w *World) error {
				leaf, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Member(rig.One), data)
				if err != nil {
					return err
				}
				w.Note("leaf", string(leaf.UID))
				if err := w.delete(ctx, w.Member(rig.One), leaf); err != nil {
					return err
				}
				return w.createApp(ctx, rig.NodeOne)
			},
			Settled: do((*World).reused),
		},
		{
			Name: "taken", About: "the member has its own claim with the same name, in a namespace that it handed over: Xylem reports the claim and does not change it",
			Setup: do((*World).takeName),
			Act: func(ctx context.Context, w *World) error {
				if err := w.pair(ctx, rig.ClassDelete); err != nil {
					return err
				}
				if err := harness.Await(ctx, "the message for the user", w.refused); err != nil {
					return err
				}
				return w.deletePair(ctx)
			},
			Settled: do((*World).untouched),
			Restore: func(ctx context.Context, w *World) error {
				namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
				return errors.Join(w.delete(ctx, w.Member(rig.One), w.claim()), w.delete(ctx, w.Member(rig.One), namespace))
			},
		},
	}
}

// lose deletes a host PV and removes its finalizers, as if a part of etcd were lost.
func (w *World) lose(ctx context.Context, pv *corev1.PersistentVolume) error {
	if err := w.delete(ctx, w.Host, pv); err != nil {
		return err
	}
	return patch(ctx, w.Host, pv, `{"metadata":{"finalizers":null}}`)
}

// takeName creates a foreign claim with the root claim's name in the first member.
func (w *World) takeName(ctx context.Context) error {
	member, none := w.Member(rig.One), ""
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace, Labels: map[string]string{v1alpha1.LabelHost: w.IDs[rig.Host]}}}
	claim := w.claim()
	claim.Spec = w.claimSpec(none)
	for _, obj := range []client.Object{namespace, claim} {
		if err := member.API.Create(ctx, obj); err != nil {
			return fmt.Errorf("create %T %s in %s: %w", obj, obj.GetName(), member.Name(), err)
		}
	}
	w.Note("theirs", string(claim.UID)+" "+claim.ResourceVersion)
	return nil
}

// refused returns nil once the user's claim reports that it cannot be placed.
func (w *World) refused(ctx context.Context) error {
	claim, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Host, data)
	if err != nil {
		return err
	}
	for _, c := range claim.Status.Conditions {
		if c.Type == v1alpha1.ClaimPlaced && c.Status == corev1.ConditionFalse {
			return nil
		}
	}
	return fmt.Errorf("claim %s reports %v, want a report that it is not placed", data, claim.Status.Conditions)
}

// untouched returns nil once the host has no volume for the pair, and the member's own claim is
// unchanged.
func (w *World) untouched(ctx context.Context) error {
	if err := w.nothing(ctx, []string{app, data}, w.Host, w.Member(rig.Two)); err != nil {
		return err
	}
	claim, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Member(rig.One), data)
	if err != nil {
		return err
	}
	if now := string(claim.UID) + " " + claim.ResourceVersion; now != w.Noted("theirs") {
		return fmt.Errorf("the member's own claim was %s, and is now %s", w.Noted("theirs"), now)
	}
	return gone[corev1.Pod](ctx, w, w.Member(rig.One), app)
}

// healed returns nil once the claim is bound to a host PV of the same name with Xylem's finalizer.
func (w *World) healed(ctx context.Context) error {
	if err := w.reused(ctx); err != nil {
		return err
	}
	pv, err := get[corev1.PersistentVolume](ctx, w, w.Host, w.Noted("volume"))
	if err != nil {
		return err
	}
	return held(pv)
}
