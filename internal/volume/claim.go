package volume

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/route"
)

// Placement is the state that determines whether a claim gets, or keeps, a leaf claim in the
// member. A nil field means that the object does not exist.
type Placement struct {
	// Node is the Node that was selected for the claim, or on which a Pod waits for its promise. Without groups, it is
	// the member's. MemberObjects is the state of the member.
	Node          *corev1.Node
	MemberObjects placement.MemberObjects
	// LeafInOtherGroup reports whether recovery selected a group of the member's nodes that does not contain the node
	// which the member's scheduler selected for the leaf claim. The leaf claim is then withdrawn, and created again.
	LeafInOtherGroup bool
	// Namespace is the root's namespace, with its labels.
	Namespace placement.Namespace
	// LeafClass is the leaf claim's class in the member.
	LeafClass *storagev1.StorageClass
	// ProvisionedVolume is the PV that the leaf claim names or, if the claim names none, the PV that was
	// provisioned for it.
	ProvisionedVolume *corev1.PersistentVolume
	// UnboundMirror is this member's host PV that was created for the root and is not bound yet.
	UnboundMirror *corev1.PersistentVolume
	// Diverted is the host PV that represents the leaf claim's volume, or that the root names, if its
	// claimRef does not name the root. It is set only if the root is unbound or Lost. NamedHostGone reports
	// whether the PV that the root names does not exist.
	Diverted      *corev1.PersistentVolume
	NamedHostGone bool
	// BoundOutsideMember reports whether the PV that the root is bound to was read, does not represent a volume
	// of this member, and does not record the leaf claim's volume.
	BoundOutsideMember bool
	// RequestedVolume is the leaf PV that the root requests by name and that was provisioned for an earlier
	// claim with the root's name. No host PV represents it or has its name. Rivals are the other
	// members that have such a volume.
	RequestedVolume *corev1.PersistentVolume
	RivalMembers    []string
	// Source is the root's data source. It is nil if the root has no data source, or is already bound to
	// its volume.
	Source *SourceInMember
	// PromisePods are a promise's Pods that are, or are about to be, bound to the member's node.
	PromisePods []corev1.Pod
	// HostRestored is when the host was last restored, according to this member. HostRestoreUnconfirmed
	// reports whether an admin must still confirm this restore.
	HostRestored           time.Time
	HostRestoreUnconfirmed bool
	// HostRestoredAnywhere is when the host was last restored according to any member, so it is not
	// earlier. root_pvc reads it only just before it places a claim, because it may become known late.
	HostRestoredAnywhere time.Time
	// Counterparts are the other members that have a leaf claim of the root, or could not be
	// queried. root_pvc queries them only before it places a claim for which PlacementMayBeForgotten is
	// true.
	Counterparts proof.Counterparts
	// Attempt is the member's attempt to provision the volume.
	Attempt Attempt
}

// Attempt is the state of an unbound claim in the member that was selected for it.
type Attempt struct {
	// ProvisioningProblem is why the provisioner fails according to the leaf claim's events.
	ProvisioningProblem *mirror.Refusal
	// SilenceProblem is set if the member has made no progress for a long time. CheckSilenceIn is how long to wait
	// until this must be checked, or 0.
	SilenceProblem *mirror.Refusal
	CheckSilenceIn time.Duration
	// Consumers are the claim's Pods that have not ended.
	Consumers []Consumer
	// LacksConsumer means that the leaf claim's class waits for a consumer, and that the host's scheduler
	// has no Pod of the claim left to place.
	LacksConsumer bool
}

// Consumer is a Pod that uses the claim.
type Consumer struct {
	Name string
	// Problem is why the Pod's leaf does not run here.
	Problem *mirror.Refusal
	// AboutToBindHere reports whether the scheduler is, or may be, about to bind the Pod to this member's
	// node.
	AboutToBindHere bool
	// OtherBoundClaim is another claim of the Pod whose volume is here, so neither the Pod nor this claim can
	// use another member.
	OtherBoundClaim string
	// OtherApartClaim is another claim of the Pod that must not be created here, because its data source is
	// elsewhere or its location is not recorded yet.
	OtherApartClaim string
}

