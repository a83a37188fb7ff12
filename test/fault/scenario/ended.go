package scenario

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// settings is the name of a ConfigMap that a Pod needs.
const settings = "settings"

// ended returns the scenarios in which a Pod runs to completion once, as a Job's Pods do.
func ended() []Scenario {
	return []Scenario{
		{
			Name: "pod-ends", About: "a Pod with restartPolicy Never runs to completion in its member",
			Setup: do((*World).upOnce),
			Act: func(ctx context.Context, w *World) error {
				leaf := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: app}}
				return patch(ctx, w.Member(rig.One), leaf, `{"metadata":{"annotations":{"`+controlplane.AnnotationComplete+`":"true"}}}`)
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.phase(ctx, w.Host, corev1.PodSucceeded), w.phase(ctx, w.Member(rig.One), corev1.PodSucceeded), w.bound(ctx, data, rig.One))
			},
		},
		{
			Name: "pod-once", About: "a bound Pod waits for a ConfigMap, gets it, runs to completion, and is deleted",
			Setup:   do((*World).waitForSettings),
			Act:     do((*World).runOnce),
			Settled: func(ctx context.Context, w *World) error { return w.nothing(ctx, []string{app}, w.Clusters()...) },
		},
	}
}

func never(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyNever }

// upOnce creates a claim and a Pod with restartPolicy Never, and waits until the Pod runs.
func (w *World) upOnce(ctx context.Context) error {
	if err := errors.Join(w.createClaim(ctx, data, rig.ClassDelete), w.createPod(ctx, app, data, rig.NodeOne, never)); err != nil {
		return err
	}
	return harness.Await(ctx, "claim and Pod", w.upAndBound)
}

// phase returns nil once the Pod has the given phase in a cluster.
func (w *World) phase(ctx context.Context, c *harness.Cluster, phase corev1.PodPhase) error {
	pod, err := get[corev1.Pod](ctx, w, c, app)
	if err == nil && pod.Status.Phase != phase {
		err = fmt.Errorf("%s shows Pod %s as %s, want %s", c.Name(), app, pod.Status.Phase, phase)
	}
	return err
}

// waitForSettings creates a Pod that the scheduler binds, but Xylem does not push, because the host
// lacks its ConfigMap. Once the ConfigMap exists, the Pod runs and completes immediately.
func (w *World) waitForSettings(ctx context.Context) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: app, Annotations: map[string]string{controlplane.AnnotationComplete: "true"}},
		Spec:       podSpec(rig.NodeOne),
	}
	never(pod)
	pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: settings}}}}
	if err := w.Host.API.Create(ctx, pod); err != nil {
		return fmt.Errorf("create Pod %s: %w", app, err)
	}
	return harness.Await(ctx, "the Pod to report the missing ConfigMap", func(ctx context.Context) error { return w.waits(ctx, "ReferenceMissing") })
}

// waits returns nil once the Pod is bound to its node and reports why it is not pushed.
func (w *World) waits(ctx context.Context, reason string) error {
	pod, err := get[corev1.Pod](ctx, w, w.Host, app)
	if err != nil {
		return err
	}
	for _, c := range pod.Status.Conditions {
		if c.Reason == reason && pod.Spec.NodeName != "" {
			return nil
		}
	}
	return fmt.Errorf("want Pod %[1]s to report %[4]s, but it is on node %[2]q, and reports %[3]v", app, pod.Spec.NodeName, pod.Status.Conditions, reason)
}

func (w *World) runOnce(ctx context.Context) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: settings}, Data: map[string]string{"k": "v"}}
	if err := w.Host.API.Create(ctx, config); err != nil {
		return fmt.Errorf("create ConfigMap %s: %w", settings, err)
	}
	if err := harness.Await(ctx, "the Pod to complete", func(ctx context.Context) error { return w.phase(ctx, w.Host, corev1.PodSucceeded) }); err != nil {
		return err
	}
	return w.deleteApp(ctx)
}
