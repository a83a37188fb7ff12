package observe

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
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/mirror/volumesource"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/snapshot"
)

// InHost observes the host's objects for the snapshot with the named content, and returns the ID of
// its cluster. It returns nil if the host has no content with that name.
func InHost(ctx context.Context, host client.Reader, name string) (s *snapshot.Observed, clusterID string, err error) {
	content, err := index.Find[snapshotv1.VolumeSnapshotContent](ctx, host, index.Named(name))
	if err != nil || content == nil {
		return nil, "", err
	}
	s = &snapshot.Observed{Host: content, UID: content.Spec.VolumeSnapshotRef.UID}
	if s.Root, err = rootOf(ctx, host, mirrorsnapshot.RootOf(content), s.UID); err != nil {
		return nil, "", err
	}
	own := mirrorsnapshot.Own(content)
	if clusterID = mirrorsnapshot.PlacedIn(content); own && clusterID != "" {
		s.Invalid = snapshot.Misreferenced(content)
		return s, clusterID, nil
	}
	source, err := sourceOf(ctx, host, s.Root)
	if err != nil {
		return nil, "", err
	}
	if !own {
		s.Invalid = snapshot.DriverMismatch(content, s.Root, source)
		return s, "", nil
	}
	clusterID, s.Invalid = snapshot.Resolve(content, s.Root, source)
	return s, clusterID, nil
}

// rootOf returns the host's VolumeSnapshot with this name and UID, or nil.
func rootOf(ctx context.Context, host client.Reader, key types.NamespacedName, uid types.UID) (*snapshotv1.VolumeSnapshot, error) {
	root, err := index.Find[snapshotv1.VolumeSnapshot](ctx, host, key)
	if root != nil && root.UID != uid {
		root = nil
	}
	return root, err
}

// sourceOf returns a VolumeSnapshot's claim in the host, and the claim's volume.
func sourceOf(ctx context.Context, host client.Reader, root *snapshotv1.VolumeSnapshot) (source snapshot.Source, err error) {
	if source.Claim, err = index.Find[corev1.PersistentVolumeClaim](ctx, host, snapshot.ClaimOf(root)); err != nil || source.Claim == nil {
		return source, err
	}
	source.Volume, err = index.Find[corev1.PersistentVolume](ctx, host, index.Named(source.Claim.Spec.VolumeName))
	return source, err
}

// Observer observes snapshots through a member's link.
type Observer struct {
	*member.Link
	// SilentAfter is how long the member's snapshot-controller and csi-snapshotter may take to
	// respond. If it is 0, their silence is not observed.
	SilentAfter time.Duration
}

// OfContent observes the snapshot with the named host content. It returns nil if the snapshot
// does not concern this member, or if the member's snapshots have not been read yet.
func (o Observer) OfContent(ctx context.Context, name string) (*snapshot.Observed, error) {
	problem, known := o.Snapshots.Problem()
	if o.HostSnapshots.Cache() == nil || !known {
		return nil, nil //nolint:nilnil // absence is an answer, as with index.Find
	}
	s, cluster, err := InHost(ctx, o.Host, name)
	if s != nil && !mirrorsnapshot.Own(s.Host) {
		s = nil
	}
	switch {
	case err != nil:
		return nil, err
	case s != nil && (cluster != o.ClusterID || snapshot.Renamed(s.Host)):
		return nil, nil //nolint:nilnil // another member's, or host_snapshot's
	case s == nil && problem != nil:
		return nil, nil //nolint:nilnil // nothing is known of the member
	case s == nil:
		return o.unrepresented(ctx, mirrorsnapshot.SnapshotOf(name))
	}
	s.Member, s.Linked, s.Unavailable = o.Member, true, problem
	s.Origin = mirror.Origin{HostID: o.HostID, Root: mirrorsnapshot.RootOf(s.Host), UID: s.UID}
	if problem != nil {
		return s, nil
	}
	if err := o.observeLeaves(ctx, s); err != nil {
		return nil, err
	}
	if o.SilentAfter > 0 {
		s.Silent, s.SilentIn = s.Silence(o.SilentAfter, o.Clock.Now())
	}
	return s, nil
}

