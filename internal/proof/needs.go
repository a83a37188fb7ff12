package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
)

// DataNeed is a use of a volume's, or of a VolumeSnapshot's, data that must end before the data may be
// destroyed. A feature that uses data adds its need to Needs.
type DataNeed struct {
	// Who needs the data, and Until when.
	Who, Until string
	// References lists the fields and keys by which an object in the host refers to the data. TestNeedsAreRegistered
	// requires that each of them is in the list of a need, or needs no data.
	References []string
	// Proof is what shows that the need has ended.
	Proof string
	// findForVolume and snapshot return the objects in the host that need the data, from live reads. They are
	// nil if something else than Unneeded proves that the need has ended.
	findForVolume, findForSnapshot needReader
}

// needReader returns the objects in the host that need the data of a claim or VolumeSnapshot.
type needReader func(Prover, context.Context, dataRoot) ([]string, error)

// dataRoot is the claim, or the VolumeSnapshot, whose data must be destroyed.
type dataRoot struct {
	types.NamespacedName
	uid types.UID
	// gone is set if a live read has shown that it no longer exists.
	gone bool
}

// Needs lists all needs, as VOLUMES.md shows them.
var Needs = []DataNeed{
	{
		Who: "a Pod of the claim", Until: "it has finished, or is gone",
		References: []string{"PersistentVolumeClaimVolumeSource.ClaimName", v1alpha1.AnnotationConsumer},
		Proof:      "ProveRootGone: Kubernetes keeps a claim while a Pod uses it. For a disk that is released while its claim exists: Unused",
	},
	{
		Who: "a VolumeSnapshot to be taken of the claim", Until: "it is ready, or is being deleted",
		References:    []string{"VolumeSnapshotSource.PersistentVolumeClaimName", "VolumeSnapshotContentSource.VolumeHandle"},
		Proof:         "ProveVolumeUnneeded",
		findForVolume: Prover.findSnapshotsToTake,
	},
	{
		Who: "a claim that is Bound to a promise, to be cloned from the claim or restored from the VolumeSnapshot", Until: "it has a disk, or is being deleted",
		References: []string{v1alpha1.AnnotationSource},
		Proof:      "ProveVolumeUnneeded, ProveSnapshotUnneeded",
		findForVolume: func(p Prover, ctx context.Context, r dataRoot) ([]string, error) {
			return p.findClaimsToFill(ctx, r, mirror.ClaimDataSource(r.Name))
		},
		findForSnapshot: func(p Prover, ctx context.Context, r dataRoot) ([]string, error) {
			return p.findClaimsToFill(ctx, r, mirror.SnapshotDataSource(r.Name))
		},
	},
	{
		Who: "a claim that is not bound yet, to be cloned or restored", Until: "it is bound, or is gone",
		References: []string{"PersistentVolumeClaimSpec.DataSource", "PersistentVolumeClaimSpec.DataSourceRef"},
		Proof:      "as in a single cluster: the host's snapshot-controller keeps the VolumeSnapshot, and the member's provisioner keeps the claim that it clones",
	},
	{
		Who: "a copy of a shared volume, in another member", Until: "shared_pv has removed it, and its record on the host PV",
		References: []string{v1alpha1.FinalizerCopyPrefix, v1alpha1.AnnotationCopyOf, v1alpha1.AnnotationCopyOfUID, v1alpha1.AnnotationCopyFor},
		Proof:      "ProveHostReleased: the record",
	},
	{
		Who: "`kubectl xylem move`, for the disk that it moves the data from", Until: "the user confirms the end of the move",
		References: []string{v1alpha1.LabelMove, v1alpha1.AnnotationMoveClaim, v1alpha1.AnnotationMovePolicy, v1alpha1.AnnotationMoveRestores, v1alpha1.AnnotationMoveRun},
		Proof:      "ProveHostReleased: the host PV's policy is Retain during a move",
	},
	{
		Who: "a host PV of the same claim, or one that represents the volume", Until: "it has ended with policy Delete, or is gone",
		References: []string{"PersistentVolumeSpec.ClaimRef", "CSIPersistentVolumeSource.VolumeHandle", v1alpha1.AnnotationVolume},
		Proof:      "ProveNotMirrored",
	},
}

// ErrDataNeeded reports that objects in the host need data that was to be destroyed. The error names them.
var ErrDataNeeded = errors.New("others need the data")

// DataUnneeded is the proof that no object in the host needs the data of a claim's volume, or of a
// VolumeSnapshot. Every write that destroys data requires it. Prove it after the end of the claim or
// VolumeSnapshot, because only existing ones get new needs.
type DataUnneeded struct{ witness *Witness }

