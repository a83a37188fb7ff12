package snapshot

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/placement"
)

// ObserveHost observes the host's objects for the snapshot with the named content, and returns the ID of
// its cluster. It returns nil if the host has no content with that name.
func ObserveHost(ctx context.Context, host client.Reader, name string) (s *Observed, clusterID string, err error) {
	content, err := index.FindObject[snapshotv1.VolumeSnapshotContent](ctx, host, index.ClusterScopedKey(name))
	if err != nil || content == nil {
		return nil, "", err
	}
	s = &Observed{Host: content, UID: content.Spec.VolumeSnapshotRef.UID}
	if s.Root, err = findRootSnapshot(ctx, host, mirrorsnapshot.RootSnapshotKey(content), s.UID); err != nil {
		return nil, "", err
	}
	own := mirrorsnapshot.IsXylemContent(content)
	if clusterID = mirrorsnapshot.ContentPlacedIn(content); own && clusterID != "" {
		s.Invalid = MisreferencedRefusal(content)
		return s, clusterID, nil
	}
	source, err := findSnapshotSource(ctx, host, s.Root)
	if err != nil {
		return nil, "", err
	}
	if !own {
		s.Invalid = DriverMismatch(content, s.Root, source)
		return s, "", nil
	}
	clusterID, s.Invalid = ResolveSource(content, s.Root, source)
	return s, clusterID, nil
}

// findRootSnapshot returns the host's VolumeSnapshot with this name and UID, or nil.
func findRootSnapshot(ctx context.Context, host client.Reader, key types.NamespacedName, uid types.UID) (*snapshotv1.VolumeSnapshot, error) {
	root, err := index.FindObject[snapshotv1.VolumeSnapshot](ctx, host, key)
	if root != nil && root.UID != uid {
		root = nil
	}
	return root, err
}

// findSnapshotSource returns a VolumeSnapshot's claim in the host, and the claim's volume.
func findSnapshotSource(ctx context.Context, host client.Reader, root *snapshotv1.VolumeSnapshot) (source SnapshotSource, err error) {
	if source.Claim, err = index.FindObject[corev1.PersistentVolumeClaim](ctx, host, SourceClaimKey(root)); err != nil || source.Claim == nil {
		return source, err
	}
	source.Volume, err = index.FindObject[corev1.PersistentVolume](ctx, host, index.ClusterScopedKey(source.Claim.Spec.VolumeName))
	return source, err
}

// Observer observes snapshots through a member's link.
type Observer struct {
	*member.Link
	// SilentAfter is how long the member's snapshot-controller and csi-snapshotter may take to
	// respond. If it is 0, their silence is not observed.
	SilentAfter time.Duration
}

// ObserveContent observes the snapshot with the named host content. It returns nil if the snapshot
// does not concern this member, or if the member's snapshots have not been read yet.
func (o Observer) ObserveContent(ctx context.Context, name string) (*Observed, error) {
	problem, known := o.Snapshots.ReadProblem()
	if o.HostSnapshots.ServedCache() == nil || !known {
		return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
	}
	s, cluster, err := ObserveHost(ctx, o.Host, name)
	if s != nil && !mirrorsnapshot.IsXylemContent(s.Host) {
		s = nil
	}
	switch {
	case err != nil:
		return nil, err
	case s != nil && (cluster != o.ClusterID || IsContentRenamed(s.Host)):
		return nil, nil //nolint:nilnil // another member's, or host_snapshot's
	case s == nil && problem != nil:
		return nil, nil //nolint:nilnil // nothing is known of the member
	case s == nil:
		return o.observeUnrepresented(ctx, mirrorsnapshot.SnapshotUIDFromName(name))
	}
	s.Member, s.Linked, s.Unavailable = o.Member, true, problem
	s.Origin = mirror.Origin{HostID: o.HostID, Root: mirrorsnapshot.RootSnapshotKey(s.Host), UID: s.UID}
	if problem != nil {
		return s, nil
	}
	if err := o.observeLeaves(ctx, s); err != nil {
		return nil, err
	}
	if o.SilentAfter > 0 {
		s.Silent, s.SilenceDueIn = s.ObserveSilence(o.SilentAfter, o.Clock.Now())
	}
	return s, nil
}

