package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume"
)

// choices decodes a number into a sequence of choices.
type choices struct{ rest, total int }

func choose[T any](c *choices, from ...T) T {
	chosen := from[c.rest%len(from)]
	c.rest /= len(from)
	c.total *= len(from)
	return chosen
}

// claimObserved returns the n-th observation of a claim without a volume in the member, and the
// number of observations.
func claimObserved(n int) (*volume.Observed, int) {
	c := &choices{n, 1}
	s := &volume.Observed{Member: member, Placement: &volume.Placement{}}
	s.Root = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "root", Annotations: map[string]string{}}}
	s.Root.DeletionTimestamp = at(choose(c, false, true))
	s.Root.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	for annotation, value := range map[string]string{
		v1alpha1.AnnotationPlacedIn: choose(c, "", member.ClusterID, "id39"),
		route.AnnSelectedNode:       choose(c, "", member.NodeName, "kosmos-cluster39"),
	} {
		if value != "" {
			s.Root.Annotations[annotation] = value
		}
	}
	s.Class = choose(c, nil, classOf("other", false, v1alpha1.ProvisioningMirror), classOf(v1alpha1.ProvisionerName, true, v1alpha1.ProvisioningMirror),
		classOf(v1alpha1.ProvisionerName, false, v1alpha1.ProvisioningMirror), classOf(v1alpha1.ProvisionerName, false, v1alpha1.ProvisioningPromise))
	s.Placement.MemberObjects = choose(c, placement.MemberObjects{}, placement.MemberObjects{NamespaceRejection: mirror.NewRefusal(v1alpha1.ReasonNamespaceRefused, "no")},
		placement.MemberObjects{Namespace: namespaceOf(member.HostID)}, placement.MemberObjects{Namespace: namespaceOf("another")})
	s.Placement.MemberObjects.Classes = choose(c, []string{"disk"}, nil)
	leafClaimOf(c, s)
	boundTo(c, s)
	createdFrom(c, s)
	return s, c.total
}

// createdFrom sets the claim's data source, its record, and its objects in the member.
func createdFrom(c *choices, s *volume.Observed) {
	kind := choose(c, "none", "none", "ready", "not ready", "elsewhere", "unrecorded", "no leaf", "another leaf", "snapshot", "no leaf snapshot", "another snapshot", "another snapshot's handle", "snapshot bound to another content", "unread snapshots", "populator", "unlisted")
	asked := choose(c, "equal", "nothing", "another")
	if kind == "none" {
		return
	}
	of := mirror.DataSource{Kind: "PersistentVolumeClaim", Name: "golden"}
	if kind == "populator" || kind == "unlisted" {
		of = mirror.DataSource{Group: "example.com", Kind: "Image", Name: "golden"}
	}
	if kind == "populator" {
		s.Rules = placement.RulesOfRegistration(&v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{Storage: v1alpha1.StorageSpec{
			DataSources: []v1alpha1.DataSourceKind{{APIGroup: "example.com", Kind: "Image"}}}}})
	}
	if strings.Contains(kind, "snapshot") {
		of.Group, of.Kind = mirror.SnapshotGroup, mirror.SnapshotKind
	}
	reference := func(name string) *corev1.TypedObjectReference {
		return &corev1.TypedObjectReference{APIGroup: ptr.To(of.Group), Kind: of.Kind, Name: name}
	}
	s.Root.Spec.DataSourceRef = reference(of.Name)
	if s.LeafClaim != nil {
		s.LeafClaim.Annotations = map[string]string{v1alpha1.AnnotationSource: "golden-root"}
		switch asked {
		case "equal":
			s.LeafClaim.Spec.DataSourceRef = reference(of.Name)
		case "another":
			s.LeafClaim.Spec.DataSourceRef = reference("another")
		}
	}
	if s.Root.Spec.VolumeName != "" && s.Promise == nil {
		return
	}
	from := &volume.SourceInMember{Of: of}
	s.Placement.Source = from
	if !of.IsInOneMember() {
		return
	}
	from.At = placement.CopyLocation{DataSourceRecord: mirror.DataSourceRecord{ClusterID: member.ClusterID, UID: "golden-root"}, LeafVolume: "golden-pv", LeafUID: "golden-pv-uid"}
	from.Claim, from.Origin, from.Volume = &corev1.PersistentVolumeClaim{}, originOf("golden-root"), leafPV()
	from.Claim.Spec.VolumeName, from.Claim.Status.Phase, from.Volume.UID = "golden-pv", corev1.ClaimBound, "golden-pv-uid"
	switch kind {
	case "not ready":
		from.At = placement.CopyLocation{Refusal: &mirror.Refusal{Reason: v1alpha1.ReasonSourceNotReady, Message: "not yet"}}
	case "elsewhere":
		from.At.ClusterID = "id39"
	case "no leaf":
		from.Claim = nil
	case "another leaf":
		from.Origin = originOf("another")
		s.SourceNameReused = true
	}
	if of.IsSnapshot() {
		snapshotFor(s, from, kind)
	}
	if from.At.Refusal == nil && kind != "unrecorded" {
		s.Root.Annotations[v1alpha1.AnnotationSource] = from.At.AnnotationValue()
	}
}

