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
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/proof/placing"
	"github.com/xylem-io/xylem/internal/route"
)

// Placement is the state that determines whether a claim gets, or keeps, a leaf claim in the
// member. A nil field means that the object does not exist.
type Placement struct {
	// Node is the member's node in the host. Inside is the state of the member.
	Node   *corev1.Node
	Inside placement.Inside
	// Namespace is the root's namespace, with its labels.
	Namespace placement.Namespace
	// LeafClass is the leaf claim's class in the member.
	LeafClass *storagev1.StorageClass
	// Provisioned is the PV that the leaf claim names or, if the claim names none, the PV that was
	// provisioned for it.
	Provisioned *corev1.PersistentVolume
	// Mirror is this member's host PV that was created for the root and is not bound yet.
	Mirror *corev1.PersistentVolume
	// Diverted is the host PV that represents the leaf claim's volume, or that the root names, if its
	// claimRef does not name the root. It is set only if the root is unbound or Lost. HostGone reports
	// whether the PV that the root names does not exist.
	Diverted *corev1.PersistentVolume
	HostGone bool
	// BoundAway reports whether the PV that the root is bound to was read, does not represent a volume
	// of this member, and does not record the leaf claim's volume.
	BoundAway bool
	// Asked is the leaf PV that the root requests by name and that was provisioned for an earlier
	// claim with the root's name. No host PV represents it or has its name. Rivals are the other
	// members that have such a volume.
	Asked  *corev1.PersistentVolume
	Rivals []string
	// From is the root's data source. It is nil if the root has no data source, or is already bound to
	// its volume.
	From *From
	// Pods are a promise's Pods that are, or are about to be, bound to the member's node.
	Pods []corev1.Pod
	// HostRestored is when the host was last restored, according to this member. HostUnconfirmed
	// reports whether an admin must still confirm this restore.
	HostRestored    time.Time
	HostUnconfirmed bool
	// HostRestoredAnywhere is when the host was last restored according to any member, so it is not
	// earlier. root_pvc reads it only just before it places a claim, because it may become known late.
	HostRestoredAnywhere time.Time
	// Counterparts are the other members that have a leaf claim of the root, or could not be
	// queried. root_pvc queries them only before it places a claim for which MayBeForgotten is
	// true.
	Counterparts placing.Counterparts
	// Attempt is the member's attempt to provision the volume.
	Attempt Attempt
}

// Attempt is the state of an unbound claim in the member that was selected for it.
type Attempt struct {
	// Provisioning is why the provisioner fails according to the leaf claim's events.
	Provisioning *mirror.Refusal
	// Silent is set if the member has made no progress for a long time. SilentIn is how long to wait
	// until this must be checked, or 0.
	Silent   *mirror.Refusal
	SilentIn time.Duration
	// Consumers are the claim's Pods that have not ended.
	Consumers []Consumer
	// Unconsumed means that the leaf claim's class waits for a consumer, and that the host's scheduler
	// has no Pod of the claim left to place.
	Unconsumed bool
}

// Consumer is a Pod that uses the claim.
type Consumer struct {
	Name string
	// Problem is why the Pod's leaf does not run here.
	Problem *mirror.Refusal
	// Here reports whether the scheduler is, or may be, about to bind the Pod to this member's
	// node.
	Here bool
	// Bound is another claim of the Pod whose volume is here, so neither the Pod nor this claim can
	// use another member.
	Bound string
	// Apart is another claim of the Pod that must not be created here, because its data source is
	// elsewhere or its location is not recorded yet.
	Apart string
}

// Apart reports whether a Pod that will be bound here has another claim that must not be created
// here. This claim is created once the member with the other claim's source is selected.
func (s *Observed) Apart() bool {
	apart := false
	for _, c := range s.Placement.Attempt.Consumers {
		if c.Here && c.Apart == "" {
			return false
		}
		apart = apart || c.Apart != ""
	}
	return apart
}

// Agreed reports whether the scheduler has selected this member. If recovery reassigned the claim
// to this member, the annotation with the selected node does not prove this: a Pod must also be
// about to be bound here.
func (s *Observed) Agreed() bool {
	return s.Root.Annotations[v1alpha1.AnnotationSteeredTo] != s.Member.NodeName ||
		slices.ContainsFunc(s.Placement.Attempt.Consumers, func(c Consumer) bool { return c.Here })
}

// Alone reports whether the observation is of a claim without a volume in this member. The leaf
// claim, if there is one, belongs to that claim.
func (s *Observed) Alone() bool { return s.Placement != nil && s.none() }

// Unobserved reports whether the observation is of a claim without a volume and lacks the state of
// the member.
func (s *Observed) Unobserved() bool { return s.Placement == nil && s.none() }

func (s *Observed) none() bool { return s.Host == nil && s.Name == "" && s.Root != nil }

// Selected reports whether the scheduler or recovery selected this member for the root.
func (s *Observed) Selected() bool {
	return s.Root.Annotations[route.AnnSelectedNode] == s.Member.NodeName
}

// OwnPromise reports whether the root names the promise that is created for it, and no other PV has
// that name.
func (s *Observed) OwnPromise() bool {
	return s.Root.Spec.VolumeName == hostpv.PromiseName(s.Root.UID) && !s.Placement.BoundAway
}