// ProveVolumeUnneeded proves by live reads that no object in the host needs the data of a claim's volume. It
// returns ErrDataNeeded if an object needs the data. gone is zero if the claim may exist.
func (p Prover) ProveVolumeUnneeded(ctx context.Context, claim types.NamespacedName, uid types.UID, gone RootGone) (DataUnneeded, error) {
	return p.proveUnneeded(ctx, dataRoot{claim, uid, uid != "" && gone.rootUID() == uid}, func(n DataNeed) needReader { return n.findForVolume })
}

// ProveSnapshotUnneeded proves by live reads that no object in the host needs the data of a VolumeSnapshot,
// which may be gone. It returns ErrDataNeeded if an object needs the data.
func (p Prover) ProveSnapshotUnneeded(ctx context.Context, snapshot types.NamespacedName, uid types.UID) (DataUnneeded, error) {
	return p.proveUnneeded(ctx, dataRoot{snapshot, uid, false}, func(n DataNeed) needReader { return n.findForSnapshot })
}

func (p Prover) proveUnneeded(ctx context.Context, of dataRoot, readOf func(DataNeed) needReader) (DataUnneeded, error) {
	began := p.Clock.Now()
	if of.uid == "" {
		return DataUnneeded{}, NewUnprovenError("the claim or VolumeSnapshot %s has no UID", of)
	}
	for _, need := range Needs {
		read := readOf(need)
		if read == nil {
			continue
		}
		by, err := read(p, ctx, of)
		if err != nil {
			return DataUnneeded{}, fmt.Errorf("prove that nobody needs the data of %s: %w", of, err)
		}
		if len(by) > 0 {
			return DataUnneeded{}, fmt.Errorf("%s: %w: %s", of, ErrDataNeeded, strings.Join(by, ", "))
		}
	}
	return DataUnneeded{witness: p.newWitness(began, of.uid, "")}, nil
}

// findClaimsToFill returns the claims that are still to be created from a source.
func (p Prover) findClaimsToFill(ctx context.Context, of dataRoot, source mirror.DataSource) ([]string, error) {
	waiting, err := p.WaitingClaims.Do(ctx, of.Namespace, func(ctx context.Context) ([]corev1.PersistentVolumeClaim, error) {
		return index.LiveUnfilledClaims(ctx, p.HostLive, of.Namespace)
	})
	if err != nil {
		return nil, err
	}
	claims, err := index.ClaimsToFill(ctx, p.HostLive, waiting, source, of.uid)
	return index.DescribeClaims(claims), err
}

// findSnapshotsToTake returns the VolumeSnapshots of a claim that are neither ready nor being deleted. If the
// claim is gone, none can be taken: the host's snapshot-controller keeps it until then.
func (p Prover) findSnapshotsToTake(ctx context.Context, of dataRoot) ([]string, error) {
	if of.gone {
		return nil, nil
	}
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, p.HostLive, of.NamespacedName)
	if err != nil || claim == nil || claim.UID != of.uid {
		return nil, err
	}
	var list snapshotv1.VolumeSnapshotList
	var found []string
	err = index.ListPages(ctx, p.HostLive, &list, func() {
		for i := range list.Items {
			s := &list.Items[i]
			ready := s.Status != nil && ptr.Deref(s.Status.ReadyToUse, false)
			if ptr.Deref(s.Spec.Source.PersistentVolumeClaimName, "") == of.Name && !ready && s.DeletionTimestamp == nil {
				found = append(found, fmt.Sprintf("VolumeSnapshot %q", s.Name))
			}
		}
	}, client.InNamespace(of.Namespace))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil // the host has no VolumeSnapshots
	}
	return found, err
}

// DestructionEvidence returns the Evidence for a write that destroys data: it covers what the given one covers, if
// nobody needs the data. It uses up both.
func DestructionEvidence(nobody DataUnneeded, evidence DataDestroyingEvidence) Evidence {
	return unneededDestruction{nobody, evidence}
}

type unneededDestruction struct {
	unneeded DataUnneeded
	evidence DataDestroyingEvidence
}

// CoversWrite implements Evidence.
func (d unneededDestruction) CoversWrite(key EvidenceKey, action Action, object client.Object) error {
	if d.evidence == nil || d.unneeded.witness == nil || d.unneeded.witness.UID != d.evidence.DestroysDataOf(key) {
		return NewUnprovenError("somebody may need the data of %T %s", object, client.ObjectKeyFromObject(object))
	}
	if err := d.evidence.CoversWrite(key, action, object); err != nil {
		return err
	}
	return SpendProofs(d.unneeded.witness)
}
