package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/volume"
)

// Options is what the observers of all requests of a link share.
type Options struct {
	// Orphans contains the orphans of other members.
	Orphans *account.OrphanTracker
	// SchedulerNominates reports whether the host's scheduler sets status.nominatedNodeName before it
	// binds a Pod.
	SchedulerNominates bool
	// SilentAfter is how long a member's programs may take to respond before this is reported.
	SilentAfter time.Duration
	// UnusedPromises records since when no Pod uses a promise.
	UnusedPromises *UnusedPromises
}

// Observer reads observations from the caches of the host and of one member. Whichever object a request
// names, the observation of its volume has the same fields.
type Observer struct {
	proof.Prover
	Options
	// Rules are the placement rules of the member's registration.
	Rules placement.Rules
	// HostSnapshots reports whether the host serves snapshots. LeafSnapshots reads the member's
	// snapshots. If it is nil, SnapshotProblem is the reason.
	HostSnapshots   index.ServesSnapshots
	LeafSnapshots   client.Reader
	SnapshotProblem *mirror.Refusal
	// HostRestored is the time of the host's last restore, according to this member. HostRestoreUnconfirmed
	// means that no admin has confirmed this restore yet.
	HostRestored           time.Time
	HostRestoreUnconfirmed bool
	// Now returns the time by the member's clock, which the times of its objects come from. HostNow returns
	// the time by this process's clock.
	Now, HostNow func() time.Time
	// NamespaceRejection returns why the member rejects the creation of a root's namespace, or nil.
	NamespaceRejection func(root *corev1.PersistentVolumeClaim) *mirror.Refusal
}

// ObserverOfLink returns the observer of a member's link, with what the link knows now.
func ObserverOfLink(link *member.Link, options Options) Observer {
	restores := link.LastRestoreTimes()
	o := Observer{
		Prover: link.NewProver(), Options: options, Rules: link.Rules,
		HostSnapshots: link.HostSnapshots.CheckServed, LeafSnapshots: link.LeafSnapshotCache(),
		HostRestored: restores.Host, HostRestoreUnconfirmed: restores.HostUnconfirmed,
		HostNow:            func() time.Time { return link.Clock.Now() },
		NamespaceRejection: func(root *corev1.PersistentVolumeClaim) *mirror.Refusal { return rejectionOf(link, root) },
	}
	o.Now = o.HostNow
	if link.Credentials != nil {
		o.Now = link.Credentials.Now
	}
	if link.Snapshots != nil {
		o.SnapshotProblem, _ = link.Snapshots.ReadProblem()
	}
	return o
}

// rejectionOf returns why a member rejects the creation of a root's namespace, or nil. In a new link,
// the last report stands until leaf_namespace has tried again. Otherwise, each new link would restart
// the placement timeout.
func rejectionOf(link *member.Link, root *corev1.PersistentVolumeClaim) *mirror.Refusal {
	if link.NamespaceRejections.Attempted(root.Namespace) || mirror.ReporterOfRoot(root).ClusterID != link.ClusterID {
		return link.NamespaceRejections.RejectionOf(root.Namespace)
	}
	if last := report.ClaimConditionProblem(root, v1alpha1.ClaimPlaced); last != nil && last.Reason == v1alpha1.ReasonNamespaceRefused {
		return report.OwnProblem(last)
	}
	return nil
}

// ObserveHostVolume returns the observation of the volume that a host PV represents, or of this member's
// promise without a disk. It returns nil if the PV does not exist or does not concern this
// member.
func (o Observer) ObserveHostVolume(ctx context.Context, name string) (*volume.Observed, error) {
	host, err := index.FindObject[corev1.PersistentVolume](ctx, o.Host, index.ClusterScopedKey(name))
	if err != nil || host == nil {
		return nil, err
	}
	if hostpv.IsUnfulfilledPromiseIn(host, o.ClusterID) {
		return &volume.Observed{Member: o.Member, Host: host}, nil
	}
	cluster, leafName, uid, ours := hostpv.LeafOfHostVolume(host)
	if !ours || cluster != o.ClusterID {
		return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
	}
	s := &volume.Observed{Name: leafName, UID: uid, Host: host}
	return s, o.observeBoundVolume(ctx, s, nil)
}

