package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
)

// observePlacement reads the state of the member that concerns a claim: the root or, if it is gone, the
// next claim with its name.
func (o Observer) observePlacement(ctx context.Context, s *volume.Observed) error {
	s.Placement = &volume.Placement{HostRestored: o.HostRestored, HostRestoreUnconfirmed: o.HostRestoreUnconfirmed}
	if s.LeafClaim != nil {
		if err := o.observeProvisionedVolume(ctx, s); err != nil {
			return err
		}
	}
	claim := s.RootOrSuccessor()
	if claim == nil {
		return nil
	}
	for _, read := range []func(context.Context, *volume.Observed, *corev1.PersistentVolumeClaim) error{
		o.observeBound, o.observePlacedRegistration, o.observeMember, o.observeTenant, o.observeSource, o.observeAttempt,
	} {
		if err := read(ctx, s, claim); err != nil {
			return err
		}
	}
	return nil
}

// observeProvisionedVolume reads the PV of a leaf claim, and its class.
func (o Observer) observeProvisionedVolume(ctx context.Context, s *volume.Observed) error {
	made := s.Leaf
	var err error
	switch {
	case !s.ClaimWithoutVolume():
	case s.LeafClaim.Spec.VolumeName != "":
		made, err = index.FindObject[corev1.PersistentVolume](ctx, o.Cache, index.ClusterScopedKey(s.LeafClaim.Spec.VolumeName))
	default:
		var all []corev1.PersistentVolume
		if all, err = index.LeafVolumesOfClaim(ctx, o.Cache, s.LeafClaim.UID); len(all) > 0 {
			made = &all[0]
		}
	}
	if err != nil {
		return err
	}
	s.Placement.ProvisionedVolume = made
	s.Placement.LeafClass, err = index.FindObject[storagev1.StorageClass](ctx, o.Cache, index.ClusterScopedKey(ptr.Deref(s.LeafClaim.Spec.StorageClassName, "")))
	return err
}

// observeBound reads the host PV that a claim names. It adds the PV to the observation if it is a promise
// without a disk, and otherwise only whether the volume is outside this member.
func (o Observer) observeBound(ctx context.Context, s *volume.Observed, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeName == "" {
		return o.observeUnboundMirror(ctx, s, claim)
	}
	pv, err := index.FindObject[corev1.PersistentVolume](ctx, o.Host, index.ClusterScopedKey(claim.Spec.VolumeName))
	if err == nil && pv == nil {
		s.Placement.NamedHostGone = true
		s.PromiseLost = s.PromiseLost || s.ClaimWithoutVolume() && hostpv.IsPromiseName(claim.Spec.VolumeName)
		return o.observeRequestedVolume(ctx, s, claim)
	}
	if err != nil {
		return err
	}
	cluster, _, _, ours := hostpv.LeafOfHostVolume(pv)
	if !hostpv.ClaimRefHasUIDOf(pv, claim) {
		if ours && cluster == o.ClusterID && claim.Status.Phase == corev1.ClaimLost {
			s.Placement.Diverted = pv
		}
		return nil
	}
	if hostpv.IsUnfulfilledPromise(pv) {
		if s.ClaimWithoutVolume() {
			s.Promise = pv
			s.Placement.PromisePods, err = o.PodsOfClaimHere(ctx, client.ObjectKeyFromObject(claim))
		}
		return err
	}
	if !ours || cluster != o.ClusterID {
		s.Placement.BoundOutsideMember = s.LeafClaim == nil || !hostpv.RecordsLeaf(pv, o.ClusterID, s.LeafClaim.Spec.VolumeName)
	}
	return nil
}

// observeUnboundMirror reads the host PV that was created for an unbound claim or, if its claimRef does not name
// the claim, as Diverted.
func (o Observer) observeUnboundMirror(ctx context.Context, s *volume.Observed, claim *corev1.PersistentVolumeClaim) error {
	p := s.Placement
	hosts, err := index.HostVolumesOfClaim(ctx, o.Host, client.ObjectKeyFromObject(claim))
	for i := range hosts {
		if cluster, _, _, _ := hostpv.LeafOfHostVolume(&hosts[i]); cluster == o.ClusterID && hosts[i].Spec.ClaimRef.UID == claim.UID {
			p.UnboundMirror = &hosts[i]
		}
	}
	if err != nil || p.UnboundMirror != nil || p.ProvisionedVolume == nil || s.LeafClaim.Spec.VolumeName == "" {
		return err
	}
	hosts, err = index.HostVolumesOfLeaf(ctx, o.Host, o.ClusterID, s.LeafClaim.Spec.VolumeName)
	p.Diverted = findDivertedVolume(hosts, p.ProvisionedVolume, claim)
	return err
}

// findDivertedVolume returns which of the host PVs that have a leaf PV's name represents the leaf PV and can no
// longer be bound to the unbound root, or nil. A claimRef without a UID reserves the PV for the root.
func findDivertedVolume(hosts []corev1.PersistentVolume, leaf *corev1.PersistentVolume, root *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	for i := range hosts {
		if _, _, uid, _ := hostpv.LeafOfHostVolume(&hosts[i]); uid == leaf.UID && !hostpv.ClaimRefNamesClaim(&hosts[i], root) {
			return &hosts[i]
		}
	}
	return nil
}

