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

// promises returns the scenarios in which a claim is bound before it has a disk.
func promises() []Scenario {
	return []Scenario{
		{
			Name: "promise-delete", About: "the Pod and the claim of a fulfilled promise are deleted", Core: true,
			Setup:   func(ctx context.Context, w *World) error { return w.fulfilled(ctx, rig.ClassPromise) },
			Act:     do((*World).deletePair),
			Settled: do((*World).destroyed),
		},
		{
			Name: "promise-create", About: "a claim in promise mode and its Pod are created", Core: true,
			Act:     func(ctx context.Context, w *World) error { return w.pair(ctx, rig.ClassPromise) },
			Settled: do((*World).promiseKept),
		},
		{
			Name: "promise-scratch", About: "a claim with release WhenUnused, and a Pod that uses it for longer than the grace period",
			Act:     func(ctx context.Context, w *World) error { return w.pair(ctx, rig.ClassScratch) },
			Settled: do((*World).promiseKept),
		},
		{
			Name: "promise-unused", About: "a claim in promise mode is created, and deleted before a Pod has used it",
			Act:     do((*World).promiseUnused),
			Settled: do((*World).promiseGone),
		},
		{
			Name: "promise-two", About: "two Pods of a claim in promise mode are bound in different members: one waits, and fails when the disk is created for the other",
			Setup:   func(ctx context.Context, w *World) error { return w.provisioning(ctx, rig.ClassPromise, false) },
			Act:     do((*World).promiseTwo),
			Settled: do((*World).promiseOnce),
			Restore: do((*World).provision),
		},
		{
			Name: "promise-withdraw", About: "a claim in promise mode and its Pod are deleted before the provisioner has begun",
			Setup:   func(ctx context.Context, w *World) error { return w.provisioning(ctx, rig.ClassPromise, false) },
			Act:     do((*World).withdraw),
			Settled: do((*World).promiseWithdrawn),
			Restore: do((*World).provision),
		},
		{
			Name: "promise-withdraw-late", About: "a claim in promise mode and its Pod are deleted after the driver has created the disk, but before it responds",
			Setup:   func(ctx context.Context, w *World) error { return w.provisioning(ctx, rig.ClassPromise, true) },
			Act:     do((*World).withdraw),
			Settled: do((*World).promiseWithdrawn),
			Restore: do((*World).provision),
		},
		{
			Name: "promise-move", About: "before a promise's disk is created, the Pod is deleted, and a Pod in the other member uses the claim",
			Setup:   func(ctx context.Context, w *World) error { return w.provisioning(ctx, rig.ClassPromise, false) },
			Act:     do((*World).promiseMove),
			Settled: do((*World).promiseMoved),
			Restore: do((*World).provision),
		},
	}
}

// releases returns the scenarios in which a member releases a promise.
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
				if err := harness.Await(ctx, "the promise to be marked as unused", w.marked); err != nil {
					return err
				}
				return w.deleteClaim(ctx)
			},
			Settled: do((*World).destroyed),
		},
		{
			Name: "promise-unregister", About: "a member is deregistered while it provisions a promise's disk: the Pod is evicted, and the promise is released",
			Setup:   do((*World).promisedInTwo),
			Act:     do((*World).unregisterConfirmed),
			Settled: do((*World).promiseUnfulfilled),
			Restore: func(ctx context.Context, w *World) error {
				return errors.Join(w.Member(rig.Two).SetFaults(), w.registerAgain(ctx))
			},
		},
	}
}

// promisedInTwo creates a claim in promise mode and its Pod in the second member. The driver does
// not create the disk yet.
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
			err = errors.New("the leaf claim has no selected node yet")
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

// promiseUnfulfilled returns nil once the member is deregistered and the promise is unfulfilled
// again.
func (w *World) promiseUnfulfilled(ctx context.Context) error {
	if err := errors.Join(w.unregistered(ctx), w.promiseSays(ctx, v1alpha1.ReasonPromised, "there is no disk yet"), gone[corev1.Pod](ctx, w, w.Host, app),
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
		return fmt.Errorf("claim %s is placed in %q, and its promise has the labels %v, want neither", data, placed, pv.Labels)
	}
	return nil
}