// ObserveLeafVolume returns the observation of a member's PV, or nil if the PV does not exist.
func (o Observer) ObserveLeafVolume(ctx context.Context, name string) (*volume.Observed, error) {
	leaf, err := index.FindObject[corev1.PersistentVolume](ctx, o.Cache, index.ClusterScopedKey(name))
	if err != nil || leaf == nil {
		return nil, err
	}
	s := &volume.Observed{Name: name, UID: leaf.UID}
	if err := o.observeBoundVolume(ctx, s, nil); err != nil || s.Leaf == nil { // deleted since the first read
		return nil, err
	}
	return s, nil
}

// observeBoundVolume reads everything about a volume with a known name, and with a known UID or a known stale
// leaf claim, which is otherwise nil.
func (o Observer) observeBoundVolume(ctx context.Context, s *volume.Observed, stale *corev1.PersistentVolumeClaim) error {
	s.Member = o.Member
	leaf, err := index.FindObject[corev1.PersistentVolume](ctx, o.Cache, index.ClusterScopedKey(s.Name))
	if err != nil {
		return err
	}
	if leaf != nil {
		s.UID = cmp.Or(s.UID, leaf.UID)
		setLeaf(s, leaf)
	}
	if err := o.observeHostVolumes(ctx, s); err != nil {
		return err
	}
	if s.UID == "" && len(s.EarlierHosts) > 0 {
		s.Host, s.EarlierHosts = &s.EarlierHosts[0], nil // this host PV represents the deleted volume
		_, _, s.UID, _ = hostpv.LeafOfHostVolume(s.Host)
		if err := o.observeHostVolumes(ctx, s); err != nil {
			return err
		}
	}
	if err := o.observeRelatedObjects(ctx, s, stale); err != nil {
		return err
	}
	return o.complete(ctx, s)
}

// complete reads what a decision about a claim or a volume needs in addition to the objects of its life.
func (o Observer) complete(ctx context.Context, s *volume.Observed) error {
	s.Member, s.Rules = o.Member, o.Rules
	if s.LeafClaim != nil {
		s.MayBeRestored = o.MayBeRestored(s.LeafClaim)
	}
	for _, read := range []func(context.Context, *volume.Observed) error{o.observeStampRoot, o.observePlacement, o.observeImports, o.observeCopies, o.observePromiseUsers} {
		if err := read(ctx, s); err != nil {
			return err
		}
	}
	if o.UnusedPromises != nil {
		o.UnusedPromises.Observe(s, o.HostNow(), o.MayLackRoot)
	}
	return nil
}

// observeStampRoot reads the claim in the leaf PV's stamp.
func (o Observer) observeStampRoot(ctx context.Context, s *volume.Observed) (err error) {
	if s.LeafStamped && s.Stamp.Root.Namespace != "" {
		s.StampRoot, err = o.readRootClaim(ctx, s.Stamp)
	}
	return err
}

