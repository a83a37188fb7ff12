package scenario

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/fault/proxy"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// registrations returns the scenarios in which the second member is registered or deregistered.
func registrations() []Scenario {
	return []Scenario{
		{
			Name: "register", About: "a member is registered",
			Setup:   func(ctx context.Context, w *World) error { return w.Deregister(ctx, rig.Two) },
			Act:     do((*World).registerTwo),
			Settled: do((*World).registered),
		},
		{
			Name: "unregister-retain", About: "a member is deregistered with policy Retain and registered again: Xylem adopts its volume",
			Setup: do((*World).unusedInTwo),
			Act: func(ctx context.Context, w *World) error {
				if err := w.unregister(ctx); err != nil {
					return err
				}
				if err := harness.Await(ctx, "the deletion of the registration", w.unregistered); err != nil {
					return err
				}
				return w.registerTwo(ctx)
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.registered(ctx), w.boundInTwo(ctx))
			},
		},
		{
			Name: "unregister-drain", About: "a member is deregistered with policy Drain, and its last claim is deleted",
			Setup: func(ctx context.Context, w *World) error {
				if err := w.unusedInTwo(ctx); err != nil {
					return err
				}
				return patch(ctx, w.Host, registration(), `{"spec":{"deregistration":"Drain"}}`)
			},
			Act: func(ctx context.Context, w *World) error {
				return errors.Join(w.unregister(ctx), w.deleteClaim(ctx))
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.unregistered(ctx), w.nothing(ctx, []string{app, data}, w.Clusters()...), w.disks(rig.Two, data, 0))
			},
			Restore: do((*World).registerAgain),
		},
		{
			Name: "unregister-force", About: "an unreachable member is deregistered by force",
			Setup: do((*World).unusedInTwo),
			Act:   do((*World).unregisterByForce),
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.unregistered(ctx), w.letGo(ctx), w.disks(rig.Two, data, 1))
			},
			Restore: do((*World).reachAgain),
		},
	}
}

func registration() *v1alpha1.ClusterRegistration {
	return &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: rig.Two}}
}

// registerTwo registers the second member, without waiting for the connection.
func (w *World) registerTwo(ctx context.Context) error {
	kubeconfig, err := w.MemberKubeconfig(ctx, rig.Two)
	if err != nil {
		return err
	}
	if err := w.SetKubeconfig(ctx, rig.Two, kubeconfig); err != nil {
		return err
	}
	cr := registration()
	cr.Spec.KubeconfigSecretRef.Name = harness.SecretName(rig.Two)
	cr.Spec.Node.PodCIDRs = []string{v1alpha1.AllPodCIDRs}
	rig.Shares(cr)
	if err := w.Host.API.Create(ctx, cr); err != nil {
		return fmt.Errorf("register %s: %w", rig.Two, err)
	}
	return nil
}

func (w *World) registerAgain(ctx context.Context) error {
	if err := w.registerTwo(ctx); err != nil {
		return err
	}
	return w.AwaitReady(ctx, rig.Two)
}

// unregister deletes the registration, without waiting for the end.
func (w *World) unregister(ctx context.Context) error {
	return w.delete(ctx, w.Host, registration())
}

// unusedInTwo creates a claim in the second member that no Pod uses.
func (w *World) unusedInTwo(ctx context.Context) error {
	if err := w.createClaim(ctx, data, rig.ClassDelete); err != nil {
		return err
	}
	if err := w.createApp(ctx, rig.NodeTwo); err != nil {
		return err
	}
	if err := harness.Await(ctx, "claim and Pod", func(ctx context.Context) error {
		return errors.Join(w.running(ctx, app), w.boundInTwo(ctx))
	}); err != nil {
		return err
	}
	volume, err := w.volumeOf(ctx, data)
	if err != nil {
		return err
	}
	w.Note("volume", volume)
	return w.endApp(ctx)
}

func (w *World) boundInTwo(ctx context.Context) error {
	if err := w.bound(ctx, data, rig.Two); err != nil {
		return err
	}
	name, err := w.volumeOf(ctx, data)
	if err != nil {
		return err
	}
	pv, err := get[corev1.PersistentVolume](ctx, w, w.Host, name)
	if err != nil {
		return err
	}
	return errors.Join(held(pv), w.disks(rig.Two, data, 1))
}

// registered returns nil once the member's node is Ready in the host.
func (w *World) registered(ctx context.Context) error {
	node, err := get[corev1.Node](ctx, w, w.Host, rig.NodeTwo)
	if err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && !node.Spec.Unschedulable && node.DeletionTimestamp == nil {
			return nil
		}
	}
	return fmt.Errorf("node %s is not Ready", node.Name)
}

// unregistered returns nil once the registration and the node are deleted.
func (w *World) unregistered(ctx context.Context) error {
	return errors.Join(gone[v1alpha1.ClusterRegistration](ctx, w, w.Host, rig.Two), gone[corev1.Node](ctx, w, w.Host, rig.NodeTwo))
}

// letGo returns nil once the host PV reports that its cluster was deregistered, and no longer has
// Xylem's finalizer.
func (w *World) letGo(ctx context.Context) error {
	pv, err := get[corev1.PersistentVolume](ctx, w, w.Host, w.Noted("volume"))
	if err != nil {
		return err
	}
	if held(pv) == nil || pv.Annotations[v1alpha1.AnnotationClusterGone] == "" {
		return fmt.Errorf("volume %s has finalizers %v and annotations %v, want %s and no finalizer of Xylem", pv.Name, pv.Finalizers, pv.Annotations, v1alpha1.AnnotationClusterGone)
	}
	return nil
}

func held(pv *corev1.PersistentVolume) error {
	if !controllerutil.ContainsFinalizer(pv, v1alpha1.FinalizerLeafVolume) {
		return fmt.Errorf("volume %s lacks Xylem's finalizer", pv.Name)
	}
	return nil
}

// unregisterByForce deregisters the second member while it is unreachable.
func (w *World) unregisterByForce(ctx context.Context) error {
	if err := w.Proxy(rig.Two).SetMode(proxy.Cut); err != nil {
		return err
	}
	if err := patch(ctx, w.Host, registration(), `{"metadata":{"annotations":{"`+v1alpha1.AnnotationForceDeregister+`":"true"}}}`); err != nil {
		return err
	}
	return w.unregister(ctx)
}

// reachAgain reconnects the second member and registers it again.
func (w *World) reachAgain(ctx context.Context) error {
	if err := w.Proxy(rig.Two).SetMode(proxy.Pass); err != nil {
		return err
	}
	return w.registerAgain(ctx)
}
