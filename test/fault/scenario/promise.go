package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// promises are claims that are bound before they have a disk.
func promises() []Scenario {
	return []Scenario{
		{
			Name: "promise-delete", About: "Pod and claim of a fulfilled promise are deleted", Core: true,
			Setup:   func(ctx context.Context, w *World) error { return w.fulfilled(ctx, rig.ClassPromise) },
			Act:     do((*World).deletePair),
			Settled: do((*World).destroyed),
		},
		{
			Name: "promise-create", About: "a promised claim and its Pod are created", Core: true,
			Act:     func(ctx context.Context, w *World) error { return w.pair(ctx, rig.ClassPromise) },
			Settled: do((*World).promiseKept),
		},
		{
			Name: "promise-scratch", About: "a claim whose disk is released with its last Pod, and a Pod that uses it for longer than the grace period",
			Act:     func(ctx context.Context, w *World) error { return w.pair(ctx, rig.ClassScratch) },
			Settled: do((*World).promiseKept),
		},
		{
			Name: "promise-unused", About: "a promised claim is created, and deleted without a Pod",
			Act:     do((*World).promiseUnused),
			Settled: do((*World).promiseGone),
		},
		{
			Name: "promise-two", About: "Pods of a promised claim are bound in both members: one waits, and fails when the disk is created in the other",
			Setup:   func(ctx context.Context, w *World) error { return w.provisioning(ctx, rig.ClassPromise, false) },
			Act:     do((*World).promiseTwo),
			Settled: do((*World).promiseOnce),
			Restore: do((*World).provision),
		},
		{
			Name: "promise-withdraw", About: "Pod and promised claim are deleted before the provisioner has begun",
			Setup:   func(ctx context.Context, w *World) error { return w.provisioning(ctx, rig.ClassPromise, false) },
			Act:     do((*World).withdraw),
			Settled: do((*World).promiseWithdrawn),
			Restore: do((*World).provision),
		},
		{
			Name: "promise-withdraw-late", About: "Pod and promised claim are deleted after the provisioner has created the disk, but before it responds",
			Setup:   func(ctx context.Context, w *World) error { return w.provisioning(ctx, rig.ClassPromise, true) },
			Act:     do((*World).withdraw),
			Settled: do((*World).promiseWithdrawn),
			Restore: do((*World).provision),
		},
		{
			Name: "promise-move", About: "before the disk is created, the Pod is deleted, and one in the other member uses the claim",
			Setup:   func(ctx context.Context, w *World) error { return w.provisioning(ctx, rig.ClassPromise, false) },
			Act:     do((*World).promiseMove),
			Settled: do((*World).promiseMoved),
			Restore: do((*World).provision),
		},
	}
}

// releases are promises that a member releases.
func releases() []Scenario {
	return []Scenario{
		{
			Name: "promise-release", About: "the last Pod of a claim ends, its disk is released, and the next Pod runs in the other member",
			Setup: func(ctx context.Context, w *World) error { return w.fulfilled(ctx, rig.ClassScratch) },
			Act: func(ctx context.Context, w *World) error {
				if err := w.endApp(ctx); err != nil {
					return err
				}
				return w.createApp(ctx, rig.NodeTwo)
			},
			Settled: do((*World).promiseMoved),
		},
		{
			Name: "promise-release-delete", About: "the last Pod of a claim ends, and the claim is deleted while its disk is being released",
			Setup: func(ctx context.Context, w *World) error { return w.fulfilled(ctx, rig.ClassScratch) },
			Act: func(ctx context.Context, w *World) error {
				if err := w.endApp(ctx); err != nil {
					return err
				}
				if err := harness.Await(ctx, "the mark", w.marked); err != nil {
					return err
				}
				return w.deleteClaim(ctx)
			},
			Settled: do((*World).destroyed),
		},
		{
			Name: "promise-unregister", About: "a member is deregistered while it provisions the disk of a promise: the Pod is evicted, and the promise is released",
			Setup:   do((*World).promisedInTwo),
			Act:     do((*World).unregisterConfirmed),
			Settled: do((*World).promiseUnfulfilled),
			Restore: func(ctx context.Context, w *World) error {
				return errors.Join(w.Member(rig.Two).SetFaults(), w.registerAgain(ctx))
			},
		},
	}
}

