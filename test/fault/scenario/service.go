package scenario

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// services returns the scenarios about Services that exist in members, too.
func services() []Scenario {
	return []Scenario{{
		Name: "service", About: "a Service is created in the member of a Pod, changed, replaced by a headless one, and deleted",
		Setup:   func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassDelete) },
		Act:     do((*World).changeService),
		Settled: func(ctx context.Context, w *World) error { return gone[corev1.Service](ctx, w, w.Member(rig.One), app) },
	}}
}

func (w *World) changeService(ctx context.Context) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: app}}
	service.Spec = corev1.ServiceSpec{Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Port: 80}}}
	headless := service.DeepCopy()
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	if err := w.Host.API.Create(ctx, service); err != nil {
		return fmt.Errorf("create Service %s: %w", app, err)
	}
	if err := w.awaitPort(ctx, 80, false); err != nil {
		return err
	}
	if err := patch(ctx, w.Host, service, `{"spec":{"ports":[{"port":81,"protocol":"TCP"}]}}`); err != nil {
		return err
	}
	if err := w.awaitPort(ctx, 81, false); err != nil {
		return err
	}
	if err := w.delete(ctx, w.Host, service); err != nil {
		return err
	}
	if err := w.Host.API.Create(ctx, headless); err != nil {
		return fmt.Errorf("create headless Service %s: %w", app, err)
	}
	if err := w.awaitPort(ctx, 80, true); err != nil {
		return err
	}
	return w.delete(ctx, w.Host, headless)
}

// awaitPort waits until the member's Service has a port.
func (w *World) awaitPort(ctx context.Context, port int32, headless bool) error {
	return harness.Await(ctx, fmt.Sprintf("the member's Service to have port %d", port), func(ctx context.Context) error {
		leaf, err := get[corev1.Service](ctx, w, w.Member(rig.One), app)
		if err != nil {
			return err
		}
		if leaf.DeletionTimestamp != nil || leaf.Spec.Ports[0].Port != port || (leaf.Spec.ClusterIP == corev1.ClusterIPNone) != headless {
			return fmt.Errorf("the member's Service has address %s and port %d", leaf.Spec.ClusterIP, leaf.Spec.Ports[0].Port)
		}
		return nil
	})
}