// snapshotFor returns a data source that is a snapshot, and that is ready in the host.
func snapshotFor(s *volume.Observed, from *volume.SourceInMember, kind string) {
	from.Claim, from.Volume, from.At.LeafVolume, from.At.LeafUID = nil, nil, "", ""
	from.At.LeafSnapshot, from.At.LeafContent, from.At.LeafHandle = "golden-leaf", "golden-content", "s-1"
	from.Snapshot = &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{UID: "golden-leaf"},
		Status:     &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: ptr.To("snapcontent-golden-leaf")},
	}
	from.Content = &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: "snapcontent-golden-leaf", UID: "golden-content"},
		Spec:       snapshotv1.VolumeSnapshotContentSpec{Driver: "disk.example.com"},
		Status:     &snapshotv1.VolumeSnapshotContentStatus{ReadyToUse: ptr.To(true), SnapshotHandle: ptr.To("s-1")},
	}
	switch kind {
	case "no leaf snapshot":
		from.Snapshot, from.Content = nil, nil
	case "another snapshot":
		from.Origin = originOf("another")
		s.SourceNameReused = true
	case "another snapshot's handle":
		from.Content.Status.SnapshotHandle = ptr.To("s-2")
	case "snapshot bound to another content":
		from.Snapshot.Status.BoundVolumeSnapshotContentName = ptr.To("imported")
	case "unread snapshots":
		from.Snapshot, from.Content, from.Origin = nil, nil, mirror.Origin{}
		from.UnreadableCause = &mirror.Refusal{Reason: v1alpha1.ReasonSnapshotsUnsupported, Message: "not served"}
	}
}

// notFromSource returns why the leaf claim's volume would be empty, or a copy of another source, or
// "" if it would be a copy of the claim's data source.
func notFromSource(s *volume.Observed) string {
	source, has := mirror.DataSourceOf(s.Root)
	if !has || s.Root.Spec.VolumeName != "" && s.Promise == nil {
		return ""
	}
	leaf, refusal := volume.LeafClaim(s)
	from := s.Placement.Source
	switch record, recorded := mirror.DataSourceRecordOf(s.Root); {
	case refusal != nil || !mirror.SameDataSource(s.Root, leaf):
		return "a leaf claim is created without the data source, so its disk is empty"
	case !source.IsInOneMember():
		return ""
	case !recorded || from.At.Refusal != nil || record.ClusterID != member.ClusterID:
		return "a leaf claim is created in a member that lacks its data source"
	case from.Origin.UID != record.UID,
		source.IsClaim() && (from.Claim == nil || from.Claim.Status.Phase != corev1.ClaimBound),
		source.IsSnapshot() && (from.Snapshot == nil || from.Content == nil || from.UnreadableCause != nil),
		source.IsSnapshot() && (*from.Content.Status.SnapshotHandle != "s-1" || *from.Snapshot.Status.BoundVolumeSnapshotContentName != from.Content.Name):
		return "a leaf claim is created from the data of another source"
	}
	return ""
}

