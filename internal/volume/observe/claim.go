package observe

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
)

// Claim contains the objects that both clusters have under a claim's name.
type Claim struct {
	// Root is the host's claim. Leaf is Xylem's leaf claim with that name, which may belong to an
	// earlier root. nil means that the object does not exist.
	Root, Leaf *corev1.PersistentVolumeClaim
	Origin     mirror.Origin
	// Observed is the input of the decision. It is nil if there is nothing to decide.
	Observed *volume.Observed
	// Stale is set if another leaf claim has the root's name: it belongs to an earlier root, and the volume
	// that it names now belongs to another claim, or to the root itself. Leaf is then nil.
	Stale *Claim
	// observedRoot is the observation of the root, if Observed is that of the volume of a stale leaf claim.
	observedRoot *volume.Observed
}

// PlacedConditionOwnedBy reports whether the member owns the root's Placed condition. If the claim is unbound,
// the owner is the member that the scheduler selected; otherwise, it is the member in which the
// claim is placed. Two owners would overwrite each other forever (I5).
func (c *Claim) PlacedConditionOwnedBy(m mirror.Member) bool {
	if c.Root == nil {
		return false
	}
	selected, placed := c.Root.Annotations[route.AnnSelectedNode], c.Root.Annotations[v1alpha1.AnnotationPlacedIn]
	switch {
	case c.Root.Spec.VolumeName == "" && selected != "":
		return m.HasNode(selected)
	case placed != "":
		return placed == m.ClusterID
	case c.Root.Spec.VolumeName != "":
		s := c.Observed
		if c.observedRoot != nil {
			s = c.observedRoot
		}
		p := s.Placement
		return p.RequestedVolume != nil && len(p.RivalMembers) == 0 || s.RootBoundToImport() || c.placedConditionSetBy(m) || p.Diverted != nil || keepsMirror(s) ||
			s.Promise != nil && (hostpv.IsPromiseReleasedFrom(s.Promise, m.ClusterID) || c.sourceRecordedIn(m))
	}
	return true // no member has the claim, so each removes its report
}

// placedConditionSetBy reports whether the member set the root's Placed condition. It must remove the condition
// when it no longer has the volume that the claim requests.
func (c *Claim) placedConditionSetBy(m mirror.Member) bool {
	return mirror.ReporterOfRoot(c.Root).ClusterID == m.ClusterID && report.ClaimConditionProblem(c.Root, v1alpha1.ClaimPlaced) != nil
}

// keepsMirror reports whether the member has the root's leaf claim, and the root names the host PV that
// represents, or will represent, its volume.
func keepsMirror(s *volume.Observed) bool {
	return s.ClaimWithoutVolume() && s.LeafClaim != nil && s.Promise == nil && !s.Placement.BoundOutsideMember && s.NamesMirrorOfLeaf()
}

// sourceRecordedIn reports whether the member had the root's data source when the promise was created.
// No other member may fulfill that promise.
func (c *Claim) sourceRecordedIn(m mirror.Member) bool {
	record, recorded := mirror.DataSourceRecordOf(c.Root)
	return recorded && mirror.HasDataSource(c.Root) && record.ClusterID == m.ClusterID
}

// ObserveClaim observes a claim by the name that root and leaf share: this member's volume that the root is bound
// to or, if there is none, the root itself. If the leaf claim belongs to an earlier root, it observes the
// volume of that leaf claim instead, unless the volume belongs to another claim by now.
func (o Observer) ObserveClaim(ctx context.Context, key types.NamespacedName) (c Claim, err error) {
	if c.Root, err = index.FindObject[corev1.PersistentVolumeClaim](ctx, o.Host, key); err != nil {
		return c, err
	}
	if c.Leaf, c.Origin, err = index.FindStamped[corev1.PersistentVolumeClaim](ctx, o.Cache, o.HostID, key); err != nil {
		return c, err
	}
	if c.Leaf != nil && (c.Root == nil || c.Origin.UID != c.Root.UID) {
		if c.Observed, err = o.observeStaleClaim(ctx, c); err != nil {
			return c, err
		}
		if isSame(c.Leaf, c.Observed.LeafClaim) {
			c.refreshFromObserved()
			return c, nil
		}
		stale := c
		c = Claim{Root: c.Root, Stale: &stale}
	}
	if c.Root == nil {
		return c, nil
	}
	if c.Observed, err = o.ofRoot(ctx, c); err != nil {
		return c, err
	}
	c.refreshFromObserved()
	if c.Stale != nil {
		c.Stale.Root, c.Stale.observedRoot = c.Root, c.Observed
	}
	return c, nil
}

// refreshFromObserved takes the root and the leaf claim from the observation, because it was read later.
func (c *Claim) refreshFromObserved() {
	switch {
	case c.Observed.Root != nil:
		c.Root = c.Observed.Root
	case c.Root == nil:
		c.Root = c.Observed.Successor // created after the first read
	}
	if c.Observed.LeafClaim != nil {
		c.Leaf, c.Origin = c.Observed.LeafClaim, c.Observed.Origin
	}
}

// observeStaleClaim observes the volume that the leaf claim of an earlier root names.
func (o Observer) observeStaleClaim(ctx context.Context, c Claim) (*volume.Observed, error) {
	s := &volume.Observed{Name: c.Leaf.Spec.VolumeName, Successor: c.Root}
	if s.Name == "" {
		s.LeafClaim, s.Origin = c.Leaf, c.Origin
		return s, o.complete(ctx, s)
	}
	return s, o.observeBoundVolume(ctx, s, c.Leaf)
}

// ofRoot observes this member's volume that a root is bound to or, if there is none, the root and its leaf
// claim.
func (o Observer) ofRoot(ctx context.Context, c Claim) (*volume.Observed, error) {
	s := &volume.Observed{Root: c.Root, LeafClaim: c.Leaf, Origin: c.Origin}
	if c.Stale != nil {
		s.NameOccupiedBy = c.Stale.Leaf
	}
	if c.Root.Spec.VolumeName == "" {
		return s, o.complete(ctx, s)
	}
	host, err := index.FindObject[corev1.PersistentVolume](ctx, o.Host, index.ClusterScopedKey(c.Root.Spec.VolumeName))
	if err != nil {
		return nil, err
	}
	if host == nil || host.Spec.ClaimRef == nil || host.Spec.ClaimRef.UID != c.Root.UID {
		return s, o.complete(ctx, s)
	}
	if name, asks := hostpv.RequestedImportIn(host, o.ClusterID); asks {
		s.Name = name
		return s, o.observeRequested(ctx, s)
	}
	if cluster, name, uid, ours := hostpv.LeafOfHostVolume(host); ours && cluster == o.ClusterID {
		s.Name, s.UID, s.Host = name, uid, host
		return s, o.observeBoundVolume(ctx, s, nil)
	}
	return s, o.complete(ctx, s)
}
