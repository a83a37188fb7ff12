package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/volume"
)

// Observer reads observations from the caches of the host and of one member.
type Observer struct {
	proof.Prover
	// Rules are the placement rules of the member's registration. OfLeaf and OfVolume need them.
	Rules placement.Rules
	// HostSnapshots reports whether the host serves snapshots. LeafSnapshots reads the member's
	// snapshots. If it is nil, SnapshotProblem is the reason.
	HostSnapshots   index.Served
	LeafSnapshots   client.Reader
	SnapshotProblem *mirror.Refusal
}

// OfHost returns the observation of the volume that a host PV represents, or of this member's
// promise without a disk. It returns nil if the PV does not exist or does not concern this
// member.
func (o Observer) OfHost(ctx context.Context, name string) (*volume.Observed, error) {
	host, err := index.Find[corev1.PersistentVolume](ctx, o.Host, index.Named(name))
	if err != nil || host == nil {
		return nil, err
	}
	if hostpv.IsPromiseIn(host, o.ClusterID) {
		return &volume.Observed{Member: o.Member, Host: host}, nil
	}
	cluster, leafName, uid, ours := hostpv.LeafOf(host)
	if !ours || cluster != o.ClusterID {
		return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
	}
	leaf, err := index.Find[corev1.PersistentVolume](ctx, o.Cache, index.Named(leafName))
	if err != nil {
		return nil, err
	}
	s := &volume.Observed{Member: o.Member, Name: leafName, UID: uid, Host: host}
	has(s, leaf)
	if err := o.observeHosts(ctx, s); err != nil {
		return nil, err
	}
	if err := o.relate(ctx, s, nil); err != nil {
		return nil, err
	}
	if err := o.observeCopies(ctx, s); err != nil {
		return nil, err
	}
	return s, o.observeUsers(ctx, s)
}

// observeCopies reads the names of the members that may have copies of a shared volume. A member
// without a registration is named by its cluster ID.
func (o Observer) observeCopies(ctx context.Context, s *volume.Observed) error {
	for _, cluster := range hostpv.CopiedIn(s.Host) {
		name := "the cluster with ID " + cluster
		registrations, err := index.RegistrationsOf(ctx, o.Host, cluster)
		if err != nil {
			return err
		}
		if len(registrations) > 0 {
			name = fmt.Sprintf("member %q", registrations[0].Name)
		}
		s.Copies = append(s.Copies, "a copy in "+name)
	}
	return nil
}

// OfLeaf returns the observation of a member's PV, or nil if the PV does not exist.
func (o Observer) OfLeaf(ctx context.Context, name string) (*volume.Observed, error) {
	leaf, err := index.Find[corev1.PersistentVolume](ctx, o.Cache, index.Named(name))
	if err != nil || leaf == nil {
		return nil, err
	}
	s := &volume.Observed{Member: o.Member, Rules: o.Rules, Name: name, UID: leaf.UID}
	has(s, leaf)
	if err := o.observeHosts(ctx, s); err != nil {
		return nil, err
	}
	if err := o.relate(ctx, s, nil); err != nil {
		return nil, err
	}
	if s.Imports, err = o.Imports(ctx, name); err != nil {
		return nil, err
	}
	if err := o.observeImportClass(ctx, s); err != nil {
		return nil, err
	}
	return s, o.observeTenant(ctx, s)
}

// OfVolume returns the observation of the volume that the decision about a claim depends on: the
// leaf claim's volume if its root was deleted, or otherwise this member's volume that the root is
// bound to. It returns nil if there is no such volume.
func (o Observer) OfVolume(ctx context.Context, root, claim *corev1.PersistentVolumeClaim, origin mirror.Origin) (*volume.Observed, error) {
	switch {
	case claim != nil && (root == nil || origin.UID != root.UID):
		return o.ofStale(ctx, root, claim, origin)
	case root != nil && root.Spec.VolumeName != "":
		return o.ofBound(ctx, root, claim, origin)
	}
	return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
}

