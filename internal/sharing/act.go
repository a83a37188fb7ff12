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
	"github.com/xylem-io/xylem/internal/proof/copies"
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

// locked calls a function while no other one runs for the same host PV.
func (s *Sharer) locked(host string, do func() error) error {
	s.locks.LockKey(host)
	defer func() { _ = s.locks.UnlockKey(host) }() // never fails
	return do()
}

// Ensure takes the next step towards a copy of the volume that a host PV represents, for a Pod in
// the member that uses a claim. If the copy cannot be created, Ensure returns the problem. It reads
// the PVs and claims live, because it runs only until the Pod's copy is bound.
func (s *Sharer) Ensure(ctx context.Context, by guarded.Actor, claim, host string) (problem *mirror.Refusal, err error) {
	err = s.locked(host, func() error {
		o, err := s.live(ctx, host)
		if err != nil {
			return err
		}
		step, refusal := Next(o)
		if problem = refusal; problem != nil && (step == DeleteClaim || step == DeleteVolume) && s.MayDestroy() != nil {
			problem = mirror.Refuse(v1alpha1.ReasonSuspended, "%s. But Xylem deletes nothing there until an admin confirms a restore. See condition Connected of ClusterRegistration %q", refusal.Message, s.Registration)
		}
		switch step {
		case Record:
			return s.Root.Patch(ctx, by, o.Host, hostpv.WithCopyIn(o.Host, s.ClusterID))
		case CreateClaim:
			err = s.Leaf.CreateCopy(ctx, by, o.claim())
		case CreateVolume:
			pv, refusal := o.volume()
			if refusal != nil {
				return refusal
			}
			err = s.Leaf.CreateCopy(ctx, by, pv)
		case None, Ready, SetRetain, DeleteClaim, DeleteVolume, DropRecord:
		}
		if refusal := report.CopyRefused(s.Registration, claim, err); refusal != nil {
			problem = refusal
		}
		return err
	})
	return problem, err
}

// live observes a copy that a Pod needs.
func (s *Sharer) live(ctx context.Context, name string) (Observed, error) {
	o := Observed{Place: s.Place(), Wanted: true}
	var err error
	if o.Host, err = index.Find[corev1.PersistentVolume](ctx, s.HostLive, index.Named(name)); err != nil || !hostpv.Sharing(o.Host) {
		return o, err
	}
	if o.Class, err = index.Find[storagev1.StorageClass](ctx, s.Host, index.Named(o.Host.Spec.StorageClassName)); err != nil {
		return o, err
	}
	if class, refusal := o.Place.CopyClass(o.Host, o.Class); refusal == nil {
		if o.MemberClass, err = index.Find[storagev1.StorageClass](ctx, s.Cache, index.Named(class)); err != nil {
			return o, err
		}
	}
	ref := o.Host.Spec.ClaimRef
	if o.Claim, err = index.Find[corev1.PersistentVolumeClaim](ctx, s.Live, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}); err != nil {
		return o, err
	}
	o.Volume, err = index.Find[corev1.PersistentVolume](ctx, s.Live, index.Named(Name(s.HostID, o.Host)))
	return o, err
}

// Reduce takes the next step to record, repair or remove the member's copy of the volume of a host
// PV, which may be gone.
func (s *Sharer) Reduce(ctx context.Context, by guarded.Actor, host string) error {
	return s.locked(host, func() error {
		o, err := s.cached(ctx, host)
		if err != nil {
			return err
		}
		step, _ := Next(o)
		switch step {
		case Record:
			return s.Root.Patch(ctx, by, o.Host, hostpv.WithCopyIn(o.Host, s.ClusterID))
		case SetRetain:
			return client.IgnoreNotFound(s.Leaf.RetainCopy(ctx, by, o.Volume))
		case DeleteClaim:
			e, proven, err := copies.ClaimObsolete(ctx, s.Proof(), o.Claim)
			return s.remove(ctx, o.Claim, e, proven, err)
		case DeleteVolume:
			e, proven, err := copies.VolumeObsolete(ctx, s.Proof(), o.Volume)
			return s.remove(ctx, o.Volume, e, proven, err)
		case DropRecord:
			e, gone, err := copies.Gone(ctx, s.Proof(), o.Host, Name(s.HostID, o.Host))
			if err != nil {
				return fmt.Errorf("prove that the copy of volume %s is gone: %w", host, err)
			}
			if !gone {
				return nil // an event of the member's object enqueues the volume
			}
			return client.IgnoreNotFound(s.Root.DropCopyRecord(ctx, by, o.Host, e))
		case None, Ready, CreateClaim, CreateVolume:
		}
		return nil
	})
}

func (s *Sharer) remove(ctx context.Context, obj client.Object, e copies.Obsolete, proven bool, err error) error {
	if err != nil || !proven {
		return err
	}
	return client.IgnoreNotFound(s.Leaf.DeleteCopy(ctx, obj, e))
}

// cached observes a copy that no Pod waits for. If the member has several claims that are copies of
// the volume, an obsolete one comes first.
func (s *Sharer) cached(ctx context.Context, name string) (Observed, error) {
	o := Observed{Place: s.Place()}
	var err error
	if o.Host, err = index.Find[corev1.PersistentVolume](ctx, s.Host, index.Named(name)); err != nil {
		return o, err
	}
	claims, volumes, err := index.CopiesOf(ctx, s.Cache, name)
	if err != nil {
		return o, err
	}
	for i := range claims {
		if c, ours := mirror.VolumeCopyIn(s.HostID, &claims[i]); ours && (o.Claim == nil || !copies.Needed(o.Host, c)) {
			o.Claim = &claims[i]
		}
	}
	for i := range volumes {
		if _, ours := mirror.VolumeCopyIn(s.HostID, &volumes[i]); ours {
			o.Volume = &volumes[i]
		}
	}
	return o, nil
}
