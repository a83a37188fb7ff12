package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/volume"
)

// observePlacement reads the state of the member that concerns a claim: the root or, if it is gone, the
// next claim with its name.
func (o Observer) observePlacement(ctx context.Context, s *volume.Observed) error {
	s.Placement = &volume.Placement{HostRestored: o.HostRestored, HostUnconfirmed: o.HostUnconfirmed}
	if s.Claim != nil {
		if err := o.observeProvisioned(ctx, s); err != nil {
			return err
		}
	}
	claim := s.Named()
	if claim == nil {
		return nil
	}
	for _, read := range []func(context.Context, *volume.Observed, *corev1.PersistentVolumeClaim) error{
		o.observeBound, o.observeRegistration, o.observeMember, o.observeTenant, o.observeSource, o.observeAttempt,
	} {
		if err := read(ctx, s, claim); err != nil {
			return err
		}
	}
	return nil
}

// observeProvisioned reads the PV of a leaf claim, and its class.
func (o Observer) observeProvisioned(ctx context.Context, s *volume.Observed) error {
	made := s.Leaf
	var err error
	switch {
	case !s.Alone():
	case s.Claim.Spec.VolumeName != "":
		made, err = index.Find[corev1.PersistentVolume](ctx, o.Cache, index.Named(s.Claim.Spec.VolumeName))
	default:
		var all []corev1.PersistentVolume
		if all, err = index.VolumesForClaim(ctx, o.Cache, s.Claim.UID); len(all) > 0 {
			made = &all[0]
		}
	}
	if err != nil {
		return err
	}
	s.Placement.Provisioned = made
	s.Placement.LeafClass, err = index.Find[storagev1.StorageClass](ctx, o.Cache, index.Named(ptr.Deref(s.Claim.Spec.StorageClassName, "")))
	return err
}

// observeBound reads the host PV that a claim names. It adds the PV to the observation if it is a promise
// without a disk, and otherwise only whether the volume is outside this member.
func (o Observer) observeBound(ctx context.Context, s *volume.Observed, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeName == "" {
		return o.observeMirror(ctx, s, claim)
	}
	pv, err := index.Find[corev1.PersistentVolume](ctx, o.Host, index.Named(claim.Spec.VolumeName))
	if err == nil && pv == nil {
		s.Placement.HostGone = true
		s.PromiseLost = s.PromiseLost || s.Alone() && hostpv.NamesPromise(claim.Spec.VolumeName)
		return o.observeAsked(ctx, s, claim)
	}
	if err != nil {
		return err
	}
	cluster, _, _, ours := hostpv.LeafOf(pv)
	if !hostpv.HeldBy(pv, claim) {
		if ours && cluster == o.ClusterID && claim.Status.Phase == corev1.ClaimLost {
			s.Placement.Diverted = pv
		}
		return nil
	}
	if hostpv.IsUnfulfilled(pv) {
		if s.Alone() {
			s.Promise = pv
			s.Placement.Pods, err = o.PodsHere(ctx, client.ObjectKeyFromObject(claim))
		}
		return err
	}
	if !ours || cluster != o.ClusterID {
		s.Placement.BoundAway = s.Claim == nil || !hostpv.RecordsLeaf(pv, o.ClusterID, s.Claim.Spec.VolumeName)
	}
	return nil
}

// observeMirror reads the host PV that was created for an unbound claim or, if its claimRef does not name
// the claim, as Diverted.
func (o Observer) observeMirror(ctx context.Context, s *volume.Observed, claim *corev1.PersistentVolumeClaim) error {
	p := s.Placement
	hosts, err := index.VolumesOfClaim(ctx, o.Host, client.ObjectKeyFromObject(claim))
	for i := range hosts {
		if cluster, _, _, _ := hostpv.LeafOf(&hosts[i]); cluster == o.ClusterID && hosts[i].Spec.ClaimRef.UID == claim.UID {
			p.Mirror = &hosts[i]
		}
	}
	if err != nil || p.Mirror != nil || p.Provisioned == nil || s.Claim.Spec.VolumeName == "" {
		return err
	}
	hosts, err = index.VolumesOfLeaf(ctx, o.Host, o.ClusterID, s.Claim.Spec.VolumeName)
	p.Diverted = diverted(hosts, p.Provisioned, claim)
	return err
}

