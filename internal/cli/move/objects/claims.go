package objects

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/wording"
)

// ProveManifest makes sure that the command creates no claim of a tenant's choice: a tenant can write
// the record. While the claim with the old disk exists, its manifest is that of the claim. Afterwards,
// the recorded one must fit the old disk's volume, and the volume for which the command creates it (reserve). A tenant
// cannot write volumes.
func (w *ObjectWriter) ProveManifest(ctx context.Context, r *Record) error {
	claim, err := w.host.ReadClaim(ctx, w.claim)
	if err != nil {
		return err
	}
	if claim != nil && claim.UID == r.ClaimUID {
		r.Claim = ClaimManifest(claim)
		return nil
	}
	r.Claim = ClaimManifest(r.Claim)
	pv, err := w.FindVolume(ctx, r.Old)
	if err != nil || pv == nil {
		return err
	}
	return w.proveVolumeFits(r, pv)
}

// proveVolumeFits returns an error if the recorded claim does not fit a volume.
func (w *ObjectWriter) proveVolumeFits(r *Record, pv *corev1.PersistentVolume) error {
	if r.FitsVolume(pv) {
		return nil
	}
	return fmt.Errorf("volume %q has another class or mode than the claim in the record, ConfigMap %q, so somebody changed the record. Correct the claim in the ConfigMap", pv.Name, ConfigMapName(w.claim))
}

// BindClaim creates the claim of a move for an unused volume, waits until it is bound, and returns its
// UID.
func (w *ObjectWriter) BindClaim(ctx context.Context, r *Record, d Disk) (types.UID, error) {
	claim, err := w.host.ReadClaim(ctx, w.claim)
	switch {
	case err != nil:
		return "", err
	case claim == nil:
		if err := w.reserveVolume(ctx, r, d); err != nil {
			return "", err
		}
		claim = r.ClaimBoundTo(d.Name)
		if err := w.host.Create(ctx, claim, command.FieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", w.host.ExplainHostError(fmt.Errorf("create claim %q: %w", claim.Name, err))
		}
	case !r.IsBoundTo(claim, d.Name):
		return "", fmt.Errorf("somebody created another claim %q during the move. Delete that claim", claim.Name)
	}
	var uid types.UID
	err = w.host.AwaitCondition(ctx, fmt.Sprintf("claim %q to be bound", w.claim), func(ctx context.Context) (string, error) {
		claim, err := w.host.ReadClaim(ctx, w.claim)
		switch {
		case err != nil:
			return "", err
		case claim == nil || !r.IsBoundTo(claim, d.Name):
			return "", fmt.Errorf("somebody deleted claim %q, or created it again, during the move", w.claim)
		case claim.Status.Phase == corev1.ClaimBound:
			uid = claim.UID
			return "", nil
		}
		return "its phase is " + string(claim.Status.Phase), nil
	})
	return uid, err
}

// DeleteClaim deletes a claim unless another run has taken over. The other run changes the claim,
// or its volume, before it relies on the claim, so a delayed deletion fails.
func (w *ObjectWriter) DeleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	return w.deleteClaim(ctx, claim, func(*corev1.PersistentVolumeClaim) error { return nil })
}

// deleteClaim deletes a claim. prepare runs with the claim as it is when it is deleted.
func (w *ObjectWriter) deleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, prepare func(*corev1.PersistentVolumeClaim) error) error {
	name, uid := claim.Name, claim.UID
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // other clients write the status
		claim, err := w.host.ReadClaim(ctx, name)
		if err != nil || claim == nil || claim.UID != uid || claim.DeletionTimestamp != nil {
			return err
		}
		if err := prepare(claim); err != nil {
			return err
		}
		if err := w.store.IsCurrentRun(ctx); err != nil {
			return err
		}
		version := claim.ResourceVersion
		if err := client.IgnoreNotFound(w.host.Delete(ctx, claim, client.Preconditions{UID: &uid, ResourceVersion: &version})); err != nil {
			return w.host.ExplainHostError(fmt.Errorf("delete claim %q: %w", name, err))
		}
		return nil
	})
}

// DeleteCopies deletes the move's second claims, except one. Xylem destroys their disks if the
// class's policy is Delete, but keeps existing volumes that the claims were bound to.
func (w *ObjectWriter) DeleteCopies(ctx context.Context, r *Record, except string) error {
	claims, err := w.copies(ctx, r.ID)
	if err != nil {
		return err
	}
	for i := range claims {
		if claims[i].Name == except {
			continue
		}
		err := w.deleteClaim(ctx, &claims[i], func(claim *corev1.PersistentVolumeClaim) error { return w.keepExisting(ctx, r, claim) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Copies returns the existing volumes that are copies of the move: the recorded one, and those of its
// second claims.
func (w *ObjectWriter) Copies(ctx context.Context, r *Record) ([]Disk, error) {
	claims, err := w.copies(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	var disks []Disk
	if pv, err := w.FindVolume(ctx, r.New); err != nil {
		return nil, err
	} else if pv != nil {
		disks = append(disks, r.New)
	}
	for i := range claims {
		pv, err := w.host.ReadVolumeOf(ctx, &claims[i])
		if err != nil {
			return nil, err
		}
		if pv != nil && pv.UID != r.New.UID && hostpv.WasProvisionedFor(pv, &claims[i]) {
			disks = append(disks, DiskOf(pv))
		}
	}
	return disks, nil
}

func (w *ObjectWriter) copies(ctx context.Context, id string) ([]corev1.PersistentVolumeClaim, error) {
	var claims corev1.PersistentVolumeClaimList
	if err := w.host.List(ctx, &claims, client.InNamespace(w.host.Namespace), client.MatchingLabels(LabelsOfMove(id))); err != nil {
		return nil, w.host.ExplainHostError(fmt.Errorf("list claims: %w", err))
	}
	return claims.Items, nil
}

// AwaitGone waits until a claim no longer exists. It reports Pods that use the claim, except the
// move's own.
func (w *ObjectWriter) AwaitGone(ctx context.Context, id, name string, uid types.UID) error {
	return w.host.AwaitCondition(ctx, fmt.Sprintf("claim %q to be deleted", name), func(ctx context.Context) (string, error) {
		claim, err := w.host.ReadClaim(ctx, name)
		if err != nil || claim == nil || claim.UID != uid {
			return "", err
		}
		if err := ProveUnused(ctx, w.host, id, name); err != nil {
			return err.Error(), nil //nolint:nilerr // the Pods may still terminate
		}
		return "it still has finalizers " + wording.QuotedNames(claim.Finalizers...), nil
	})
}

// TouchClaim writes the run's ID to a claim, so that a delayed deletion by an earlier run fails.
func (w *ObjectWriter) TouchClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, run string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before, err := w.host.ReadClaim(ctx, claim.Name)
		switch {
		case err != nil:
			return err
		case before == nil || before.UID != claim.UID || before.DeletionTimestamp != nil:
			return fmt.Errorf("claim %q was deleted by somebody else", claim.Name)
		}
		after := before.DeepCopy()
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationMoveRun, run)
		if err := w.host.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), command.FieldOwner); err != nil {
			return w.host.ExplainHostError(fmt.Errorf("annotate claim %q: %w", claim.Name, err))
		}
		return nil
	})
}