// unrepresented observes leaves that no host content represents.
func (o Observer) unrepresented(ctx context.Context, uid types.UID) (*snapshot.Observed, error) {
	if uid == "" {
		return nil, nil //nolint:nilnil // no snapshot-controller gave it that name
	}
	s := &snapshot.Observed{Member: o.Member, Linked: true, UID: uid}
	var err error
	if s.Leaf, s.Origin, err = o.leafOf(ctx, uid); err != nil {
		return nil, err
	}
	if s.Content, err = o.contentOf(ctx, s); err != nil || s.Leaf == nil && s.Content == nil {
		return nil, err
	}
	if s.Leaf == nil {
		s.Origin, _ = mirror.OriginIn(o.HostID, s.Content)
	}
	s.Root, err = rootOf(ctx, o.Host, s.Origin.Root, uid)
	return s, err
}

// leafOf returns the leaf VolumeSnapshot that is stamped with this root UID, or nil.
func (o Observer) leafOf(ctx context.Context, uid types.UID) (*snapshotv1.VolumeSnapshot, mirror.Origin, error) {
	leaves, err := index.LeafSnapshotsOf(ctx, o.LeafSnapshots(), uid)
	for i := range leaves {
		if origin, ours := mirror.OriginIn(o.HostID, &leaves[i]); ours {
			return &leaves[i], origin, nil
		}
	}
	return nil, mirror.Origin{}, err
}

func (o Observer) observeLeaves(ctx context.Context, s *snapshot.Observed) error {
	there, err := index.Find[snapshotv1.VolumeSnapshot](ctx, o.LeafSnapshots(), s.Origin.Root)
	if err != nil {
		return err
	}
	if there != nil {
		o.classify(s, there)
	}
	if s.Content, err = o.contentOf(ctx, s); err != nil {
		return err
	}
	if s.NameTaken && s.Content != nil && mirrorsnapshot.Binds(s.Content, there.UID) {
		s.NameTaken, s.Unstamped = false, true // the host does not record its UID, but the stamped content refers to it
	}
	if s.Content != nil && s.Replaced(s.Content) {
		s.Content, s.OtherContent = nil, s.Content
	}
	switch {
	case s.Destroys() && (s.Leaf != nil || s.Content != nil):
		return o.observeNeeds(ctx, s)
	case s.Root == nil || s.Leaf != nil || s.Record().Snapshot != "":
		return nil
	}
	return o.observeUnmet(ctx, s)
}

// observeNeeds reads the claims that will be restored from a snapshot that must be destroyed.
func (o Observer) observeNeeds(ctx context.Context, s *snapshot.Observed) error {
	source := datasource.OfSnapshot(s.Origin.Root.Name)
	waiting, err := index.ClaimsFrom(ctx, o.Host, s.Origin.Root.Namespace, source.Key())
	if err != nil {
		return err
	}
	claims, err := index.ClaimsToFill(ctx, o.Host, waiting, source, s.UID)
	s.Needs = index.Names(claims)
	return err
}

// classify determines what the member's VolumeSnapshot with the leaf's name is.
func (o Observer) classify(s *snapshot.Observed, there *snapshotv1.VolumeSnapshot) {
	origin, ours := mirror.OriginIn(o.HostID, there)
	switch recorded := s.Record().Snapshot; {
	case there.UID == recorded && (!ours || origin.UID != s.UID):
		s.Unstamped = true
	case !ours:
		s.NameTaken = true
	case origin.UID != s.UID:
		s.Earlier = true
	case recorded != "" && there.UID != recorded:
		s.OtherLeaf = there
	default:
		s.Leaf = there
	}
}

// contentOf returns a snapshot's leaf content: the one bound to its leaf VolumeSnapshot (existing
// or recorded), or else one with its stamp.
func (o Observer) contentOf(ctx context.Context, s *snapshot.Observed) (*snapshotv1.VolumeSnapshotContent, error) {
	leaf := s.Record().Snapshot
	if leaf == "" && s.Leaf != nil {
		leaf = s.Leaf.UID
	}
	if leaf != "" {
		content, err := index.Find[snapshotv1.VolumeSnapshotContent](ctx, o.LeafSnapshots(), index.Named(mirrorsnapshot.ContentName(leaf)))
		if content != nil && !mirrorsnapshot.Binds(content, leaf) {
			content = nil
		}
		return content, err
	}
	contents, err := index.LeafContentsOf(ctx, o.LeafSnapshots(), s.UID)
	for i := range contents {
		origin, ours := mirror.OriginIn(o.HostID, &contents[i])
		if ours && (s.Origin.UID == "" || origin == s.Origin) {
			return &contents[i], nil
		}
	}
	return nil, err
}