func classOf(provisioner string, immediate bool, mode string) *storagev1.StorageClass {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: provisioner, Parameters: map[string]string{v1alpha1.ParameterProvisioning: mode}}
	if !immediate {
		class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	return class
}

func namespaceOf(host string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace, Labels: map[string]string{v1alpha1.LabelHost: host}}}
}

// leafClaimOf sets the leaf claim, the volume that was provisioned for it, the last restore of the
// host, and the leaf claims in other members.
func leafClaimOf(c *choices, s *volume.Observed) {
	name, there := choose(c, "", "pv-1"), choose(c, false, true, true)
	leafDeleting, provisioned := choose(c, false, false, true), choose(c, false, false, true)
	if there {
		s.LeafClaim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "leaf-claim", DeletionTimestamp: at(leafDeleting), CreationTimestamp: deleted}}
		s.LeafClaim.Spec.VolumeName, s.Origin = name, originOf("root")
		s.Placement.ProvisionedVolume = leafPV()
		s.Placement.ProvisionedVolume.DeletionTimestamp = at(provisioned)
	}
	s.Placement.HostRestored = choose(c, time.Time{}, deleted.Add(-time.Minute), deleted.Add(time.Minute))
	s.Placement.HostRestoreUnconfirmed = choose(c, false, true) && !s.Placement.HostRestored.IsZero()
	s.Placement.HostRestoredAnywhere = choose(c, s.Placement.HostRestored, deleted.Add(time.Minute))
	s.Placement.Counterparts = choose(c, proof.Counterparts{}, proof.Counterparts{Found: []string{"cluster39"}}, proof.Counterparts{Unchecked: []string{"cluster39"}}, proof.Counterparts{Found: []string{"cluster39"}, Unchecked: []string{"cluster40"}})
}

// boundTo sets the volume that the claim is bound to, or that it requests.
func boundTo(c *choices, s *volume.Observed) {
	pods, label := choose(c, nil, []corev1.Pod{{}}), choose(c, "", member.ClusterID, "id39")
	rivals, away := choose(c, nil, []string{"cluster39"}), choose(c, false, true)
	switch p := s.Placement; choose(c, "nothing", "deleted mirror", "promise", "freed promise", "lost promise", "another", "asks") {
	case "deleted mirror":
		p.UnboundMirror = hostPV.DeepCopy()
		p.UnboundMirror.DeletionTimestamp = &deleted
	case "promise":
		s.Promise, p.PromisePods = hostpv.NewPromiseFor(s.Root, classOf(v1alpha1.ProvisionerName, false, v1alpha1.ProvisioningPromise)), pods
		s.Root.Spec.VolumeName = s.Promise.Name
		if label != "" {
			s.Promise.Labels = map[string]string{v1alpha1.LabelClusterID: label}
		}
	case "freed promise":
		s.Promise, p.PromisePods = hostpv.ReleasePromise(hostpv.NewPromiseFor(s.Root, classOf(v1alpha1.ProvisionerName, false, v1alpha1.ProvisioningPromise)), s.Root, member.ClusterID), pods
		s.Root.Spec.VolumeName = s.Promise.Name
	case "lost promise":
		s.Root.Spec.VolumeName, s.PromiseLost = hostpv.PromiseName("root"), true
	case "another":
		s.Root.Spec.VolumeName, p.BoundOutsideMember = "pv-9", away
	case "asks":
		s.Root.Spec.VolumeName, p.RequestedVolume, p.RivalMembers, s.Tenant = "pv-1", leafPV(), rivals, "tenant"
	}
}

