package scenario

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// resized returns the scenarios about in-place resizes of Pods.
func resized() []Scenario {
	return []Scenario{{
		Name: "resize", About: "a running Pod is resized twice, in place",
		Setup: func(ctx context.Context, w *World) error {
			if err := w.createClaim(ctx, data, rig.ClassDelete); err != nil {
				return err
			}
			if err := w.createPod(ctx, app, data, rig.NodeOne, func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
			}); err != nil {
				return err
			}
			if err := harness.Await(ctx, "the Pod's resources", func(ctx context.Context) error { return w.hasCPU(ctx, "10m") }); err != nil {
				return err
			}
			pod, err := get[corev1.Pod](ctx, w, w.Member(rig.One), app)
			if err == nil {
				w.Note("leaf", string(pod.UID))
			}
			return err
		},
		Act: func(ctx context.Context, w *World) error {
			if err := w.resize(ctx, "30m"); err != nil {
				return err
			}
			return w.resize(ctx, "20m")
		},
		Settled: func(ctx context.Context, w *World) error { return w.hasCPU(ctx, "20m") },
	}}
}

func (w *World) resize(ctx context.Context, cpu string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: app}}
	body := fmt.Appendf(nil, `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":%q}}}]}}`, cpu)
	if err := w.Host.API.SubResource("resize").Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, body)); err != nil {
		return fmt.Errorf("resize Pod %s: %w", app, err)
	}
	return nil
}

// hasCPU returns nil once the Pod has a CPU request in both clusters, the host shows it, and the Pod has not been
// replaced in the member.
func (w *World) hasCPU(ctx context.Context, cpu string) error {
	for _, c := range []*harness.Cluster{w.Host, w.Member(rig.One)} {
		pod, err := get[corev1.Pod](ctx, w, c, app)
		if err != nil {
			return err
		}
		if has := pod.Spec.Containers[0].Resources.Requests.Cpu().String(); has != cpu {
			return fmt.Errorf("in %s, Pod %s requests %s of CPU, want %s", c.Name(), app, has, cpu)
		}
		statuses := pod.Status.ContainerStatuses
		if len(statuses) != 1 || statuses[0].Resources == nil || statuses[0].Resources.Requests.Cpu().String() != cpu || pod.Status.ObservedGeneration != pod.Generation {
			return fmt.Errorf("in %s, Pod %s does not show %s of CPU: %+v", c.Name(), app, cpu, pod.Status)
		}
		if leaf := w.Noted("leaf"); c != w.Host && leaf != "" && leaf != string(pod.UID) {
			return fmt.Errorf("in %s, Pod %s was replaced", c.Name(), app)
		}
	}
	return w.upAndBound(ctx)
}