// promisedInTwo creates a promised claim and its Pod in the second member. The driver does not
// create the disk yet.
func (w *World) promisedInTwo(ctx context.Context) error {
	fault := csidriver.Fault{Method: ledger.CreateVolume, Claim: w.Namespace + "/" + data, Stall: true}
	if err := w.Member(rig.Two).SetFaults(fault); err != nil {
		return err
	}
	if err := w.createClaim(ctx, data, rig.ClassPromise); err != nil {
		return err
	}
	if err := w.createApp(ctx, rig.NodeTwo); err != nil {
		return err
	}
	return harness.Await(ctx, "the provisioner", func(ctx context.Context) error {
		claim, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Member(rig.Two), data)
		if err == nil && claim.Annotations[selectedNode] == "" {
			err = errors.New("the leaf claim has no selected node")
		}
		return err
	})
}

func (w *World) unregisterConfirmed(ctx context.Context) error {
	confirm := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationConfirmDeregister, rig.Two)
	if err := patch(ctx, w.Host, registration(), confirm); err != nil {
		return err
	}
	return w.unregister(ctx)
}

// promiseUnfulfilled is met when the member is deregistered and the promise is unfulfilled again.
func (w *World) promiseUnfulfilled(ctx context.Context) error {
	if err := errors.Join(w.unregistered(ctx), w.promiseSays(ctx, v1alpha1.ReasonPromised, "the disk does not exist yet"), gone[corev1.Pod](ctx, w, w.Host, app),
		w.nothing(ctx, []string{app, data}, w.Member(rig.Two)), w.disks(rig.Two, data, 0)); err != nil {
		return err
	}
	claim, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Host, data)
	if err != nil {
		return err
	}
	pv, err := w.promise(ctx)
	if err != nil {
		return err
	}
	if placed := claim.Annotations[v1alpha1.AnnotationPlacedIn]; placed != "" || len(pv.Labels) > 0 {
		return fmt.Errorf("claim %s is placed in %q, and its promise labelled %v", data, placed, pv.Labels)
	}
	return nil
}

// fulfilled creates the pair, waits until it runs, and notes the volume.
func (w *World) fulfilled(ctx context.Context, class string) error {
	if err := w.pair(ctx, class); err != nil {
		return err
	}
	if err := harness.Await(ctx, "claim and Pod", w.promiseKept); err != nil {
		return err
	}
	pv, err := w.promise(ctx)
	if err != nil {
		return err
	}
	w.Note("volume", pv.Name)
	return nil
}

// promise returns the host PV of the claim.
func (w *World) promise(ctx context.Context) (*corev1.PersistentVolume, error) {
	name, err := w.volumeOf(ctx, data)
	if err != nil {
		return nil, err
	}
	return get[corev1.PersistentVolume](ctx, w, w.Host, name)
}

// promiseIn is met when the claim has a disk in a member and records it.
func (w *World) promiseIn(ctx context.Context, member string) error {
	pv, err := w.promise(ctx)
	if err != nil {
		return err
	}
	id, err := w.Member(member).ID(ctx)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(pv.Annotations[v1alpha1.AnnotationVolume], id+"/") {
		return fmt.Errorf("promise %s has volume %q", pv.Name, pv.Annotations[v1alpha1.AnnotationVolume])
	}
	return w.promiseSays(ctx, v1alpha1.ReasonFulfilled, "")
}

func (w *World) promiseSays(ctx context.Context, reason, message string) error {
	claim, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Host, data)
	if err != nil {
		return err
	}
	for _, c := range claim.Status.Conditions {
		if c.Type == v1alpha1.ClaimPromise && c.Reason == reason && strings.Contains(c.Message, message) {
			return nil
		}
	}
	return fmt.Errorf("claim %s has the conditions %v, not %s: %q", data, claim.Status.Conditions, reason, message)
}