// wrongForClaim returns why a plan for a claim without a volume is wrong, or "".
func wrongForClaim(s *volume.Observed, p Plan) string {
	root, here := s.Root, s.PlacedClusterID() == member.ClusterID
	switch p.Step {
	case None:
		if p.Owner == "" {
			return "no controller reports the state"
		}
	case Place:
		if s.PlacedClusterID() != "" {
			return "a claim that is already placed is placed again (I3)"
		}
		if isTerminating(root) && s.LeafClaim == nil && s.Placement.RequestedVolume == nil {
			return "a claim that is being deleted is placed"
		}
		if s.PlacementMayBeForgotten() && s.Placement.Counterparts.MayExist() {
			return "a claim that another member has, or may have, is placed here (I3)"
		}
	case CreateClaim:
		switch {
		case !here:
			return "a leaf claim is created before the placement is recorded (I3)"
		case s.LeafClaim != nil:
			return "a second leaf claim is created (I3)"
		case s.PlacementMayBeForgotten() && s.Placement.Counterparts.MayExist():
			return "a leaf claim is created for a claim that another member has, or may have (I3)"
		case isTerminating(root):
			return "a leaf claim is created for a claim that is being deleted"
		case root.Spec.VolumeName != "" && s.Promise == nil:
			return "a leaf claim is created for a claim that has a volume (I3)"
		case root.Spec.VolumeName == "" && !s.MemberSelected():
			return "a leaf claim is created in a member that was not selected"
		case notFromSource(s) != "":
			return notFromSource(s)
		case s.Placement.MemberObjects.Namespace == nil || s.Placement.MemberObjects.Namespace.Labels[v1alpha1.LabelHost] != member.HostID:
			return "a leaf claim is created in a foreign namespace (I4)"
		}
	case Withdraw:
		if s.LeafClaim == nil || s.LeafClaim.Spec.VolumeName != "" || isTerminating(s.LeafClaim) {
			return "a leaf claim is withdrawn although it does not exist, or has a volume (I2)"
		}
	case Unplace:
		// Ignore leftover objects of an abandoned promise, because LeafClaimGone checks them.
		if !here || s.LeafClaim != nil && (s.Promise == nil || s.MustKeepPromise()) {
			return "a placement is removed although it belongs to another member, or its leaf still exists (I3)"
		}
	case Unselect:
		if !s.MemberSelected() || s.LeafClaim != nil || s.PlacedClusterID() != "" && !here || p.Report == nil {
			return "a selection is removed although it names another member, or without a report"
		}
		if s.PinnedBySource() {
			return "a selection is removed although the controller source would restore it (I5)"
		}
	case SelectNode:
		if !s.MemberSelected() || s.LeafClaim == nil || s.LeafClaim.Spec.VolumeName != "" || s.Promise != nil || isTerminating(s.Root) || s.PlacedClusterID() != "" && !here || volume.ReportLeafClaimRefused(s) != nil {
			return "a node is selected for a leaf claim that does not exist, has a volume, belongs to another member, or is refused"
		}
	case Label:
		if !here || s.PromiseClusterID() != "" {
			return "a promise is labeled although it is placed in another member (I3)"
		}
	case Unlabel:
		if s.PromiseClusterID() != member.ClusterID || s.LeafClaim != nil {
			return "a promise's labels are removed although another member has it, or some of its objects are left (I3)"
		}
	default:
		return "not a step for a claim without a volume"
	}
	if p.Owner != RootPVC {
		return "a controller other than root_pvc acts on a claim"
	}
	return silent(s, p)
}

