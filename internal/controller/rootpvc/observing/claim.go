package observing

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// Observer observes claims, including the state of the member that concerns them.
type Observer struct {
	observe.Observer
	// HostRestored is the time of the host's last restore, according to this member. HostUnconfirmed
	// means that no admin has confirmed this restore yet.
	HostRestored    time.Time
	HostUnconfirmed bool
	// NominatedNode reports whether the host's scheduler sets status.nominatedNodeName before it
	// binds a Pod.
	NominatedNode bool
	// Now returns the time by the member's clock, which the times of its objects come from. SilentAfter
	// is how long the member's programs may take to respond.
	Now         func() time.Time
	SilentAfter time.Duration
	// Rivals returns the other members that have an orphaned volume with this name for the same claim.
	Rivals func(volume string, claim types.NamespacedName) []string
	// Rejected returns why the member rejects the creation of a root's namespace, or nil.
	Rejected func(root *corev1.PersistentVolumeClaim) *mirror.Refusal
}

// Claim contains the objects that both clusters have under a claim's name.
type Claim struct {
	// Root is the host's claim. Leaf is Xylem's leaf claim with that name, which may belong to an
	// earlier root. nil means that the object does not exist.
	Root, Leaf *corev1.PersistentVolumeClaim
	Origin     mirror.Origin
	// Observed is the input of the decision. It is nil if neither Root nor Leaf exists.
	Observed *volume.Observed
}

// HandedOver reports whether the volume of a stale leaf claim now belongs to another claim,
// possibly with another name. The plan is then for that claim.
func (c *Claim) HandedOver() bool {
	s := c.Observed
	return c.Leaf != nil && (c.Root == nil || c.Root.UID != c.Origin.UID) && (s.Claim == nil || s.Claim.UID != c.Leaf.UID)
}

// ForRoot reports whether the observed volume is the root's, not another claim's.
func (c *Claim) ForRoot() bool {
	return c.Root != nil && c.Observed.Root != nil && c.Observed.Root.UID == c.Root.UID
}

// Reports reports whether the member owns the root's Placed condition. If the claim is unbound,
// the owner is the member that the scheduler selected; otherwise, it is the member in which the
// claim is placed. Two owners would overwrite each other forever (I5).
func (c *Claim) Reports(m mirror.Member) bool {
	if c.Root == nil {
		return false
	}
	selected, placed := c.Root.Annotations[route.AnnSelectedNode], c.Root.Annotations[v1alpha1.AnnotationPlacedIn]
	switch {
	case c.Root.Spec.VolumeName == "" && selected != "":
		return selected == m.NodeName
	case placed != "":
		return placed == m.ClusterID
	case c.Root.Spec.VolumeName != "":
		p := c.Observed.Placement
		return p.Asked != nil && len(p.Rivals) == 0 || len(c.Observed.Imports) > 0 || c.reportedBy(m) || p.Diverted != nil || c.keepsMirror() ||
			c.Observed.Promise != nil && (hostpv.PromiseReleasedBy(c.Observed.Promise, m.ClusterID) || c.copiesHere(m))
	}
	return true // no member has the claim, so each removes its report
}

// reportedBy reports whether the member set the root's Placed condition. It must remove the condition
// when it no longer has the volume that the claim requests.
func (c *Claim) reportedBy(m mirror.Member) bool {
	return mirror.ReporterOf(c.Root).ClusterID == m.ClusterID && report.ClaimProblem(c.Root, v1alpha1.ClaimPlaced) != nil
}

// keepsMirror reports whether the member has the root's leaf claim, and the root names the host PV that
// represents, or will represent, its volume.
func (c *Claim) keepsMirror() bool {
	s := c.Observed
	return s.Alone() && c.Leaf != nil && s.Promise == nil && !s.Placement.BoundAway && s.NamesMirror()
}

// copiesHere reports whether the member had the root's data source when the promise was created.
// No other member may fulfill that promise.
func (c *Claim) copiesHere(m mirror.Member) bool {
	record, recorded := datasource.RecordOf(c.Root)
	return recorded && datasource.Has(c.Root) && record.ClusterID == m.ClusterID
}

