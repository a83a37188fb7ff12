package sharing

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/keymutex"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/proof"
)

// Sharer creates and removes one member's copies of shared volumes. Its methods are safe for
// concurrent use.
type Sharer struct {
	*member.Link
	// locks prevents one controller from creating a copy while another removes its record.
	locks keymutex.KeyMutex
}

// New returns the Sharer of a link.
func New(link *member.Link) *Sharer { return &Sharer{link, keymutex.NewHashed(0)} }

// withVolumeLock calls a function while no other one runs for the same host PV.
func (s *Sharer) withVolumeLock(host string, do func() error) error {
	s.locks.LockKey(host)
	defer func() { _ = s.locks.UnlockKey(host) }() // never fails
	return do()
}

// EnsureCopy takes the next step towards a copy of the volume that a host PV represents, for a Pod in
// the member that uses a claim. If the copy cannot be created, EnsureCopy returns the problem. It reads
// the PVs and claims live, because it runs only until the Pod's copy is bound.
func (s *Sharer) EnsureCopy(ctx context.Context, by guarded.Actor, claim, host string) (problem *mirror.Refusal, err error) {
	err = s.withVolumeLock(host, func() error {
		o, err := s.observeLive(ctx, host)
		if err != nil {
			return err
		}
		step, refusal := NextCopyStep(o)
		if problem = refusal; problem != nil && (step == DeleteClaim || step == DeleteVolume) && s.CheckNotSuspended() != nil {
			problem = mirror.NewRefusal(v1alpha1.ReasonSuspended, "%s. But Xylem deletes nothing there until an admin confirms a restore. See condition Connected of ClusterRegistration %q", refusal.Message, s.Registration)
		}
		switch step {
		case Record:
			return s.HostWriter.PatchOwned(ctx, by, o.Host, hostpv.VolumeWithCopyIn(o.Host, s.ClusterID))
		case CreateClaim:
			err = s.MemberWriter.CreateVolumeCopy(ctx, by, o.newCopyClaim())
		case CreateVolume:
			pv, refusal := o.newCopyVolume()
			if refusal != nil {
				return refusal
			}
			err = s.MemberWriter.CreateVolumeCopy(ctx, by, pv)
		case None, Ready, SetRetain, DeleteClaim, DeleteVolume, DropRecord:
		}
		if refusal := report.VolumeCopyRefusal(s.Registration, claim, err); refusal != nil {
			problem = refusal
		}
		return err
	})
	return problem, err
}

// observeLive observes a copy that a Pod needs.
func (s *Sharer) observeLive(ctx context.Context, name string) (Observed, error) {
	o := Observed{Place: s.PlacementMember(), WantedByPod: true}
	var err error
	if o.Host, err = index.FindObject[corev1.PersistentVolume](ctx, s.HostLive, index.ClusterScopedKey(name)); err != nil || !hostpv.MayCopySharedVolume(o.Host) {
		return o, err
	}
	if o.Class, err = index.FindObject[storagev1.StorageClass](ctx, s.Host, index.ClusterScopedKey(o.Host.Spec.StorageClassName)); err != nil {
		return o, err
	}
	if class, refusal := o.Place.ClassForVolumeCopy(o.Host, o.Class); refusal == nil {
		if o.MemberClass, err = index.FindObject[storagev1.StorageClass](ctx, s.Cache, index.ClusterScopedKey(class)); err != nil {
			return o, err
		}
	}
	ref := o.Host.Spec.ClaimRef
	if o.Claim, err = index.FindObject[corev1.PersistentVolumeClaim](ctx, s.Live, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}); err != nil {
		return o, err
	}
	o.Volume, err = index.FindObject[corev1.PersistentVolume](ctx, s.Live, index.ClusterScopedKey(CopyVolumeName(s.HostID, o.Host)))
	return o, err
}

// MaintainCopy takes the next step to record, repair or remove the member's copy of the volume of a host
// PV, which may be gone.
func (s *Sharer) MaintainCopy(ctx context.Context, by guarded.Actor, host string) error {
	return s.withVolumeLock(host, func() error {
		o, err := s.observeCached(ctx, host)
		if err != nil {
			return err
		}
		step, _ := NextCopyStep(o)
		switch step {
		case Record:
			return s.HostWriter.PatchOwned(ctx, by, o.Host, hostpv.VolumeWithCopyIn(o.Host, s.ClusterID))
		case SetRetain:
			return client.IgnoreNotFound(s.MemberWriter.RetainVolumeCopy(ctx, by, o.Volume))
		case DeleteClaim:
			e, proven, err := proof.ProveCopyClaimObsolete(ctx, s.NewProver(), o.Claim)
			return s.deleteObsolete(ctx, o.Claim, e, proven, err)
		case DeleteVolume:
			e, proven, err := proof.ProveCopyVolumeObsolete(ctx, s.NewProver(), o.Volume)
			return s.deleteObsolete(ctx, o.Volume, e, proven, err)
		case DropRecord:
			e, gone, err := proof.ProveCopyGone(ctx, s.NewProver(), o.Host, CopyVolumeName(s.HostID, o.Host))
			if err != nil {
				return fmt.Errorf("prove that the copy of volume %s is gone: %w", host, err)
			}
			if !gone {
				return nil // an event of the member's object enqueues the volume
			}
			return client.IgnoreNotFound(s.HostWriter.DropCopyRecord(ctx, by, o.Host, e))
		case None, Ready, CreateClaim, CreateVolume:
		}
		return nil
	})
}

func (s *Sharer) deleteObsolete(ctx context.Context, obj client.Object, e proof.CopyObsolete, proven bool, err error) error {
	if err != nil || !proven {
		return err
	}
	return client.IgnoreNotFound(s.MemberWriter.DeleteVolumeCopy(ctx, obj, e))
}

// observeCached observes a copy that no Pod waits for. If the member has several claims that are copies of
// the volume, an obsolete one comes first.
func (s *Sharer) observeCached(ctx context.Context, name string) (Observed, error) {
	o := Observed{Place: s.PlacementMember()}
	var err error
	if o.Host, err = index.FindObject[corev1.PersistentVolume](ctx, s.Host, index.ClusterScopedKey(name)); err != nil {
		return o, err
	}
	claims, volumes, err := index.VolumeCopiesOf(ctx, s.Cache, name)
	if err != nil {
		return o, err
	}
	for i := range claims {
		if c, ours := mirror.VolumeCopyFromHost(s.HostID, &claims[i]); ours && (o.Claim == nil || !proof.IsCopyNeeded(o.Host, c)) {
			o.Claim = &claims[i]
		}
	}
	for i := range volumes {
		if _, ours := mirror.VolumeCopyFromHost(s.HostID, &volumes[i]); ours {
			o.Volume = &volumes[i]
		}
	}
	return o, nil
}