func (w *World) promiseKept(ctx context.Context) error {
	return errors.Join(w.upAndBound(ctx), w.promiseIn(ctx, rig.One))
}

// stray is the second Pod.
const stray = "stray"

// promiseTwo creates a second Pod in the other member. It lets the provisioner of the first
// continue once that Pod reports that it must wait.
func (w *World) promiseTwo(ctx context.Context) error {
	if err := w.createPod(ctx, stray, data, rig.NodeTwo); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the second Pod", func(ctx context.Context) error {
		pod, err := get[corev1.Pod](ctx, w, w.Host, stray)
		if err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == v1alpha1.PodPushed && c.Status == corev1.ConditionFalse {
				return nil
			}
		}
		return fmt.Errorf("the host shows Pod %s with the conditions %v", stray, pod.Status.Conditions)
	}); err != nil {
		return err
	}
	return w.provision(ctx)
}

// promiseOnce is met when the first Pod has the disk and the second has failed.
func (w *World) promiseOnce(ctx context.Context) error {
	pod, err := get[corev1.Pod](ctx, w, w.Host, stray)
	if err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodFailed {
		return fmt.Errorf("the host shows Pod %s as %s", stray, pod.Status.Phase)
	}
	return errors.Join(w.promiseKept(ctx), w.nothing(ctx, []string{stray, data}, w.Member(rig.Two)), w.disks(rig.Two, data, 0))
}

func (w *World) promiseUnused(ctx context.Context) error {
	if err := w.createClaim(ctx, data, rig.ClassPromise); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the promise", func(ctx context.Context) error { return w.promiseSays(ctx, v1alpha1.ReasonPromised, "") }); err != nil {
		return err
	}
	return w.deleteClaim(ctx)
}

// promiseGone is met when nothing is left of the claim or of any promise of the namespace.
func (w *World) promiseGone(ctx context.Context) error {
	if err := w.nothing(ctx, []string{data}, w.Clusters()...); err != nil {
		return err
	}
	var volumes corev1.PersistentVolumeList
	if err := w.Host.API.List(ctx, &volumes); err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	for i := range volumes.Items {
		if ref := volumes.Items[i].Spec.ClaimRef; ref != nil && ref.Namespace == w.Namespace {
			return fmt.Errorf("volume %s is still in the host", volumes.Items[i].Name)
		}
	}
	return nil
}

func (w *World) promiseWithdrawn(ctx context.Context) error {
	return errors.Join(w.withdrawnEntirely(ctx), w.promiseGone(ctx))
}

// promiseMove gives the claim to a Pod in the other member. It lets the provisioner of the first
// continue once nothing is left there.
func (w *World) promiseMove(ctx context.Context) error {
	if err := w.endApp(ctx); err != nil {
		return err
	}
	if err := w.createApp(ctx, rig.NodeTwo); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the withdrawal", func(ctx context.Context) error {
		return w.nothing(ctx, []string{app, data}, w.Member(rig.One))
	}); err != nil {
		return err
	}
	return w.provision(ctx)
}

// promiseMoved is met when Pod and disk are in the second member and the first has no objects of them.
func (w *World) promiseMoved(ctx context.Context) error {
	return errors.Join(w.running(ctx, app), w.boundInTwo(ctx), w.promiseIn(ctx, rig.Two), w.disks(rig.Two, data, 1),
		w.nothing(ctx, []string{app, data}, w.Member(rig.One)), w.disks(rig.One, data, 0))
}

// marked is met when the promise is marked as unused.
func (w *World) marked(ctx context.Context) error {
	pv, err := w.promise(ctx)
	if err != nil {
		return err
	}
	if pv.Annotations[v1alpha1.AnnotationUnusedSince] == "" && pv.Annotations[v1alpha1.AnnotationVolume] != "" {
		return fmt.Errorf("promise %s is not marked", pv.Name)
	}
	return nil
}
