package scenario

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/fault/rig"
)

const logs = "logs"

// recovery returns the scenarios in which only one of the members can provision a claim.
func recovery() []Scenario {
	return []Scenario{
		{
			Name: "recover", About: "a member's driver fails to provision a claim, and the other member provisions it",
			Setup:   func(_ context.Context, w *World) error { return w.failing(data) },
			Act:     func(ctx context.Context, w *World) error { return w.appWith(ctx, data) },
			Settled: func(ctx context.Context, w *World) error { return w.recovered(ctx, data) },
			Restore: do((*World).provision),
		},
		{
			Name: "recover-together", About: "a member's driver fails to provision one of a Pod's two claims, and the other member provisions both",
			Setup:   func(_ context.Context, w *World) error { return w.failing(data, logs) },
			Act:     func(ctx context.Context, w *World) error { return w.appWith(ctx, data, logs) },
			Settled: func(ctx context.Context, w *World) error { return w.recovered(ctx, data, logs) },
			Restore: do((*World).provision),
		},
	}
}

// failing makes the first member's driver fail to provision the claims, each with a different error
// code. All of these codes are final: they mean that no volume is being created.
func (w *World) failing(claims ...string) error {
	var faults []csidriver.Fault
	for i, claim := range claims {
		code := []codes.Code{codes.Internal, codes.InvalidArgument}[i%2]
		faults = append(faults, csidriver.Fault{Method: ledger.CreateVolume, Claim: w.Namespace + "/" + claim, Code: code})
	}
	return w.Member(rig.One).SetFaults(faults...)
}

// appWith creates claims, and a Pod for them that prefers the first member.
func (w *World) appWith(ctx context.Context, claims ...string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: app}, Spec: podSpec(rig.NodeOne)}
	pod.Spec.NodeSelector = nil
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{rig.NodeOne}}},
		}}},
	}}
	for _, claim := range claims {
		if err := w.createClaim(ctx, claim, rig.ClassImpatient); err != nil {
			return err
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	if err := w.Host.API.Create(ctx, pod); err != nil {
		return fmt.Errorf("create Pod %s: %w", app, err)
	}
	return nil
}

// recovered returns nil once the Pod runs, all of its claims have their volumes in the second
// member, the first member has none of their objects, and no annotation of the recovery is left.
func (w *World) recovered(ctx context.Context, claims ...string) error {
	if err := w.running(ctx, app); err != nil {
		return err
	}
	for _, name := range claims {
		if err := errors.Join(w.bound(ctx, name, rig.Two), w.atRest(ctx, name), w.disks(rig.One, name, 0), w.disks(rig.Two, name, 1)); err != nil {
			return err
		}
	}
	return w.nothing(ctx, append([]string{app}, claims...), w.Member(rig.One))
}

// atRest returns nil once a claim no longer reports members that failed to provision it.
func (w *World) atRest(ctx context.Context, name string) error {
	claim, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Host, name)
	if err != nil {
		return err
	}
	for _, key := range []string{v1alpha1.AnnotationTried, v1alpha1.AnnotationSteeredTo} {
		if value, has := claim.Annotations[key]; has {
			return fmt.Errorf("claim %s still has the annotation %s=%s", name, key, value)
		}
	}
	if len(reported(claim)) > 0 {
		return fmt.Errorf("claim %s still has conditions: %v", name, claim.Status.Conditions)
	}
	return nil
}