// observeCopies reads the names of the members that may have copies of a shared volume. A member
// without a registration is named by its cluster ID.
func (o Observer) observeCopies(ctx context.Context, s *volume.Observed) error {
	if s.Host == nil {
		return nil
	}
	for _, cluster := range hostpv.MembersWithCopies(s.Host) {
		name := "the cluster with ID " + cluster
		registrations, err := index.RegistrationsOfCluster(ctx, o.Host, cluster)
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

// setLeaf records the member's PV that has the volume's name, as the leaf PV or as a re-created one.
func setLeaf(s *volume.Observed, leaf *corev1.PersistentVolume) {
	switch {
	case leaf == nil:
	case leaf.UID == s.UID:
		s.Leaf = leaf
		s.Stamp, s.LeafStamped = mirror.LeafOriginFromHost(s.Member.HostID, leaf)
	default:
		s.Recreated = leaf
	}
}

// observeHostVolumes reads the host PV that represents the volume, unless it is known, and a second host
// PV that represents the volume. If no host PV represents the volume, observeHostVolumes reads the host
// PVs that represent another volume with the same name.
func (o Observer) observeHostVolumes(ctx context.Context, s *volume.Observed) error {
	hosts, err := index.HostVolumesOfLeaf(ctx, o.Host, o.ClusterID, s.Name)
	slices.SortFunc(hosts, func(a, b corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) })
	for i := range hosts {
		switch {
		case s.UID == "" || !s.RepresentedBy(&hosts[i]) || s.Host != nil && s.Host.UID == hosts[i].UID:
		case s.Host == nil:
			s.Host = &hosts[i]
		default:
			s.TwinHost = &hosts[i]
		}
	}
	if s.Host == nil {
		s.EarlierHosts = hosts
	}
	return err
}

// observeRelatedObjects reads the claims of both clusters that concern the volume. If no host PV represents the
// volume, it also reads PVs that may become its mirror or that have the names of its possible
// mirrors. known is the observed leaf claim if its root was deleted, otherwise nil.
func (o Observer) observeRelatedObjects(ctx context.Context, s *volume.Observed, known *corev1.PersistentVolumeClaim) error {
	if err := o.observeLeafClaims(ctx, s, known); err != nil {
		return err
	}
	if err := o.observeRootClaim(ctx, s); err != nil {
		return err
	}
	if s.LeafClaim != nil {
		s.RootMayBeLost = s.Root == nil && o.MayLackRoot(s.LeafClaim)
	}
	if err := o.observeLastClaim(ctx, s); err != nil {
		return err
	}
	if s.Host == nil {
		return o.observeUnmirrored(ctx, s)
	}
	return o.observeCloneNeeds(ctx, s)
}

// observeCloneNeeds reads the claims that are to be cloned from a volume that may have to be destroyed, or whose
// leaf claim may have to be deleted.
func (o Observer) observeCloneNeeds(ctx context.Context, s *volume.Observed) error {
	if s.Leaf == nil || s.HostClaimRefUID() == "" || !s.ReleasedWhenUnused() && (!hostpv.IsReleasedOrFailed(s.Host) || !s.MustBeDestroyed() && s.LeafClaim == nil) {
		return nil
	}
	source := mirror.ClaimDataSource(s.Host.Spec.ClaimRef.Name)
	waiting, err := index.UnfilledClaimsFrom(ctx, o.Host, s.Host.Spec.ClaimRef.Namespace, source.IndexKey())
	if err != nil {
		return err
	}
	claims, err := index.ClaimsToFill(ctx, o.Host, waiting, source, s.HostClaimRefUID())
	s.Needs = index.DescribeClaims(claims)
	return err
}

// observeLeafClaims reads the leaf claim of the host PV's root, and the leaf claim that the leaf PV is
// bound to. The known leaf claim may be neither of them: if it refers to the volume only by its
// volumeName, no other observation finds it.
func (o Observer) observeLeafClaims(ctx context.Context, s *volume.Observed, known *corev1.PersistentVolumeClaim) error {
	if uid := s.HostClaimRefUID(); uid != "" {
		ref := s.Host.Spec.ClaimRef
		s.Origin = mirror.Origin{HostID: o.HostID, Root: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, UID: uid}
		claim, origin, err := index.FindStamped[corev1.PersistentVolumeClaim](ctx, o.Cache, o.HostID, s.Origin.Root)
		if err != nil {
			return err
		}
		s.LeafClaim, s.NameOccupiedBy = nil, nil // the caller may have set them
		switch {
		case claim == nil:
		case origin.UID == uid:
			s.LeafClaim = claim
		default:
			s.NameOccupiedBy = claim
		}
	}
	holder, origin, err := o.findHoldingLeafClaim(ctx, s)
	if err != nil {
		return err
	}
	switch {
	case holder == nil:
	case s.HostClaimRefUID() == "":
		s.LeafClaim, s.Origin = holder, origin
	case origin.UID != s.HostClaimRefUID():
		s.Holder, s.HolderOrigin = holder, origin
		if s.HolderRoot, err = o.readRootClaim(ctx, origin); err != nil {
			return err
		}
	}
	if known != nil && !isSame(known, s.LeafClaim) && !isSame(known, s.Holder) {
		if s.Leaf == nil && s.Host == nil {
			s.LeafClaim = known
			s.Origin, _ = mirror.LeafOriginFromHost(o.HostID, known)
		} else {
			s.LeftoverClaim = known
		}
	}
	if s.Origin.UID == "" && s.LeafStamped {
		s.Origin = s.Stamp
	}
	return nil
}

// observeLastClaim sets LastClaimLost. If no leaf claim is bound to the volume, only the leaf PV's
// stamp shows which claim used it last, and the stamp has no date. If the host PV's claim is newer than
// the restore, the volume was freed since, so the host has not lost the claim in the stamp.
func (o Observer) observeLastClaim(ctx context.Context, s *volume.Observed) error {
	last, another := s.LastOtherOrigin()
	switch {
	case !another, s.Host.Annotations[v1alpha1.AnnotationLastClaimLost] == string(last.UID):
		return nil
	case s.Holder != nil:
		s.LastClaimMayBeLost = s.HolderRoot == nil && o.MayLackRoot(s.Holder)
		return nil
	case s.HostClaimRefUID() == "" && s.HeldByLeafClaim():
		s.LastClaimMayBeLost = s.RootMayBeLost
		return nil
	case !o.MayLackRoot(s.Leaf), s.HostClaimRefUID() != "" && !o.predatesRestore(s):
		return nil
	}
	root, err := o.readRootClaim(ctx, last)
	s.LastClaimMayBeLost = root == nil && err == nil
	return err
}

// predatesRestore reports whether the host PV's claim may be older than a restore of the host. A claim
// that was deleted may be.
func (o Observer) predatesRestore(s *volume.Observed) bool {
	if s.Root == nil {
		return hostpv.IsReleasedOrFailed(s.Host) // otherwise, the claim may not be in the cache yet
	}
	return o.MayLackRoot(&metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(s.Root.CreationTimestamp.Add(-mirror.MaxClockSkew))})
}

