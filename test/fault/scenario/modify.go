package scenario

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// modified returns the scenarios in which the VolumeAttributesClass of a claim in use changes.
func modified() []Scenario {
	return []Scenario{
		{
			Name: "modify", About: "the VolumeAttributesClass of a claim in use is changed",
			Setup:   do((*World).golden),
			Act:     func(ctx context.Context, w *World) error { return w.modify(ctx, rig.AttributesSilver) },
			Settled: func(ctx context.Context, w *World) error { return w.hasAttributes(ctx, rig.AttributesSilver) },
		},
		{
			Name: "modify-first", About: "the VolumeAttributesClass of a claim in use is set, and the driver fails once after it has applied the class",
			Setup: func(ctx context.Context, w *World) error {
				return errors.Join(w.up(ctx, rig.ClassDelete), w.Member(rig.One).SetFaults(csidriver.Fault{
					Method: ledger.ModifyVolume, Claim: w.Namespace + "/" + data, Times: 1, Code: codes.DeadlineExceeded, After: true}))
			},
			Act:     func(ctx context.Context, w *World) error { return w.modify(ctx, rig.AttributesGold) },
			Settled: func(ctx context.Context, w *World) error { return w.hasAttributes(ctx, rig.AttributesGold) },
			Restore: do((*World).provision),
		},
		{
			Name: "modify-cancel", About: "the VolumeAttributesClass of a claim in use is changed to one that the driver cannot apply, and then back",
			Setup: func(ctx context.Context, w *World) error {
				return errors.Join(w.golden(ctx), w.Member(rig.One).SetFaults(csidriver.Fault{
					Method: ledger.ModifyVolume, Claim: w.Namespace + "/" + data, Code: codes.InvalidArgument}))
			},
			Act: func(ctx context.Context, w *World) error {
				if err := w.modify(ctx, rig.AttributesSilver); err != nil {
					return err
				}
				if err := harness.Await(ctx, "the message for the user", w.infeasible); err != nil {
					return err
				}
				return errors.Join(w.provision(ctx), w.modify(ctx, rig.AttributesGold))
			},
			Settled: func(ctx context.Context, w *World) error { return w.hasAttributes(ctx, rig.AttributesGold) },
			Restore: do((*World).provision),
		},
	}
}

// golden calls up for a claim with a VolumeAttributesClass.
func (w *World) golden(ctx context.Context) error {
	if err := w.createClaim(ctx, data, rig.ClassDelete, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeAttributesClassName = ptr.To(rig.AttributesGold)
	}); err != nil {
		return err
	}
	if err := w.createApp(ctx, rig.NodeOne); err != nil {
		return err
	}
	return harness.Await(ctx, "the VolumeAttributesClass", func(ctx context.Context) error { return w.hasAttributes(ctx, rig.AttributesGold) })
}

func (w *World) modify(ctx context.Context, class string) error {
	return patch(ctx, w.Host, w.claim(), fmt.Sprintf(`{"spec":{"volumeAttributesClassName":%q}}`, class))
}

// hasAttributes returns nil once claim and volume have the VolumeAttributesClass, under its name in
// each cluster, and no change is in progress.
func (w *World) hasAttributes(ctx context.Context, class string) error {
	for c, want := range map[*harness.Cluster]string{w.Host: class, w.Member(rig.One): rig.MemberAttributes(class)} {
		claim, err := get[corev1.PersistentVolumeClaim](ctx, w, c, data)
		if err != nil {
			return err
		}
		if current := ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, ""); current != want || claim.Status.ModifyVolumeStatus != nil || len(reported(claim)) > 0 {
			return fmt.Errorf("claim %s has class %q in %s, want %q: %+v", data, current, c.Name(), want, claim.Status)
		}
		pv, err := get[corev1.PersistentVolume](ctx, w, c, claim.Spec.VolumeName)
		if err != nil {
			return err
		}
		if has := ptr.Deref(pv.Spec.VolumeAttributesClassName, ""); has != want {
			return fmt.Errorf("volume %s has class %q in %s, want %q", pv.Name, has, c.Name(), want)
		}
	}
	return w.upAndBound(ctx)
}

// infeasible returns nil once the user's claim reports, with the host's name, that the driver
// cannot apply the class.
func (w *World) infeasible(ctx context.Context) error {
	claim, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Host, data)
	if err != nil {
		return err
	}
	status := claim.Status.ModifyVolumeStatus
	if status == nil || status.Status != corev1.PersistentVolumeClaimModifyVolumeInfeasible || status.TargetVolumeAttributesClassName != rig.AttributesSilver {
		return fmt.Errorf("claim %s reports the change as %+v, want it infeasible for class %q", data, status, rig.AttributesSilver)
	}
	return nil
}