func (o Observer) ofStale(ctx context.Context, successor, claim *corev1.PersistentVolumeClaim, origin mirror.Origin) (*volume.Observed, error) {
	s := &volume.Observed{Member: o.Member, Name: claim.Spec.VolumeName, Successor: successor}
	if s.Name == "" {
		s.Claim, s.Origin, s.Restored = claim, origin, o.MayBeRestored(claim)
		return s, nil
	}
	leaf, err := index.Find[corev1.PersistentVolume](ctx, o.Cache, index.Named(s.Name))
	if err != nil {
		return nil, err
	}
	if leaf != nil {
		s.UID = leaf.UID
		has(s, leaf)
	}
	if err := o.observeHosts(ctx, s); err != nil {
		return nil, err
	}
	if s.Host == nil && leaf == nil && len(s.Earlier) > 0 {
		s.Host, s.Earlier = &s.Earlier[0], nil // this host PV represents the deleted volume
		_, _, s.UID, _ = hostpv.LeafOf(s.Host)
		if err := o.observeHosts(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, o.relate(ctx, s, claim)
}

func (o Observer) ofBound(ctx context.Context, root, claim *corev1.PersistentVolumeClaim, origin mirror.Origin) (*volume.Observed, error) {
	host, err := index.Find[corev1.PersistentVolume](ctx, o.Host, index.Named(root.Spec.VolumeName))
	if err != nil || host == nil || host.Spec.ClaimRef == nil || host.Spec.ClaimRef.UID != root.UID {
		return nil, err
	}
	if name, asks := hostpv.ImportOfIn(host, o.ClusterID); asks {
		return o.ofImport(ctx, name, root, claim, origin)
	}
	cluster, name, uid, ours := hostpv.LeafOf(host)
	if !ours || cluster != o.ClusterID {
		return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
	}
	leaf, err := index.Find[corev1.PersistentVolume](ctx, o.Cache, index.Named(name))
	if err != nil {
		return nil, err
	}
	s := &volume.Observed{Member: o.Member, Name: name, UID: uid, Host: host, Root: root, Claim: claim, Origin: origin}
	has(s, leaf)
	if err := o.observeHosts(ctx, s); err != nil {
		return nil, err
	}
	if err := o.relate(ctx, s, nil); err != nil {
		return nil, err
	}
	return s, o.observeUsers(ctx, s)
}

// observeUsers reads the Pods that need the disk of a promise that is released with its last
// Pod.
func (o Observer) observeUsers(ctx context.Context, s *volume.Observed) error {
	if !s.Scratch() {
		return nil
	}
	ref := s.Host.Spec.ClaimRef
	pods, err := index.PodsOfClaim(ctx, o.Host, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil {
		return err
	}
	s.Users, err = o.Using(ctx, o.Host, pods)
	return err
}

// has records the member's PV that has the volume's name, as the leaf PV or as a re-created one.
func has(s *volume.Observed, leaf *corev1.PersistentVolume) {
	switch {
	case leaf == nil:
	case leaf.UID == s.UID:
		s.Leaf = leaf
		s.Stamp, s.Stamped = mirror.OriginIn(s.Member.HostID, leaf)
	default:
		s.Recreated = leaf
	}
}

// observeHosts reads the host PV that represents the volume, unless it is known, and a second host
// PV that represents the volume. If no host PV represents the volume, observeHosts reads the host
// PVs that represent another volume with the same name.
func (o Observer) observeHosts(ctx context.Context, s *volume.Observed) error {
	hosts, err := index.VolumesOfLeaf(ctx, o.Host, o.ClusterID, s.Name)
	slices.SortFunc(hosts, func(a, b corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) })
	for i := range hosts {
		switch {
		case s.UID == "" || !s.Represents(&hosts[i]) || s.Host != nil && s.Host.UID == hosts[i].UID:
		case s.Host == nil:
			s.Host = &hosts[i]
		default:
			s.Twin = &hosts[i]
		}
	}
	if s.Host == nil {
		s.Earlier = hosts
	}
	return err
}

// relate reads the claims of both clusters that concern the volume. If no host PV represents the
// volume, it also reads PVs that may become its mirror or that have the names of its possible
// mirrors. known is the observed leaf claim if its root was deleted, otherwise nil.
func (o Observer) relate(ctx context.Context, s *volume.Observed, known *corev1.PersistentVolumeClaim) error {
	if err := o.observeClaims(ctx, s, known); err != nil {
		return err
	}
	if err := o.observeRoot(ctx, s); err != nil {
		return err
	}
	if s.Claim != nil {
		s.Restored = o.MayBeRestored(s.Claim)
		s.RootLost = s.Root == nil && o.MayLackRoot(s.Claim)
	}
	if err := o.observeLastClaim(ctx, s); err != nil {
		return err
	}
	if s.Host == nil {
		return o.observeUnmirrored(ctx, s)
	}
	return o.observeNeeds(ctx, s)
}

// observeNeeds reads the claims that are to be cloned from a volume that may have to be destroyed, or whose
// leaf claim may have to be deleted.
func (o Observer) observeNeeds(ctx context.Context, s *volume.Observed) error {
	if s.Leaf == nil || s.HostRoot() == "" || !s.Scratch() && (!hostpv.Ended(s.Host) || !s.Destroys() && s.Claim == nil) {
		return nil
	}
	source := datasource.OfClaim(s.Host.Spec.ClaimRef.Name)
	waiting, err := index.ClaimsFrom(ctx, o.Host, s.Host.Spec.ClaimRef.Namespace, source.Key())
	if err != nil {
		return err
	}
	claims, err := index.ClaimsToFill(ctx, o.Host, waiting, source, s.HostRoot())
	s.Needs = index.Names(claims)
	return err
}

// observeClaims reads the leaf claim of the host PV's root, and the leaf claim that the leaf PV is
// bound to. The known leaf claim may be neither of them: if it refers to the volume only by its
// volumeName, no other observation finds it.
func (o Observer) observeClaims(ctx context.Context, s *volume.Observed, known *corev1.PersistentVolumeClaim) error {
	if uid := s.HostRoot(); uid != "" {
		ref := s.Host.Spec.ClaimRef
		s.Origin = mirror.Origin{HostID: o.HostID, Root: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, UID: uid}
		claim, origin, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, o.Cache, o.HostID, s.Origin.Root)
		if err != nil {
			return err
		}
		s.Claim = nil // the caller may have set it
		if claim != nil && origin.UID == uid {
			s.Claim = claim
		}
	}
	holder, origin, err := o.holder(ctx, s)
	if err != nil {
		return err
	}
	switch {
	case holder == nil:
	case s.HostRoot() == "":
		s.Claim, s.Origin = holder, origin
	case origin.UID != s.HostRoot():
		s.Holder, s.HolderOrigin = holder, origin
		if s.HolderRoot, err = o.root(ctx, origin); err != nil {
			return err
		}
	}
	if known != nil && !same(known, s.Claim) && !same(known, s.Holder) {
		if s.Leaf == nil && s.Host == nil {
			s.Claim = known
			s.Origin, _ = mirror.OriginIn(o.HostID, known)
		} else {
			s.Left = known
		}
	}
	if s.Origin.UID == "" && s.Stamped {
		s.Origin = s.Stamp
	}
	return nil
}

// observeLastClaim sets LastClaimLost. If no leaf claim is bound to the volume, only the leaf PV's
// stamp shows which claim used it last, and the stamp has no date. If the host PV's claim is newer than
// the restore, the volume was freed since, so the host has not lost the claim in the stamp.
func (o Observer) observeLastClaim(ctx context.Context, s *volume.Observed) error {
	last, another := s.LastOrigin()
	switch {
	case !another, s.Host.Annotations[v1alpha1.AnnotationLastClaimLost] == string(last.UID):
		return nil
	case s.Holder != nil:
		s.LastClaimLost = s.HolderRoot == nil && o.MayLackRoot(s.Holder)
		return nil
	case s.HostRoot() == "" && s.Held():
		s.LastClaimLost = s.RootLost
		return nil
	case !o.MayLackRoot(s.Leaf), s.HostRoot() != "" && !o.predatesRestore(s):
		return nil
	}
	root, err := o.root(ctx, last)
	s.LastClaimLost = root == nil && err == nil
	return err
}

// predatesRestore reports whether the host PV's claim may be older than a restore of the host. A claim
// that was deleted may be.
func (o Observer) predatesRestore(s *volume.Observed) bool {
	if s.Root == nil {
		return hostpv.Ended(s.Host) // otherwise, the claim may not be in the cache yet
	}
	return o.MayLackRoot(&metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(s.Root.CreationTimestamp.Add(-mirror.Skew))})
}