// PodNeedsOtherMember reports whether a Pod that will be bound here has another claim that must not be created
// here. This claim is created once the member with the other claim's source is selected.
func (s *Observed) PodNeedsOtherMember() bool {
	apart := false
	for _, c := range s.Placement.Attempt.Consumers {
		if c.AboutToBindHere && c.OtherApartClaim == "" {
			return false
		}
		apart = apart || c.OtherApartClaim != ""
	}
	return apart
}

// SchedulerAgrees reports whether the scheduler has selected this member, or a group of its nodes. If recovery reassigned the claim
// to this member, the annotation with the selected node does not prove this: a Pod must also be
// about to be bound here.
func (s *Observed) SchedulerAgrees() bool {
	return !s.Member.HasNode(s.Root.Annotations[v1alpha1.AnnotationSteeredTo]) ||
		slices.ContainsFunc(s.Placement.Attempt.Consumers, func(c Consumer) bool { return c.AboutToBindHere })
}

// ClaimWithoutVolume reports whether the observation is of a claim without a volume in this member. The leaf
// claim, if there is one, belongs to that claim.
func (s *Observed) ClaimWithoutVolume() bool { return s.Placement != nil && s.withoutVolume() }

// MemberNotObserved reports whether the observation is of a claim without a volume and lacks the state of
// the member.
func (s *Observed) MemberNotObserved() bool { return s.Placement == nil && s.withoutVolume() }

func (s *Observed) withoutVolume() bool { return s.Host == nil && s.Name == "" && s.Root != nil }

// MemberSelected reports whether the scheduler or recovery selected this member for the root, and the leaf claim, if any, is
// of use there. A node of the host may be named like the node of a group.
func (s *Observed) MemberSelected() bool {
	if s.Placement != nil && (s.Placement.LeafInOtherGroup || s.Placement.Node != nil && !placement.RepresentsMember(s.Placement.Node, s.Member)) {
		return false
	}
	return s.Member.HasNode(s.Root.Annotations[route.AnnSelectedNode])
}

// NamesOwnPromise reports whether the root names the promise that is created for it, and no other PV has
// that name.
func (s *Observed) NamesOwnPromise() bool {
	return s.Root.Spec.VolumeName == hostpv.PromiseName(s.Root.UID) && !s.Placement.BoundOutsideMember
}

// NamesMirrorOfLeaf reports whether the root names the host PV that represents, or will represent,
// its leaf claim's volume.
func (s *Observed) NamesMirrorOfLeaf() bool {
	return s.Root.Spec.VolumeName == s.LeafClaim.Spec.VolumeName ||
		s.Root.Spec.VolumeName == hostpv.HostVolumeName(s.LeafClaim.Spec.VolumeName, s.Member.ClusterID, true)
}

// RequestedVolumeInUse reports whether the leaf PV that the root requests is Bound, or was until a moment ago, to a
// claim with the root's name.
func (s *Observed) RequestedVolumeInUse() bool {
	asked := s.Placement.RequestedVolume
	if asked.Status.Phase != corev1.VolumeBound || asked.Spec.ClaimRef == nil {
		return false
	}
	return asked.Spec.ClaimRef.Namespace == s.Root.Namespace && asked.Spec.ClaimRef.Name == s.Root.Name
}

// PlacementConfirmed reports whether the root may be placed in the member that has its leaf claim, although
// the placement is not recorded. Either an admin allows it, or the host was restored from a state
// before the placement was recorded. Only this member's own restore counts, because an admin has
// confirmed it.
func (s *Observed) PlacementConfirmed() bool {
	return s.LeafClaim.Spec.VolumeName != "" && s.Rules.AllowsAdoption(s.LeafClaim.Spec.VolumeName) ||
		!s.Placement.HostRestoreUnconfirmed && s.LeafClaim.CreationTimestamp.Time.Before(s.Placement.HostRestored)
}

// PlacementForgettable reports whether a restored host could lack the record that the root is placed in another
// member, or could have an outdated record that it is placed here: the root is not placed elsewhere,
// and has no leaf claim here.
func (s *Observed) PlacementForgettable() bool {
	return s.ClaimWithoutVolume() && s.LeafClaim == nil && (s.PlacedClusterID() == "" || s.PlacedClusterID() == s.Member.ClusterID) && (s.Root.Spec.VolumeName == "" || s.Promise != nil)
}

