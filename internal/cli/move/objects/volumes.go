package objects

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/index"
)

// ObjectWriter changes the claims and volumes that are involved in moving one claim. It fails if another
// run has taken over.
type ObjectWriter struct {
	host  *Client
	store *Store
	// claim is the name of the claim whose data is moved.
	claim string
}

// NewObjectWriter creates the ObjectWriter for the moves of a claim.
func NewObjectWriter(h *Client, store *Store, claim string) *ObjectWriter {
	return &ObjectWriter{host: h, store: store, claim: claim}
}

// VolumeGoneError reports that a volume no longer exists in the host.
type VolumeGoneError string

func (e VolumeGoneError) Error() string {
	return fmt.Sprintf("somebody deleted volume %q in the host. Its disk may still be in the member; `kubectl xylem doctor` lists such disks", string(e))
}

// Volume reads a volume of the move, or returns a VolumeGoneError. The volume must belong to a claim
// in the namespace. Otherwise, a tenant who can write ConfigMaps in the namespace could record
// another tenant's volume, which the command would then change with the permissions of its user.
func (w *ObjectWriter) Volume(ctx context.Context, d Disk) (*corev1.PersistentVolume, error) {
	pv, err := w.FindVolume(ctx, d)
	switch {
	case err != nil:
		return nil, err
	case pv == nil:
		return nil, VolumeGoneError(d.Name)
	case pv.Spec.ClaimRef == nil, pv.Spec.ClaimRef.Namespace != w.host.Namespace:
		return nil, w.wrongRecord(d, fmt.Sprintf("does not belong to namespace %q", w.host.Namespace))
	}
	return pv, nil
}

// FindVolume reads a volume, or returns nil.
func (w *ObjectWriter) FindVolume(ctx context.Context, d Disk) (*corev1.PersistentVolume, error) {
	pv, err := index.FindObject[corev1.PersistentVolume](ctx, w.host, client.ObjectKey{Name: d.Name})
	if err != nil {
		return nil, w.host.ExplainHostError(err)
	}
	if pv == nil || pv.UID != d.UID {
		return nil, nil //nolint:nilnil // no volume, no error
	}
	return pv, nil
}

// IsBound reports whether a claim is bound to a volume. The claim may be nil.
func (w *ObjectWriter) IsBound(ctx context.Context, claim *corev1.PersistentVolumeClaim, d Disk) (bool, error) {
	if claim == nil || claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound {
		return false, nil
	}
	pv, err := w.host.ReadVolumeOf(ctx, claim)
	return pv != nil && pv.UID == d.UID, err
}

// Retain sets a volume's reclaim policy to Retain, and annotates the volume.
func (w *ObjectWriter) Retain(ctx context.Context, r *Record, d Disk, annotations map[string]string) error {
	return w.patchVolume(ctx, d, "set its policy to Retain", func(pv *corev1.PersistentVolume) error {
		r.Retain(pv)
		maps.Copy(pv.Annotations, annotations)
		return nil
	})
}

// RestoreBound restores the policy that the claim's volume had before the move. The volume must be
// bound to the claim. Otherwise, a forged record could name a disk that an earlier move keeps.
func (w *ObjectWriter) RestoreBound(ctx context.Context, r *Record, d Disk, claim types.UID) error {
	return w.restorePolicy(ctx, r, d, func(pv *corev1.PersistentVolume) bool { return pv.Spec.ClaimRef.UID == claim })
}

// RestoreCopy restores the policy that an unused copy had before the move. The volume must not be a
// disk that a move keeps, for the same reason.
func (w *ObjectWriter) RestoreCopy(ctx context.Context, r *Record, d Disk) error {
	return w.restorePolicy(ctx, r, d, func(pv *corev1.PersistentVolume) bool {
		return pv.Annotations[v1alpha1.AnnotationMoveClaim] == "" && pv.Spec.ClaimRef.Name != w.claim
	})
}

// restorePolicy restores the policy of a volume, if this move changed it.
func (w *ObjectWriter) restorePolicy(ctx context.Context, r *Record, d Disk, may func(*corev1.PersistentVolume) bool) error {
	return w.patchVolume(ctx, d, "restore its policy", func(pv *corev1.PersistentVolume) error {
		if !may(pv) {
			return w.wrongRecord(d, "is not the disk that the record describes")
		}
		if r.Retains(pv) {
			RestorePolicy(pv)
		}
		return nil
	})
}

// wrongRecord reports that the record names a volume that the move cannot have used.
func (w *ObjectWriter) wrongRecord(d Disk, what string) error {
	return fmt.Errorf("volume %q %s, so the record of the move is wrong: somebody changed the volume's claimRef, or ConfigMap %q. Correct the claimRef, or delete the ConfigMap",
		d.Name, what, ConfigMapName(w.claim))
}

// reserveVolume points a volume at the claim that will be created.
func (w *ObjectWriter) reserveVolume(ctx context.Context, r *Record, d Disk) error {
	err := w.host.AwaitCondition(ctx, fmt.Sprintf("volume %q to be released", d.Name), func(ctx context.Context) (string, error) {
		pv, err := w.Volume(ctx, d)
		if err != nil || pv.Status.Phase != corev1.VolumeBound {
			return "", err
		}
		return "its phase is Bound", nil
	})
	if err != nil {
		return err
	}
	return w.patchVolume(ctx, d, "reserve it for the claim", func(pv *corev1.PersistentVolume) error {
		if err := w.proveVolumeFits(r, pv); err != nil {
			return err
		}
		r.Retain(pv)
		pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: w.host.Namespace, Name: w.claim}
		return nil
	})
}

// patchVolume changes a volume unless another run has taken over.
func (w *ObjectWriter) patchVolume(ctx context.Context, d Disk, what string, change func(*corev1.PersistentVolume) error) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // other clients write the status
		before, err := w.Volume(ctx, d)
		if err != nil {
			return err
		}
		if err := w.store.IsCurrentRun(ctx); err != nil {
			return err
		}
		after := before.DeepCopy()
		if err := change(after); err != nil {
			return err
		}
		if equality.Semantic.DeepEqual(before, after) {
			return nil
		}
		if err := w.host.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), command.FieldOwner); err != nil {
			return w.host.ExplainHostError(fmt.Errorf("patch volume %q to %s: %w", d.Name, what, err))
		}
		return nil
	})
}