func same(a, b *corev1.PersistentVolumeClaim) bool { return b != nil && a.UID == b.UID }

// root returns the root of a leaf claim, or nil if it was deleted.
func (o Observer) root(ctx context.Context, origin mirror.Origin) (*corev1.PersistentVolumeClaim, error) {
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, o.Host, origin.Root)
	if claim == nil || claim.UID != origin.UID {
		return nil, err
	}
	return claim, nil
}

// holder returns the leaf claim of this host that names the volume and that the leaf PV is bound
// to. Otherwise, if no host PV identifies the volume's root, it returns the leaf claim of the root
// for which the leaf PV was created.
func (o Observer) holder(ctx context.Context, s *volume.Observed) (*corev1.PersistentVolumeClaim, mirror.Origin, error) {
	leaf := s.Leaf
	if leaf == nil {
		return nil, mirror.Origin{}, nil
	}
	if ref := leaf.Spec.ClaimRef; ref != nil {
		claim, origin, err := o.naming(ctx, s, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		if err != nil || claim != nil && (claim.UID == ref.UID || s.HostRoot() == "") {
			return claim, origin, err
		}
	}
	if !s.Stamped || s.HostRoot() != "" {
		return nil, mirror.Origin{}, nil
	}
	return o.naming(ctx, s, s.Stamp.Root)
}

// naming returns the leaf claim with the given key, if it names the volume.
func (o Observer) naming(ctx context.Context, s *volume.Observed, key types.NamespacedName) (*corev1.PersistentVolumeClaim, mirror.Origin, error) {
	claim, origin, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, o.Cache, o.HostID, key)
	if claim == nil || claim.Spec.VolumeName != s.Name {
		return nil, mirror.Origin{}, err
	}
	return claim, origin, err
}