func isSame(a, b *corev1.PersistentVolumeClaim) bool { return b != nil && a.UID == b.UID }

// readRootClaim returns the root of a leaf claim, or nil if it was deleted.
func (o Observer) readRootClaim(ctx context.Context, origin mirror.Origin) (*corev1.PersistentVolumeClaim, error) {
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, o.Host, origin.Root)
	if claim == nil || claim.UID != origin.UID {
		return nil, err
	}
	return claim, nil
}

// findHoldingLeafClaim returns the leaf claim of this host that names the volume and that the leaf PV is bound
// to. Otherwise, if no host PV identifies the volume's root, it returns the leaf claim of the root
// for which the leaf PV was created.
func (o Observer) findHoldingLeafClaim(ctx context.Context, s *volume.Observed) (*corev1.PersistentVolumeClaim, mirror.Origin, error) {
	leaf := s.Leaf
	if leaf == nil {
		return nil, mirror.Origin{}, nil
	}
	if ref := leaf.Spec.ClaimRef; ref != nil {
		claim, origin, err := o.leafClaimNamingVolume(ctx, s, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		if err != nil || claim != nil && (claim.UID == ref.UID || s.HostClaimRefUID() == "") {
			return claim, origin, err
		}
	}
	if !s.LeafStamped || s.HostClaimRefUID() != "" {
		return nil, mirror.Origin{}, nil
	}
	return o.leafClaimNamingVolume(ctx, s, s.Stamp.Root)
}

// leafClaimNamingVolume returns the leaf claim with the given key, if it names the volume.
func (o Observer) leafClaimNamingVolume(ctx context.Context, s *volume.Observed, key types.NamespacedName) (*corev1.PersistentVolumeClaim, mirror.Origin, error) {
	claim, origin, err := index.FindStamped[corev1.PersistentVolumeClaim](ctx, o.Cache, o.HostID, key)
	if claim == nil || claim.Spec.VolumeName != s.Name {
		return nil, mirror.Origin{}, err
	}
	return claim, origin, err
}

// observeRootClaim reads the claim that is, or will be, bound to the volume.
func (o Observer) observeRootClaim(ctx context.Context, s *volume.Observed) error {
	if s.Origin.UID == "" {
		return nil
	}
	s.Root, s.Successor = nil, nil
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, o.Host, s.Origin.Root)
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
		if pv != nil && s.UID != "" && s.RepresentedBy(pv) {
			s.Host, s.EarlierHosts = pv, nil
		}
		return s.Host != nil
	}
	if err := o.observeNamesake(ctx, s); err != nil {
		return err
	}
	promise, err := index.PromiseOfClaim(ctx, o.Host, s.Origin.UID)
	if err != nil || found(promise) {
		return err
	}
	s.Promise = promise
	if s.Root != nil && hostpv.IsPromiseName(s.Root.Spec.VolumeName) {
		there, err := index.FindObject[corev1.PersistentVolume](ctx, o.Host, index.ClusterScopedKey(s.Root.Spec.VolumeName))
		if err != nil {
			return err
		}
		s.PromiseLost = there == nil
	}
	for _, name := range []struct {
		suffixed bool
		taken    *bool
	}{{false, &s.PlainNameTaken}, {true, &s.SuffixedNameTaken}} {
		pv, err := index.FindObject[corev1.PersistentVolume](ctx, o.Host, index.ClusterScopedKey(hostpv.HostVolumeName(s.Name, o.ClusterID, name.suffixed)))
		if err != nil || found(pv) {
			return err
		}
		*name.taken = pv != nil
	}
	return nil
}