// silent returns "" if a controller reports why the claim waits. Otherwise, it returns what is not
// reported (I6). It ignores waits that end without a user's action.
func silent(s *volume.Observed, p Plan) string {
	if p.Step != None || p.Report != nil || isTerminating(s.Root) || s.LeafClaim != nil && isTerminating(s.LeafClaim) {
		return ""
	}
	wanted := s.MemberSelected() && s.Root.Spec.VolumeName == "" && s.ClassMirrorsAndWaits() || s.Promise != nil && len(s.Placement.PromisePods) > 0
	foreign := s.Placement.MemberObjects.NamespaceRejection != nil || s.Placement.MemberObjects.Namespace != nil && s.Placement.MemberObjects.Namespace.Labels[v1alpha1.LabelHost] != member.HostID
	switch {
	case s.SourceNotReadyHere() && s.Promise == nil && s.PlacedClusterID() == "":
		return "" // host_claim reports it
	case wanted && s.LeafClaim != nil && s.DataSourceDiffers() && s.LeafClaim.Spec.VolumeName != "" && s.PlacedClusterID() == member.ClusterID && (s.Promise == nil || s.PromiseClusterID() == member.ClusterID):
		return "a volume that is a copy of another source is not reported (I6)"
	case wanted && s.PlacedClusterID() == "id39":
		return "a claim waits for another member, and no controller reports it (I6)"
	case wanted && s.LeafClaim == nil && foreign && (s.Promise == nil || s.PlacedClusterID() == member.ClusterID && s.PromiseClusterID() == member.ClusterID):
		return "a claim waits for a foreign or rejected namespace, and no controller reports it (I6)"
	case s.Root.Spec.VolumeName == "pv-9" && s.LeafClaim != nil && s.LeafClaim.Spec.VolumeName != "":
		return "a claim's second volume is not reported (I3)"
	}
	return ""
}

// For every combination of objects, the plan for a claim without a volume never creates a second
// volume, and reports to the user why the claim waits.
func TestEveryClaim(t *testing.T) {
	_, total := claimObserved(0)
	stride := 1
	if !*all {
		stride = 4*total/sample | 1
	}
	counted, failures, seen := map[Step]int{}, 0, 0
	check := func(n int, s *volume.Observed) {
		p := NextPlan(s)
		counted[p.Step]++
		seen++
		if why := wrongForClaim(s, p); why != "" {
			if failures++; failures <= 10 {
				t.Errorf("combination %d: %s: %s %s by %s: %s", n, why, p.Phase, p.Step, p.Owner, describeClaim(s))
			}
		}
	}
	for n := 0; n < total; n += stride {
		s, _ := claimObserved(n)
		check(n, s)
		if s.LeafClaim != nil && s.Root.Spec.VolumeName == "" {
			// Too few combinations are of leaf claims that wait for a consumer.
			s.Placement.Attempt.LacksConsumer = true
			s.Root.Annotations[route.AnnSelectedNode], s.Root.Annotations[v1alpha1.AnnotationPlacedIn] = member.NodeName, member.ClusterID
			check(n, s)
		}
	}
	for _, step := range []Step{Place, Unplace, Unselect, SelectNode, Label, Unlabel, CreateClaim, Withdraw} {
		if counted[step] == 0 {
			t.Errorf("step %s is never taken", step)
		}
	}
	t.Logf("%d of %d observations, %d wrong; steps: %v", seen, total, failures, counted)
}

func describeClaim(s *volume.Observed) string {
	text := fmt.Sprintf("source %v from %+v; root names %q, annotations %v, deleting %t; bound away %t, asks %t, Pods %d, rivals %v, host restored %s, unconfirmed %t, anywhere %s", s.Root.Spec.DataSourceRef, s.Placement.Source, s.Root.Spec.VolumeName, s.Root.Annotations, isTerminating(s.Root),
		s.Placement.BoundOutsideMember, s.Placement.RequestedVolume != nil, len(s.Placement.PromisePods), s.Placement.RivalMembers, s.Placement.HostRestored, s.Placement.HostRestoreUnconfirmed, s.Placement.HostRestoredAnywhere)
	if s.Promise != nil {
		text += fmt.Sprintf("; promise labels %v annotations %v", s.Promise.Labels, s.Promise.Annotations)
	}
	if s.LeafClaim != nil {
		text += fmt.Sprintf("; leaf claim names %q, deleting %t", s.LeafClaim.Spec.VolumeName, isTerminating(s.LeafClaim))
	}
	return text
}