// observeRoot reads the claim that is, or will be, bound to the volume.
func (o Observer) observeRoot(ctx context.Context, s *volume.Observed) error {
	if s.Origin.UID == "" {
		return nil
	}
	s.Root, s.Successor = nil, nil
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, o.Host, s.Origin.Root)
	switch {
	case claim == nil:
	case claim.UID == s.Origin.UID:
		s.Root = claim
	default:
		s.Successor = claim
	}
	return err
}

// observeUnmirrored reads the PVs that may represent the volume, and the PVs that have the
// names of its possible mirrors. A PV may appear in the cache between two reads. Such a PV is
// recognized as the volume's mirror, not as a foreign PV with the mirror's name.
func (o Observer) observeUnmirrored(ctx context.Context, s *volume.Observed) error {
	found := func(pv *corev1.PersistentVolume) bool {
		if pv != nil && s.UID != "" && s.Represents(pv) {
			s.Host, s.Earlier = pv, nil
		}
		return s.Host != nil
	}
	if err := o.ObserveNamesake(ctx, s); err != nil {
		return err
	}
	promise, err := index.PromiseOf(ctx, o.Host, s.Origin.UID)
	if err != nil || found(promise) {
		return err
	}
	s.Promise = promise
	if s.Root != nil && hostpv.NamesPromise(s.Root.Spec.VolumeName) {
		there, err := index.Find[corev1.PersistentVolume](ctx, o.Host, index.Named(s.Root.Spec.VolumeName))
		if err != nil {
			return err
		}
		s.PromiseLost = there == nil
	}
	for _, name := range []struct {
		suffixed bool
		taken    *bool
	}{{false, &s.NameTaken}, {true, &s.SuffixTaken}} {
		pv, err := index.Find[corev1.PersistentVolume](ctx, o.Host, index.Named(hostpv.Name(s.Name, o.ClusterID, name.suffixed)))
		if err != nil || found(pv) {
			return err
		}
		*name.taken = pv != nil
	}
	return nil
}

// observeTenant reads the class and the namespace of the root, or of the claim that requests
// the volume.
func (o Observer) observeTenant(ctx context.Context, s *volume.Observed) error {
	claim := s.Root
	if claim == nil && s.Successor != nil && hostpv.Requests(s.Successor, s.Leaf, o.Member) {
		claim = s.Successor
	}
	if claim == nil {
		return nil
	}
	var err error
	if s.Class, err = index.Find[storagev1.StorageClass](ctx, o.Host, index.Named(hostclass.NameOf(claim))); err != nil {
		return err
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