// OfClaim observes a claim by the name that root and leaf share.
func (o Observer) OfClaim(ctx context.Context, key types.NamespacedName) (c Claim, err error) {
	if c.Root, err = index.Find[corev1.PersistentVolumeClaim](ctx, o.Host, key); err != nil {
		return c, err
	}
	if c.Leaf, c.Origin, err = index.Leaf[corev1.PersistentVolumeClaim](ctx, o.Cache, o.HostID, key); err != nil {
		return c, err
	}
	if c.Observed, err = o.OfVolume(ctx, c.Root, c.Leaf, c.Origin); err != nil {
		return c, err
	}
	switch {
	case c.Observed != nil:
		c.refresh()
	case c.Root == nil:
		return c, nil
	default:
		c.Observed = &volume.Observed{Member: o.Member, Root: c.Root, Claim: c.Leaf, Origin: c.Origin}
	}
	c.Observed.Rules = o.Rules
	c.Observed.Placement = &volume.Placement{HostRestored: o.HostRestored, HostUnconfirmed: o.HostUnconfirmed}
	return c, o.observePlacement(ctx, &c)
}

// refresh takes the root and the leaf claim from the observation, because it was read later.
func (c *Claim) refresh() {
	if c.HandedOver() {
		return
	}
	if c.Observed.Root != nil {
		c.Root = c.Observed.Root
	}
	if c.Observed.Claim != nil {
		c.Leaf, c.Origin = c.Observed.Claim, c.Observed.Origin
	}
}