// NamesMirror reports whether the root names the host PV that represents, or will represent,
// its leaf claim's volume.
func (s *Observed) NamesMirror() bool {
	return s.Root.Spec.VolumeName == s.Claim.Spec.VolumeName ||
		s.Root.Spec.VolumeName == hostpv.Name(s.Claim.Spec.VolumeName, s.Member.ClusterID, true)
}

// AskedInUse reports whether the leaf PV that the root requests is Bound, or was until a moment ago, to a
// claim with the root's name.
func (s *Observed) AskedInUse() bool {
	asked := s.Placement.Asked
	if asked.Status.Phase != corev1.VolumeBound || asked.Spec.ClaimRef == nil {
		return false
	}
	return asked.Spec.ClaimRef.Namespace == s.Root.Namespace && asked.Spec.ClaimRef.Name == s.Root.Name
}

// Confirmed reports whether the root may be placed in the member that has its leaf claim, although
// the placement is not recorded. Either an admin allows it, or the host was restored from a state
// before the placement was recorded. Only this member's own restore counts, because an admin has
// confirmed it.
func (s *Observed) Confirmed() bool {
	return s.Claim.Spec.VolumeName != "" && s.Rules.Allows(s.Claim.Spec.VolumeName) ||
		!s.Placement.HostUnconfirmed && s.Claim.CreationTimestamp.Time.Before(s.Placement.HostRestored)
}

// Forgettable reports whether a restored host could lack the record that the root is placed in another
// member, or could have an outdated record that it is placed here: the root is not placed elsewhere,
// and has no leaf claim here.
func (s *Observed) Forgettable() bool {
	return s.Alone() && s.Claim == nil && (s.PlacedIn() == "" || s.PlacedIn() == s.Member.ClusterID) && (s.Root.Spec.VolumeName == "" || s.Promise != nil)
}

// MayBeForgotten reports whether the root is Forgettable and older than a restore of the host that
// any member has detected.
func (s *Observed) MayBeForgotten() bool {
	return s.Forgettable() && s.Root.CreationTimestamp.Time.Before(s.Placement.HostRestoredAnywhere)
}

// Mirrors reports whether the root's class is in mirror mode and waits for a consumer.
func (s *Observed) Mirrors() bool {
	return hostclass.Mirrors(s.Class) && hostclass.WaitsForConsumer(s.Class)
}

// LabelledFor returns the cluster ID in the promise's label.
func (s *Observed) LabelledFor() string { return s.Promise.Labels[v1alpha1.LabelClusterID] }

// KeepsPromise reports whether a leaf claim shows that this member had the promise and must
// keep it, because no admin has abandoned it.
func (s *Observed) KeepsPromise() bool {
	return s.Claim != nil && !hostpv.PromiseReleasedBy(s.Promise, s.Member.ClusterID)
}

// FirstPod returns the Pod for which a promise's disk is provisioned, or nil.
func (s *Observed) FirstPod() *corev1.Pod {
	if len(s.Placement.Pods) == 0 {
		return nil
	}
	first := slices.MinFunc(s.Placement.Pods, func(a, b corev1.Pod) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return &first
}

// there describes the member for the placement rules.
func (s *Observed) there() placement.Member {
	m := placement.Member{Member: s.Member, Rules: s.Rules}
	if s.Placement != nil {
		m.Node, m.Inside = s.Placement.Node, &s.Placement.Inside
	}
	return m
}

// Answer reports whether the leaf claim may be created in the member. If the root is bound to a
// volume, the leaf claim is for that volume, regardless of the class. Otherwise, the root's class
// must be available.
func (s *Observed) Answer() placement.Answer {
	q := placement.Request{Namespace: placement.Namespace{Name: s.Root.Namespace}}
	if s.Placement != nil {
		q.Namespace = s.Placement.Namespace
	}
	if s.Name == "" {
		q.Class = s.Class
		if source, has := datasource.Of(s.Root); has {
			q.Source = &source
		}
	}
	return s.there().Answer(q)
}

// Unmade reports whether, as far as Xylem has observed, no member has begun to provision a volume
// for the claim.
func (s *Observed) Unmade() bool { return s.Root.Spec.VolumeName == "" && s.Claim == nil }

// Unrequested reports whether the scheduler has selected a node, but the host's PV controller
// has not requested the volume yet.
func (s *Observed) Unrequested() bool {
	_, requested := s.Root.Annotations[volumehelpers.AnnStorageProvisioner]
	return s.Unmade() && s.Root.Annotations[route.AnnSelectedNode] != "" && !requested
}

// Outlasting reports whether a provisioner may be creating a volume that outlives the leaf claim:
// the class has policy Retain, and the provisioner may have been called.
func (s *Observed) Outlasting() bool {
	class := s.Placement.LeafClass
	if class == nil {
		return true // the class is unknown
	}
	asked := s.Claim.Annotations[route.AnnSelectedNode] != "" || !hostclass.WaitsForConsumer(class)
	return asked && ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete) == corev1.PersistentVolumeReclaimRetain
}

// Requested returns the leaf PV that the root or its successor requests by name.
func (s *Observed) Requested() *corev1.PersistentVolume {
	if s.Leaf != nil {
		return s.Leaf
	}
	return s.Placement.Asked
}

// ReportUnadoptable reports why the claim cannot adopt the requested volume, or nil.
func (s *Observed) ReportUnadoptable() *mirror.Refusal {
	return s.there().Adoptable(s.Named(), s.Class, s.Tenant, s.Requested(), s.Claim != nil)
}