// observeUnrepresented observes leaves that no host content represents.
func (o Observer) observeUnrepresented(ctx context.Context, uid types.UID) (*Observed, error) {
	if uid == "" {
		return nil, nil //nolint:nilnil // no snapshot-controller gave it that name
	}
	s := &Observed{Member: o.Member, Linked: true, UID: uid}
	var err error
	if s.Leaf, s.Origin, err = o.findLeafByRootUID(ctx, uid); err != nil {
		return nil, err
	}
	if s.Content, err = o.findLeafContent(ctx, s); err != nil || s.Leaf == nil && s.Content == nil {
		return nil, err
	}
	if s.Leaf == nil {
		s.Origin, _ = mirror.LeafOriginFromHost(o.HostID, s.Content)
	}
	s.Root, err = findRootSnapshot(ctx, o.Host, s.Origin.Root, uid)
	return s, err
}

// findLeafByRootUID returns the leaf VolumeSnapshot that is stamped with this root UID, or nil.
func (o Observer) findLeafByRootUID(ctx context.Context, uid types.UID) (*snapshotv1.VolumeSnapshot, mirror.Origin, error) {
	leaves, err := index.LeafSnapshotsOf(ctx, o.LeafSnapshotCache(), uid)
	for i := range leaves {
		if origin, ours := mirror.LeafOriginFromHost(o.HostID, &leaves[i]); ours {
			return &leaves[i], origin, nil
		}
	}
	return nil, mirror.Origin{}, err
}

func (o Observer) observeLeaves(ctx context.Context, s *Observed) error {
	there, err := index.FindObject[snapshotv1.VolumeSnapshot](ctx, o.LeafSnapshotCache(), s.Origin.Root)
	if err != nil {
		return err
	}
	if there != nil {
		o.classifyLeaf(s, there)
	}
	if s.Content, err = o.findLeafContent(ctx, s); err != nil {
		return err
	}
	if s.NameTaken && s.Content != nil && mirrorsnapshot.IsContentOfSnapshot(s.Content, there.UID) {
		s.NameTaken, s.LeafLostStamp = false, true // the host does not record its UID, but the stamped content refers to it
	}
	if s.Content != nil && s.RepresentsOtherSnapshot(s.Content) {
		s.Content, s.OtherContent = nil, s.Content
	}
	switch {
	case s.MustDestroySnapshot() && (s.Leaf != nil || s.Content != nil):
		return o.observeNeeds(ctx, s)
	case s.Root == nil || s.Leaf != nil || s.LeafRecord().Snapshot != "":
		return nil
	}
	return o.observeUnmet(ctx, s)
}

// observeNeeds reads the claims that will be restored from a snapshot that must be destroyed.
func (o Observer) observeNeeds(ctx context.Context, s *Observed) error {
	source := mirror.SnapshotDataSource(s.Origin.Root.Name)
	waiting, err := index.UnfilledClaimsFrom(ctx, o.Host, s.Origin.Root.Namespace, source.IndexKey())
	if err != nil {
		return err
	}
	claims, err := index.ClaimsToFill(ctx, o.Host, waiting, source, s.UID)
	s.ClaimsToRestore = index.DescribeClaims(claims)
	return err
}

// classifyLeaf determines what the member's VolumeSnapshot with the leaf's name is.
func (o Observer) classifyLeaf(s *Observed, there *snapshotv1.VolumeSnapshot) {
	origin, ours := mirror.LeafOriginFromHost(o.HostID, there)
	switch recorded := s.LeafRecord().Snapshot; {
	case there.UID == recorded && (!ours || origin.UID != s.UID):
		s.LeafLostStamp = true
	case !ours:
		s.NameTaken = true
	case origin.UID != s.UID:
		s.EarlierLeafExists = true
	case recorded != "" && there.UID != recorded:
		s.OtherLeaf = there
	default:
		s.Leaf = there
	}
}

// findLeafContent returns a snapshot's leaf content: the one bound to its leaf VolumeSnapshot (existing
// or recorded), or else one with its stamp.
func (o Observer) findLeafContent(ctx context.Context, s *Observed) (*snapshotv1.VolumeSnapshotContent, error) {
	leaf := s.LeafRecord().Snapshot
	if leaf == "" && s.Leaf != nil {
		leaf = s.Leaf.UID
	}
	if leaf != "" {
		content, err := index.FindObject[snapshotv1.VolumeSnapshotContent](ctx, o.LeafSnapshotCache(), index.ClusterScopedKey(mirrorsnapshot.ContentName(leaf)))
		if content != nil && !mirrorsnapshot.IsContentOfSnapshot(content, leaf) {
			content = nil
		}
		return content, err
	}
	contents, err := index.LeafContentsOf(ctx, o.LeafSnapshotCache(), s.UID)
	for i := range contents {
		origin, ours := mirror.LeafOriginFromHost(o.HostID, &contents[i])
		if ours && (s.Origin.UID == "" || origin == s.Origin) {
			return &contents[i], nil
		}
	}
	return nil, err
}