// observeRequestedVolume reads the leaf PV that a claim requests by name, if the host has no PV for it.
func (o Observer) observeRequestedVolume(ctx context.Context, s *volume.Observed, claim *corev1.PersistentVolumeClaim) error {
	p := s.Placement
	candidate := p.ProvisionedVolume
	if candidate == nil || s.LeafClaim.Spec.VolumeName == "" {
		var err error
		if candidate, err = index.FindObject[corev1.PersistentVolume](ctx, o.Cache, index.ClusterScopedKey(claim.Spec.VolumeName)); err != nil {
			return err
		}
	}
	if candidate == nil || !hostpv.RequestsEarlierVolume(claim, candidate, o.Member) {
		return nil
	}
	hosts, err := index.HostVolumesOfLeaf(ctx, o.Host, o.ClusterID, candidate.Name)
	if err != nil || len(hosts) > 0 {
		return err
	}
	p.RequestedVolume = candidate
	if o.Orphans != nil {
		p.RivalMembers = o.Orphans.MembersWithSameOrphan(o.Registration, candidate.Name, client.ObjectKeyFromObject(claim))
	}
	return nil
}

// observePlacedRegistration reads the name of the other member in which a claim is placed.
func (o Observer) observePlacedRegistration(ctx context.Context, s *volume.Observed, claim *corev1.PersistentVolumeClaim) error {
	placed := claim.Annotations[v1alpha1.AnnotationPlacedIn]
	if placed == "" || placed == o.ClusterID {
		return nil
	}
	registrations, err := index.RegistrationsOfCluster(ctx, o.Host, placed)
	if len(registrations) > 0 {
		s.PlacedRegistration = registrations[0].Name
	}
	return err
}

// observeMember reads the classes on both sides, the claim's node and the member's namespace. The class of
// a promise is the class at the time of its creation.
func (o Observer) observeMember(ctx context.Context, s *volume.Observed, claim *corev1.PersistentVolumeClaim) error {
	name := hostpv.ClassNameOf(claim)
	if s.ClaimWithoutVolume() && s.Promise != nil {
		name = s.Promise.Spec.StorageClassName
	}
	class, err := index.FindObject[storagev1.StorageClass](ctx, o.Host, index.ClusterScopedKey(name))
	if err != nil {
		return err
	}
	if s.ClaimWithoutVolume() && s.Promise != nil {
		class = placement.PromisedClass(s.Promise, class)
	}
	s.Class = class
	if hostpv.IsXylemClass(class) {
		var classes storagev1.StorageClassList
		if err := o.Cache.List(ctx, &classes, index.ReadOnly); err != nil {
			return fmt.Errorf("list the member's storage classes: %w", err)
		}
		for i := range classes.Items {
			s.Placement.MemberObjects.Classes = append(s.Placement.MemberObjects.Classes, classes.Items[i].Name)
		}
		if s.Placement.Node, err = index.FindObject[corev1.Node](ctx, o.Host, index.ClusterScopedKey(o.nodeNameFor(s, claim))); err != nil {
			return err
		}
		if err := o.observeLeafGroup(ctx, s); err != nil {
			return err
		}
	}
	if s.Placement.Namespace, err = index.FindNamespace(ctx, o.Host, claim.Namespace); err != nil {
		return err
	}
	if o.NamespaceRejection != nil {
		s.Placement.MemberObjects.NamespaceRejection = o.NamespaceRejection(claim)
	}
	s.Placement.MemberObjects.Namespace, err = index.FindObject[corev1.Namespace](ctx, o.Cache, index.ClusterScopedKey(claim.Namespace))
	return err
}

// observeLeafGroup finds out whether recovery selected a group without the leaf claim's node. The member's scheduler never
// selects another node for the leaf claim, so a leaf Pod in that group could not use it.
func (o Observer) observeLeafGroup(ctx context.Context, s *volume.Observed) error {
	group, grouped := podspec.GroupSelectorOf(s.Placement.Node)
	if !grouped || !s.ClaimWithoutVolume() || s.LeafClaim == nil || s.LeafClaim.Spec.VolumeName != "" ||
		s.Placement.Node.Name != s.Root.Annotations[v1alpha1.AnnotationSteeredTo] {
		return nil
	}
	node, err := index.FindObject[corev1.Node](ctx, o.Cache, index.ClusterScopedKey(s.LeafClaim.Annotations[route.AnnSelectedNode]))
	if err != nil || node == nil {
		return err
	}
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{group}})
	s.Placement.LeafInOtherGroup = err == nil && !selector.Match(node)
	return nil //nolint:nilerr // without a valid selector, the leaf claim stays
}

// nodeNameFor returns the name of the node that was selected for a claim or, for a promise, of its first Pod's node. If
// there is none in this member, it returns the member's.
func (o Observer) nodeNameFor(s *volume.Observed, claim *corev1.PersistentVolumeClaim) string {
	var names []string
	if pod := s.FirstPromisePod(); pod != nil {
		names = append(names, pod.Spec.NodeName, pod.Status.NominatedNodeName)
	}
	names = append(names, claim.Annotations[route.AnnSelectedNode])
	if i := slices.IndexFunc(names, o.HasNode); i >= 0 {
		return names[i]
	}
	return o.NodeName
}

// observeTenant reads the UID of a claim's namespace, which the claim's volume must have. Without a volume,
// the UID has no meaning.
func (o Observer) observeTenant(ctx context.Context, s *volume.Observed, claim *corev1.PersistentVolumeClaim) error {
	if s.Leaf == nil && s.Placement.RequestedVolume == nil {
		return nil
	}
	namespace, err := index.FindObject[corev1.Namespace](ctx, o.Host, index.ClusterScopedKey(claim.Namespace))
	if err != nil {
		return err
	}
	if namespace == nil {
		return fmt.Errorf("namespace %s of claim %s is not in the cache yet", claim.Namespace, claim.Name)
	}
	s.Tenant = namespace.UID
	return nil
}
