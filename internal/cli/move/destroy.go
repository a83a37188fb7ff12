package move

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/move/objects"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/wording"
)

// DestroyOldDisks makes Xylem destroy the disks that earlier moves of a claim kept.
func DestroyOldDisks(ctx context.Context, h *objects.Client, opts Options, claim string) error {
	store := objects.NewStore(h, claim)
	stored, err := store.Read(ctx)
	if err != nil {
		return err
	}
	if stored != nil && stored.Phase != objects.Done {
		return fmt.Errorf("the move of claim %q is not finished. Finish it with --to %s, or revert it with --undo", claim, stored.To.Registration)
	}
	left, err := disksLeftBehind(ctx, h, claim)
	if err != nil {
		return err
	}
	registrations, err := h.Registrations(ctx)
	if err != nil {
		return err
	}
	all := Fleet(registrations)
	if err := currentDiskIsIntact(ctx, h, all, claim); err != nil {
		return err
	}
	if left, err = disksToDestroy(h, all, left); err != nil {
		return err
	}
	for i := range left {
		h.ReportLine("Destroy volume %q, an old disk of claim %q", left[i].Name, claim)
	}
	if opts.DryRun != command.DryRunNone {
		return opts.Unchanged(h)
	}
	if err := opts.Confirm(h, claim, "destroy the old disks"); err != nil {
		return err
	}
	if stored != nil && slices.ContainsFunc(left, func(pv corev1.PersistentVolume) bool { return pv.UID == stored.Old.UID }) {
		if err := store.Delete(ctx); err != nil { // an undo is impossible without the disk
			return err
		}
	}
	var errs []error
	for i := range left {
		errs = append(errs, markForDestruction(ctx, h, &left[i]))
	}
	return errors.Join(errs...)
}

// currentDiskIsIntact returns an error if a claim may have lost its current disk, because an old disk may then be
// the only one with the data. A claim that does not exist needs no disk.
func currentDiskIsIntact(ctx context.Context, h *objects.Client, all Fleet, name string) error {
	claim, err := h.ReadClaim(ctx, name)
	if err != nil || claim == nil {
		return err
	}
	why := objects.LostVolumeMessage(claim)
	if why == "" && claim.Status.Phase == corev1.ClaimBound {
		pv, err := h.ReadVolumeOf(ctx, claim)
		switch {
		case err != nil:
			return err
		case pv == nil:
			why = fmt.Sprintf("volume %q does not exist in the host", claim.Spec.VolumeName)
		default:
			why = all.Disconnected(pv)
		}
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("the disk that claim %q uses now may be lost (%s), and the old disks may be the only ones with the data, so this command destroys none of them. Solve the problem first, or run this command with --undo to use the old disk again", name, why)
}

// disksLeftBehind returns the disks that earlier moves of a claim kept, or an error if there are none.
func disksLeftBehind(ctx context.Context, h *objects.Client, claim string) ([]corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	if err := h.List(ctx, &list); err != nil {
		return nil, h.ExplainHostError(fmt.Errorf("list PersistentVolumes: %w", err))
	}
	var left []corev1.PersistentVolume
	var bound []string
	for i := range list.Items {
		pv := &list.Items[i]
		switch {
		case pv.Annotations[v1alpha1.AnnotationMoveClaim] != objects.MovedClaim(h.Namespace, claim):
		case pv.Status.Phase == corev1.VolumeBound:
			bound = append(bound, pv.Name)
		default:
			left = append(left, *pv)
		}
	}
	if len(left) == 0 && len(bound) > 0 {
		return nil, fmt.Errorf("earlier moves of claim %q kept only volumes that claims use now (%s), so this command destroys none of them. Remove the annotations under %s from each volume", claim, wording.QuotedNames(bound...), v1alpha1.MovePrefix)
	}
	if len(left) == 0 {
		return nil, NothingToDo{Err: fmt.Errorf("no earlier move of claim %q in namespace %q left a disk", claim, h.Namespace)}
	}
	return left, nil
}

// disksToDestroy returns the volumes whose host and member were not restored from a backup after the move,
// and reports the others: the claim may have been bound to them in the meantime.
func disksToDestroy(h *objects.Client, all Fleet, left []corev1.PersistentVolume) ([]corev1.PersistentVolume, error) {
	var known []corev1.PersistentVolume
	var stale []error
	for i := range left {
		pv := &left[i]
		clusterID, _, _, _ := hostpv.LeafOfHostVolume(pv)
		switch restored, err := all.Restored(objects.Place{ClusterID: clusterID, Restores: pv.Annotations[v1alpha1.AnnotationMoveRestores]}); {
		case err != nil:
			stale = append(stale, fmt.Errorf("volume %q is not destroyed: %w", pv.Name, err))
		case restored:
			stale = append(stale, fmt.Errorf("volume %q is not destroyed: the host or its member was restored from a backup, or its member was registered again, after the move, so the volume may have the newest data. To keep it, remove its annotations under %s. To destroy it, delete the PersistentVolume, and ask the member's admin to delete the volume",
				pv.Name, v1alpha1.MovePrefix))
		default:
			known = append(known, *pv)
		}
	}
	if len(known) == 0 {
		return nil, errors.Join(stale...)
	}
	for _, err := range stale {
		fmt.Fprintln(h.Env.ErrOut, err)
	}
	return known, nil
}

// markForDestruction restores the reclaim policy that a volume had before the move. If that is Delete, Xylem
// destroys the disk. Otherwise, the disk is kept, like any disk with this policy.
func markForDestruction(ctx context.Context, h *objects.Client, pv *corev1.PersistentVolume) error {
	after := pv.DeepCopy()
	objects.RestorePolicy(after)
	policy := after.Spec.PersistentVolumeReclaimPolicy
	err := h.Patch(ctx, after, client.MergeFromWithOptions(pv, client.MergeFromWithOptimisticLock{}), command.FieldOwner)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return h.ExplainHostError(fmt.Errorf("set the reclaim policy of volume %q to %s: %w", pv.Name, policy, err))
	case policy != corev1.PersistentVolumeReclaimDelete:
		h.ReportLine("Volume %q is kept: its policy was %s before the move. Delete it like any other volume with this policy", pv.Name, policy)
		return nil
	}
	return h.AwaitCondition(ctx, fmt.Sprintf("volume %q to be destroyed", pv.Name), func(ctx context.Context) (string, error) {
		now, err := index.FindObject[corev1.PersistentVolume](ctx, h, client.ObjectKeyFromObject(pv))
		if err != nil {
			return "", h.ExplainHostError(err)
		}
		if now == nil || now.UID != pv.UID {
			h.ReportLine("Destroyed volume %q", pv.Name)
			return "", nil
		}
		return "Xylem is destroying the disk in the member", nil
	})
}