// fulfilled creates the pair, waits until the Pod runs, and notes the volume.
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

// promiseIn returns nil once the promise records a disk in a member, and the claim reports this.
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
		return fmt.Errorf("promise %s records volume %q, want one in %s", pv.Name, pv.Annotations[v1alpha1.AnnotationVolume], member)
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
	return fmt.Errorf("claim %s has the conditions %v, want %s: %q", data, claim.Status.Conditions, reason, message)
}

func (w *World) promiseKept(ctx context.Context) error {
	return errors.Join(w.upAndBound(ctx), w.promiseIn(ctx, rig.One))
}

// stray is the name of the second Pod.
const stray = "stray"

// promiseTwo creates a second Pod in the other member. Once that Pod reports that it waits, it lets
// the first member's provisioner continue.
func (w *World) promiseTwo(ctx context.Context) error {
	if err := w.createPod(ctx, stray, data, rig.NodeTwo); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the second Pod to wait", func(ctx context.Context) error {
		pod, err := get[corev1.Pod](ctx, w, w.Host, stray)
		if err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == v1alpha1.PodPushed && c.Status == corev1.ConditionFalse {
				return nil
			}
		}
		return fmt.Errorf("want Pod %s not to be pushed, but it has conditions %v in the host", stray, pod.Status.Conditions)
	}); err != nil {
		return err
	}
	return w.provision(ctx)
}

// promiseOnce returns nil once the first Pod has the disk and the second has failed.
func (w *World) promiseOnce(ctx context.Context) error {
	pod, err := get[corev1.Pod](ctx, w, w.Host, stray)
	if err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodFailed {
		return fmt.Errorf("the host shows Pod %s as %s, want %s", stray, pod.Status.Phase, corev1.PodFailed)
	}
	return errors.Join(w.promiseKept(ctx), w.nothing(ctx, []string{stray, data}, w.Member(rig.Two)), w.disks(rig.Two, data, 0))
}

func (w *World) promiseUnused(ctx context.Context) error {
	if err := w.createClaim(ctx, data, rig.ClassPromise); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the promise to be bound", func(ctx context.Context) error { return w.promiseSays(ctx, v1alpha1.ReasonPromised, "") }); err != nil {
		return err
	}
	return w.deleteClaim(ctx)
}

// promiseGone returns nil once the claim's objects, and all promises of the namespace, are gone.
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

// promiseMove deletes the Pod and creates one in the other member. Once the first member has no
// objects of the pair, it lets that member's provisioner continue.
func (w *World) promiseMove(ctx context.Context) error {
	if err := w.endApp(ctx); err != nil {
		return err
	}
	if err := w.createApp(ctx, rig.NodeTwo); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the withdrawal from the first member", func(ctx context.Context) error {
		return w.nothing(ctx, []string{app, data}, w.Member(rig.One))
	}); err != nil {
		return err
	}
	return w.provision(ctx)
}

// promiseMoved returns nil once Pod and disk are in the second member and the first has none of
// their objects.
func (w *World) promiseMoved(ctx context.Context) error {
	return errors.Join(w.running(ctx, app), w.boundInTwo(ctx), w.promiseIn(ctx, rig.Two), w.disks(rig.Two, data, 1),
		w.nothing(ctx, []string{app, data}, w.Member(rig.One)), w.disks(rig.One, data, 0))
}

// marked returns nil once the promise is marked as unused.
func (w *World) marked(ctx context.Context) error {
	pv, err := w.promise(ctx)
	if err != nil {
		return err
	}
	if pv.Annotations[v1alpha1.AnnotationUnusedSince] == "" && pv.Annotations[v1alpha1.AnnotationVolume] != "" {
		return fmt.Errorf("promise %s is not marked as unused", pv.Name)
	}
	return nil
}