// diverted returns which of the host PVs that have a leaf PV's name represents the leaf PV and can no
// longer be bound to the unbound root, or nil. A claimRef without a UID reserves the PV for the root.
func diverted(hosts []corev1.PersistentVolume, leaf *corev1.PersistentVolume, root *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	for i := range hosts {
		if _, _, uid, _ := hostpv.LeafOf(&hosts[i]); uid == leaf.UID && !hostpv.PointsAt(&hosts[i], root) {
			return &hosts[i]
		}
	}
	return nil
}

// observeAsked reads the leaf PV that a claim requests by name, if the host has no PV for it.
func (o Observer) observeAsked(ctx context.Context, s *volume.Observed, claim *corev1.PersistentVolumeClaim) error {
	p := s.Placement
	candidate := p.Provisioned
	if candidate == nil || s.Claim.Spec.VolumeName == "" {
		var err error
		if candidate, err = index.Find[corev1.PersistentVolume](ctx, o.Cache, index.Named(claim.Spec.VolumeName)); err != nil {
			return err
		}
	}
	if candidate == nil || !hostpv.Requests(claim, candidate, o.Member) {
		return nil
	}
	hosts, err := index.VolumesOfLeaf(ctx, o.Host, o.ClusterID, candidate.Name)
	if err != nil || len(hosts) > 0 {
		return err
	}
	p.Asked = candidate
	if o.Orphans != nil {
		p.Rivals = o.Orphans.Rivals(o.Registration, candidate.Name, client.ObjectKeyFromObject(claim))
	}
	return nil
}

// observeRegistration reads the name of the other member in which a claim is placed.
func (o Observer) observeRegistration(ctx context.Context, s *volume.Observed, claim *corev1.PersistentVolumeClaim) error {
	placed := claim.Annotations[v1alpha1.AnnotationPlacedIn]
	if placed == "" || placed == o.ClusterID {
		return nil
	}
	registrations, err := index.RegistrationsOf(ctx, o.Host, placed)
	if len(registrations) > 0 {
		s.PlacedRegistration = registrations[0].Name
	}
	return err
}

// observeMember reads the classes on both sides, the member's node and its namespace. The class of
// a promise is the class at the time of its creation.
func (o Observer) observeMember(ctx context.Context, s *volume.Observed, claim *corev1.PersistentVolumeClaim) error {
	name := hostclass.NameOf(claim)
	if s.Alone() && s.Promise != nil {
		name = s.Promise.Spec.StorageClassName
	}
	class, err := index.Find[storagev1.StorageClass](ctx, o.Host, index.Named(name))
	if err != nil {
		return err
	}
	if s.Alone() && s.Promise != nil {
		class = placement.PromisedClass(s.Promise, class)
	}
	s.Class = class
	if hostclass.Own(class) {
		var classes storagev1.StorageClassList
		if err := o.Cache.List(ctx, &classes, index.ReadOnly); err != nil {
			return fmt.Errorf("list the member's storage classes: %w", err)
		}
		for i := range classes.Items {
			s.Placement.Inside.Classes = append(s.Placement.Inside.Classes, classes.Items[i].Name)
		}
		if s.Placement.Node, err = index.Find[corev1.Node](ctx, o.Host, index.Named(o.NodeName)); err != nil {
			return err
		}
	}
	if s.Placement.Namespace, err = index.Namespace(ctx, o.Host, claim.Namespace); err != nil {
		return err
	}
	if o.Rejected != nil {
		s.Placement.Inside.Rejection = o.Rejected(claim)
	}
	s.Placement.Inside.Namespace, err = index.Find[corev1.Namespace](ctx, o.Cache, index.Named(claim.Namespace))
	return err
}

// observeTenant reads the UID of a claim's namespace, which the claim's volume must have. Without a volume,
// the UID has no meaning.
func (o Observer) observeTenant(ctx context.Context, s *volume.Observed, claim *corev1.PersistentVolumeClaim) error {
	if s.Leaf == nil && s.Placement.Asked == nil {
		return nil
	}
	namespace, err := index.Find[corev1.Namespace](ctx, o.Host, index.Named(claim.Namespace))
	if err != nil {
		return err
	}
	if namespace == nil {
		return fmt.Errorf("namespace %s of claim %s is not in the cache yet", claim.Namespace, claim.Name)
	}
	s.Tenant = namespace.UID
	return nil
}