// PlacementMayBeForgotten reports whether the root is PlacementForgettable and older than a restore of the host that
// any member has detected.
func (s *Observed) PlacementMayBeForgotten() bool {
	return s.PlacementForgettable() && s.Root.CreationTimestamp.Time.Before(s.Placement.HostRestoredAnywhere)
}

// ClassMirrorsAndWaits reports whether the root's class is in mirror mode and waits for a consumer.
func (s *Observed) ClassMirrorsAndWaits() bool {
	return hostpv.IsMirrorClass(s.Class) && hostpv.WaitsForConsumer(s.Class)
}

// PromiseClusterID returns the cluster ID in the promise's label.
func (s *Observed) PromiseClusterID() string { return s.Promise.Labels[v1alpha1.LabelClusterID] }

// MustKeepPromise reports whether a leaf claim shows that this member had the promise and must
// keep it, because no admin has abandoned it.
func (s *Observed) MustKeepPromise() bool {
	return s.LeafClaim != nil && !hostpv.IsPromiseReleasedFrom(s.Promise, s.Member.ClusterID)
}

// FirstPromisePod returns the Pod for which a promise's disk is provisioned, or nil.
func (s *Observed) FirstPromisePod() *corev1.Pod {
	if len(s.Placement.PromisePods) == 0 {
		return nil
	}
	first := slices.MinFunc(s.Placement.PromisePods, func(a, b corev1.Pod) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return &first
}

// placementMember describes the member for the placement rules.
func (s *Observed) placementMember() placement.Member {
	m := placement.Member{Member: s.Member, Rules: s.Rules}
	if s.Placement != nil {
		m.Node, m.Objects = s.Placement.Node, &s.Placement.MemberObjects
	}
	return m
}

// LeafClaimAnswer reports whether the leaf claim may be created in the member. If the root is bound to a
// volume, the leaf claim is for that volume, regardless of the class. Otherwise, the root's class
// must be available.
func (s *Observed) LeafClaimAnswer() placement.Answer {
	q := placement.Request{Namespace: placement.Namespace{Name: s.Root.Namespace}}
	if s.Placement != nil {
		q.Namespace = s.Placement.Namespace
	}
	if s.Name == "" {
		q.Class = s.Class
		if source, has := mirror.DataSourceOf(s.Root); has {
			q.Source = &source
		}
	}
	return s.placementMember().AnswerRequest(q)
}

// ProvisioningNotBegun reports whether, as far as Xylem has observed, no member has begun to provision a volume
// for the claim.
func (s *Observed) ProvisioningNotBegun() bool {
	return s.Root.Spec.VolumeName == "" && s.LeafClaim == nil
}

// VolumeNotRequested reports whether the scheduler has selected a node, but the host's PV controller
// has not requested the volume yet.
func (s *Observed) VolumeNotRequested() bool {
	_, requested := s.Root.Annotations[volumehelpers.AnnStorageProvisioner]
	return s.ProvisioningNotBegun() && s.Root.Annotations[route.AnnSelectedNode] != "" && !requested
}

// MayOutliveLeafClaim reports whether a provisioner may be creating a volume that outlives the leaf claim:
// the class has policy Retain, and the provisioner may have been called.
func (s *Observed) MayOutliveLeafClaim() bool {
	class := s.Placement.LeafClass
	if class == nil {
		return true // the class is unknown
	}
	asked := s.LeafClaim.Annotations[route.AnnSelectedNode] != "" || !hostpv.WaitsForConsumer(class)
	return asked && ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete) == corev1.PersistentVolumeReclaimRetain
}

// RequestedLeafVolume returns the leaf PV that the root or its successor requests by name.
func (s *Observed) RequestedLeafVolume() *corev1.PersistentVolume {
	if s.Leaf != nil {
		return s.Leaf
	}
	return s.Placement.RequestedVolume
}

// ReportUnadoptable reports why the claim cannot adopt the requested volume, or nil.
func (s *Observed) ReportUnadoptable() *mirror.Refusal {
	return s.placementMember().RefuseAdoption(s.RootOrSuccessor(), s.Class, s.Tenant, s.RequestedLeafVolume(), s.LeafClaim != nil)
}