// observeUnmet finds the class and the leaf claim, or the reason why the member cannot take the
// snapshot yet.
func (o Observer) observeUnmet(ctx context.Context, s *snapshot.Observed) error {
	namespace, err := index.Namespace(ctx, o.Host, s.Root.Namespace)
	if err != nil {
		return err
	}
	switch answer := o.Place().Answer(placement.Request{Namespace: namespace}); {
	case answer.Refusal != nil:
		s.Unmet = answer.Refusal
		return nil
	case answer.Waits:
		return fmt.Errorf("namespace %s of snapshot %s is not in the cache yet", namespace.Name, s.Root.Name)
	}
	source, err := sourceOf(ctx, o.Host, s.Root)
	if err != nil {
		return err
	}
	_, invalid := snapshot.Resolve(s.Host, s.Root, source)
	if invalid != nil {
		s.Unmet = invalid
		return nil
	}
	leaf, err := o.leafVolume(ctx, s, source)
	if err != nil || s.Unmet != nil {
		return err
	}
	return o.observeClass(ctx, s, leaf)
}

// leafVolume returns a source's leaf PV, which must be bound to the leaf claim.
func (o Observer) leafVolume(ctx context.Context, s *snapshot.Observed, source snapshot.Source) (*corev1.PersistentVolume, error) {
	_, name, uid, _ := hostpv.LeafOf(source.Volume)
	leaf, err := index.Find[corev1.PersistentVolume](ctx, o.Cache, index.Named(name))
	if err != nil {
		return nil, err
	}
	claim, origin, err := index.Leaf[corev1.PersistentVolumeClaim](ctx, o.Cache, o.HostID, client.ObjectKeyFromObject(source.Claim))
	if err != nil {
		return nil, err
	}
	if leaf == nil || leaf.UID != uid || claim == nil || origin.UID != source.Claim.UID || !hostpv.HeldBy(leaf, claim) || claim.Status.Phase != corev1.ClaimBound {
		s.Unmet = mirror.Refuse(v1alpha1.ReasonSnapshotSourceNotReady, "in member %q, claim %q is not bound to its volume %q. `kubectl describe pvc %s` shows why", o.Registration, source.Claim.Name, name, source.Claim.Name)
		return leaf, nil
	}
	s.Disk = mirrorsnapshot.Disk(leaf)
	if !s.Record().Has(s.Disk) {
		s.Unmet = mirror.Refuse(v1alpha1.ReasonSnapshotSourceInvalid, "claim %q has another disk now than when the VolumeSnapshot was created: the earlier disk is gone. Delete the VolumeSnapshot, and create another one for the data of the new disk", source.Claim.Name)
	}
	return leaf, nil
}

// observeClass finds the member's class, which must have the leaf volume's driver.
func (o Observer) observeClass(ctx context.Context, s *snapshot.Observed, leaf *corev1.PersistentVolume) error {
	name := ptr.Deref(s.Host.Spec.VolumeSnapshotClassName, "")
	hostClass, err := index.Find[snapshotv1.VolumeSnapshotClass](ctx, o.Host, index.Named(name))
	if err != nil {
		return err
	}
	mapped, rule := o.Place().SnapshotClassFor(name, hostClass)
	class, err := index.Find[snapshotv1.VolumeSnapshotClass](ctx, o.LeafSnapshots(), index.Named(mapped))
	if err != nil {
		return err
	}
	driver, _ := volumesource.Of(leaf)
	switch {
	case class == nil:
		s.Unmet = mirror.Refuse(v1alpha1.ReasonSnapshotClassNotFound, "no VolumeSnapshotClass %q in member %q (mapped from %q by %s). Create it there or change the mapping", mapped, o.Registration, name, rule)
	case class.Driver != driver:
		s.Unmet = mirror.Refuse(v1alpha1.ReasonSnapshotClassMismatch, "VolumeSnapshotClass %q in member %q (mapped from %q by %s) has driver %q, but the claim's volume has driver %q. Use a class that maps to one with the volume's driver",
			mapped, o.Registration, name, rule, class.Driver, driver)
	}
	s.Class = mapped
	return nil
}