// observeUnmet finds the class and the leaf claim, or the reason why the member cannot take the
// snapshot yet.
func (o Observer) observeUnmet(ctx context.Context, s *Observed) error {
	namespace, err := index.FindNamespace(ctx, o.Host, s.Root.Namespace)
	if err != nil {
		return err
	}
	switch answer := o.PlacementMember().AnswerRequest(placement.Request{Namespace: namespace}); {
	case answer.Refusal != nil:
		s.Unmet = answer.Refusal
		return nil
	case answer.MustWait:
		return fmt.Errorf("namespace %s of snapshot %s is not in the cache yet", namespace.Name, s.Root.Name)
	}
	source, err := findSnapshotSource(ctx, o.Host, s.Root)
	if err != nil {
		return err
	}
	_, invalid := ResolveSource(s.Host, s.Root, source)
	if invalid != nil {
		s.Unmet = invalid
		return nil
	}
	leaf, err := o.findLeafVolume(ctx, s, source)
	if err != nil || s.Unmet != nil {
		return err
	}
	return o.observeClass(ctx, s, leaf)
}

// findLeafVolume returns a source's leaf PV, which must be bound to the leaf claim.
func (o Observer) findLeafVolume(ctx context.Context, s *Observed, source SnapshotSource) (*corev1.PersistentVolume, error) {
	_, name, uid, _ := hostpv.LeafOfHostVolume(source.Volume)
	leaf, err := index.FindObject[corev1.PersistentVolume](ctx, o.Cache, index.ClusterScopedKey(name))
	if err != nil {
		return nil, err
	}
	claim, origin, err := index.FindStamped[corev1.PersistentVolumeClaim](ctx, o.Cache, o.HostID, client.ObjectKeyFromObject(source.Claim))
	if err != nil {
		return nil, err
	}
	if leaf == nil || leaf.UID != uid || claim == nil || origin.UID != source.Claim.UID || !hostpv.ClaimRefHasUIDOf(leaf, claim) || claim.Status.Phase != corev1.ClaimBound {
		s.Unmet = mirror.NewRefusal(v1alpha1.ReasonSnapshotSourceNotReady, "in member %q, claim %q is not bound to its volume %q. `kubectl describe pvc %s` shows why", o.Registration, source.Claim.Name, name, source.Claim.Name)
		return leaf, nil
	}
	s.Disk = mirrorsnapshot.DiskHandleOf(leaf)
	if !s.LeafRecord().MatchesDisk(s.Disk) {
		s.Unmet = mirror.NewRefusal(v1alpha1.ReasonSnapshotSourceInvalid, "claim %q has another disk now than when the VolumeSnapshot was created: the earlier disk is gone. Delete the VolumeSnapshot, and create another one for the data of the new disk", source.Claim.Name)
	}
	return leaf, nil
}

// observeClass finds the member's class, which must have the leaf volume's driver.
func (o Observer) observeClass(ctx context.Context, s *Observed, leaf *corev1.PersistentVolume) error {
	name := ptr.Deref(s.Host.Spec.VolumeSnapshotClassName, "")
	hostClass, err := index.FindObject[snapshotv1.VolumeSnapshotClass](ctx, o.Host, index.ClusterScopedKey(name))
	if err != nil {
		return err
	}
	mapped, rule := o.PlacementMember().SnapshotClassFor(name, hostClass)
	class, err := index.FindObject[snapshotv1.VolumeSnapshotClass](ctx, o.LeafSnapshotCache(), index.ClusterScopedKey(mapped))
	if err != nil {
		return err
	}
	driver, _ := mirror.VolumeSourceOf(leaf)
	switch {
	case class == nil:
		s.Unmet = mirror.NewRefusal(v1alpha1.ReasonSnapshotClassNotFound, "no VolumeSnapshotClass %q in member %q (mapped from %q by %s). Create it there or change the mapping", mapped, o.Registration, name, rule)
	case class.Driver != driver:
		s.Unmet = mirror.NewRefusal(v1alpha1.ReasonSnapshotClassMismatch, "VolumeSnapshotClass %q in member %q (mapped from %q by %s) has driver %q, but the claim's volume has driver %q. Use a class that maps to one with the volume's driver",
			mapped, o.Registration, name, rule, class.Driver, driver)
	}
	s.Class = mapped
	return nil
}