func (o Observer) observePlacement(ctx context.Context, c *Claim) error {
	if c.Leaf != nil {
		if err := o.observeProvisioned(ctx, c); err != nil {
			return err
		}
	}
	if c.Root == nil {
		return nil
	}
	for _, look := range []func(context.Context, *Claim) error{o.observeVolume, o.observeRegistration, o.observeMember, o.observeSource, o.observeAttempt} {
		if err := look(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// observeProvisioned reads the PV of a leaf claim, and its class.
func (o Observer) observeProvisioned(ctx context.Context, c *Claim) error {
	s := c.Observed
	made := s.Leaf
	var err error
	switch {
	case !s.Alone():
	case c.Leaf.Spec.VolumeName != "":
		made, err = index.Find[corev1.PersistentVolume](ctx, o.Cache, index.Named(c.Leaf.Spec.VolumeName))
	default:
		var all []corev1.PersistentVolume
		if all, err = index.VolumesForClaim(ctx, o.Cache, c.Leaf.UID); len(all) > 0 {
			made = &all[0]
		}
	}
	if err != nil {
		return err
	}
	s.Placement.Provisioned = made
	s.Placement.LeafClass, err = index.Find[storagev1.StorageClass](ctx, o.Cache, index.Named(ptr.Deref(c.Leaf.Spec.StorageClassName, "")))
	return err
}

// observeVolume reads the host PV to which the root is bound. It adds the PV to the observation if
// it is a promise without a disk, and otherwise only whether the volume is outside this member.
func (o Observer) observeVolume(ctx context.Context, c *Claim) error {
	s := c.Observed
	if c.Root.Spec.VolumeName == "" {
		return o.observeMirror(ctx, c)
	}
	pv, err := index.Find[corev1.PersistentVolume](ctx, o.Host, index.Named(c.Root.Spec.VolumeName))
	if err == nil && pv == nil {
		s.Placement.HostGone = true
		s.PromiseLost = s.PromiseLost || s.Alone() && hostpv.NamesPromise(c.Root.Spec.VolumeName)
		return o.observeAsked(ctx, c)
	}
	if err != nil {
		return err
	}
	cluster, _, _, ours := hostpv.LeafOf(pv)
	if !hostpv.HeldBy(pv, c.Root) {
		if ours && cluster == o.ClusterID && c.Root.Status.Phase == corev1.ClaimLost {
			s.Placement.Diverted = pv
		}
		return nil
	}
	if hostpv.IsUnfulfilled(pv) {
		if s.Alone() {
			s.Promise = pv
			s.Placement.Pods, err = o.PodsHere(ctx, client.ObjectKeyFromObject(c.Root))
		}
		return err
	}
	if !ours || cluster != o.ClusterID {
		s.Placement.BoundAway = c.Leaf == nil || !hostpv.RecordsLeaf(pv, o.ClusterID, c.Leaf.Spec.VolumeName)
	}
	return nil
}

// observeMirror reads the host PV that was created for an unbound root or, if its claimRef does not name
// the root, as Diverted.
func (o Observer) observeMirror(ctx context.Context, c *Claim) error {
	p := c.Observed.Placement
	hosts, err := index.VolumesOfClaim(ctx, o.Host, client.ObjectKeyFromObject(c.Root))
	for i := range hosts {
		if cluster, _, _, _ := hostpv.LeafOf(&hosts[i]); cluster == o.ClusterID && hosts[i].Spec.ClaimRef.UID == c.Root.UID {
			p.Mirror = &hosts[i]
		}
	}
	if err != nil || p.Mirror != nil || p.Provisioned == nil || c.Leaf.Spec.VolumeName == "" {
		return err
	}
	hosts, err = index.VolumesOfLeaf(ctx, o.Host, o.ClusterID, c.Leaf.Spec.VolumeName)
	p.Diverted = diverted(hosts, p.Provisioned, c.Root)
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

// observeAsked reads the leaf PV that the root requests by name, if the host has no PV for it.
func (o Observer) observeAsked(ctx context.Context, c *Claim) error {
	p := c.Observed.Placement
	candidate := p.Provisioned
	if candidate == nil || c.Leaf.Spec.VolumeName == "" {
		var err error
		if candidate, err = index.Find[corev1.PersistentVolume](ctx, o.Cache, index.Named(c.Root.Spec.VolumeName)); err != nil {
			return err
		}
	}
	if candidate == nil || !hostpv.Requests(c.Root, candidate, o.Member) {
		return nil
	}
	hosts, err := index.VolumesOfLeaf(ctx, o.Host, o.ClusterID, candidate.Name)
	if err != nil || len(hosts) > 0 {
		return err
	}
	namespace, err := index.Find[corev1.Namespace](ctx, o.Host, index.Named(c.Root.Namespace))
	if err != nil {
		return err
	}
	if namespace == nil {
		return fmt.Errorf("namespace %s, whose claim requests volume %s, is not in the cache yet", c.Root.Namespace, candidate.Name)
	}
	p.Asked, c.Observed.Tenant = candidate, namespace.UID
	if o.Rivals != nil {
		p.Rivals = o.Rivals(candidate.Name, client.ObjectKeyFromObject(c.Root))
	}
	return nil
}

// observeRegistration reads the name of the other member in which the root is placed.
func (o Observer) observeRegistration(ctx context.Context, c *Claim) error {
	placed := c.Root.Annotations[v1alpha1.AnnotationPlacedIn]
	if placed == "" || placed == o.ClusterID {
		return nil
	}
	registrations, err := index.RegistrationsOf(ctx, o.Host, placed)
	if len(registrations) > 0 {
		c.Observed.PlacedRegistration = registrations[0].Name
	}
	return err
}

// observeMember reads the classes on both sides, the member's node and its namespace. The class of
// a promise is the class at the time of its creation.
func (o Observer) observeMember(ctx context.Context, c *Claim) error {
	s := c.Observed
	name := hostclass.NameOf(c.Root)
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
	if s.Placement.Namespace, err = index.Namespace(ctx, o.Host, c.Root.Namespace); err != nil {
		return err
	}
	s.Placement.Inside.Rejection = o.Rejected(c.Root)
	s.Placement.Inside.Namespace, err = index.Find[corev1.Namespace](ctx, o.Cache, index.Named(c.Root.Namespace))
	return err
}
