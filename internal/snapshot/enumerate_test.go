package snapshot

import (
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

const (
	deletes = snapshotv1.VolumeSnapshotContentDelete
	retains = snapshotv1.VolumeSnapshotContentRetain
)

var (
	deleted       = metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	memberInTable = mirror.Member{Registration: "cluster38", ClusterID: "id38", HostID: "host-id"}
	origin        = mirror.Origin{HostID: memberInTable.HostID, Root: types.NamespacedName{Namespace: "shop", Name: "snap"}, UID: "root"}
	policy        = []snapshotv1.DeletionPolicy{deletes, retains}
	problem       = &mirror.Refusal{Reason: "Reason", Message: "message"}
)

func at(deleting bool) *metav1.Time {
	if deleting {
		return &deleted
	}
	return nil
}

func roots() []*snapshotv1.VolumeSnapshot {
	all := []*snapshotv1.VolumeSnapshot{nil}
	for _, deleting := range []bool{false, true} {
		all = append(all, &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "snap", UID: "root", DeletionTimestamp: at(deleting)}})
	}
	return all
}

// flags calls build once for each combination of n conditions.
func flags(n int, build func(func() bool)) {
	for bits := range 1 << n {
		i := 0
		build(func() bool {
			i++
			return bits>>(i-1)&1 == 1
		})
	}
}

func hosts() []*snapshotv1.VolumeSnapshotContent {
	all := []*snapshotv1.VolumeSnapshotContent{nil}
	for _, p := range policy {
		for _, placed := range []string{"", memberInTable.ClusterID} {
			flags(8, func(is func() bool) {
				c := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: mirrorsnapshot.ContentName("root"), UID: "host", DeletionTimestamp: at(is())}}
				c.Spec.Driver, c.Spec.DeletionPolicy = v1alpha1.ProvisionerName, p
				c.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "shop", Name: "snap", UID: "root"}
				annotate := func(key, value string) {
					if is() {
						metav1.SetMetaDataAnnotation(&c.ObjectMeta, key, value)
					}
				}
				if placed != "" {
					metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationPlacedIn, placed)
				}
				annotate(mirrorsnapshot.AnnBeingDeleted, "yes")
				annotate(v1alpha1.AnnotationAbandon, "true")
				annotate(v1alpha1.AnnotationClusterGone, "cluster38")
				annotate(v1alpha1.AnnotationLeafSnapshotUID, "leaf")
				annotate(v1alpha1.AttributeLeafUID, "content")
				annotate(v1alpha1.AttributeHandle, "s-1")
				if is() {
					c.Finalizers = []string{mirrorsnapshot.FinalizerContent}
				}
				all = append(all, c)
			})
		}
	}
	return all
}

func leaves() []*snapshotv1.VolumeSnapshot {
	all := []*snapshotv1.VolumeSnapshot{nil}
	for _, deleting := range []bool{false, true} {
		leaf := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "snap", UID: "leaf", DeletionTimestamp: at(deleting)}}
		origin.StampLeaf(leaf)
		all = append(all, leaf)
	}
	return all
}

func contents() []*snapshotv1.VolumeSnapshotContent {
	all := []*snapshotv1.VolumeSnapshotContent{nil}
	for _, p := range policy {
		for _, own := range []snapshotv1.DeletionPolicy{"", deletes, retains} {
			flags(3, func(is func() bool) {
				c := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: mirrorsnapshot.ContentName("leaf"), UID: "content", DeletionTimestamp: at(is())}}
				c.Spec.DeletionPolicy = p
				c.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "shop", Name: "snap", UID: "leaf"}
				c.Spec.Source.VolumeHandle = ptr.To("d-1")
				if own != "" {
					origin.StampLeaf(c)
					metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationDeletionPolicy, string(own))
				}
				if is() {
					c.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: ptr.To("s-1"), ReadyToUse: ptr.To(is())}
				}
				all = append(all, c)
			})
		}
	}
	return all
}

// wrong explains why a plan is wrong. It returns "" if the plan is correct.
func wrong(s *Observed, p Plan) string {
	record := s.LeafRecord()
	asked := s.Host != nil && s.Host.DeletionTimestamp != nil && s.Host.Spec.DeletionPolicy == deletes && mirrorsnapshot.IsSnapshotBeingDeleted(s.Host) && !mirrorsnapshot.IsAbandonedSnapshot(s.Host) && s.HasRootEnded()
	own := s.Content == nil || s.IsContentStamped() && mirrorsnapshot.MemberDeletionPolicy(s.Content) == deletes
	if s.OtherContent != nil {
		switch p.Step {
		case SetDelete, DeleteContent, DeleteLeaf, DeleteKept, DropHost, DropKept:
			return "a snapshot ends although a different one has its name (I2)"
		default:
		}
		if p.Step == None && p.Report == nil && s.Host.DeletionTimestamp != nil && p.Owner == RootSnapshot && p.Phase != Ending {
			return "a snapshot waits for its name without reporting a reason (I6)"
		}
	}
	if why := neglected(s, p, asked && own); why != "" {
		return why
	}
	if s.LeafLostStamp && (p.Step == SetDelete || p.Step == DeleteContent || p.Step == DropHost) {
		return "a snapshot is destroyed although its leaf has lost its stamp (I4)"
	}
	switch p.Step {
	case SetDelete, DeleteContent:
		if !asked || !own || record.Content != s.Content.UID {
			return "a leaf content is destroyed without a deletion request or a record (I2)"
		}
	case DeleteLeaf:
		if !asked || !own || s.Content != nil && record.Content != s.Content.UID {
			return "a leaf is deleted although this may destroy a snapshot that must be kept (I2)"
		}
	case DeleteKept, DeleteOrphaned:
		if !mirrorsnapshot.IsContentRetained(s.Content) || !s.HasRootEnded() {
			return "a leaf is deleted although this destroys its snapshot, or its root exists (I2)"
		}
		if p.Step == DeleteOrphaned && s.Host != nil {
			return "a leaf that the host represents is treated as an orphan (I2)"
		}
	case DropHost:
		if !asked || s.Leaf != nil || s.Content != nil {
			return "the host releases a snapshot that has leaves (I1)"
		}
	case DropKept:
		if s.Leaf != nil || s.Content != nil && s.SecuredContent() != nil {
			return "the host releases a snapshot that is not kept (I1, I2)"
		}
	case Release:
		if mirrorsnapshot.ContentPlacedIn(s.Host) != "" || !s.HasRootEnded() {
			return "the host releases a snapshot that a member may have (I1)"
		}
	case Abandon:
		if !s.HasRootEnded() || !s.IsSnapshotReleased() {
			return "a snapshot is abandoned without a request (I1)"
		}
	case CreateLeaf:
		if record.Snapshot != "" || record.Content != "" || s.Leaf != nil || s.Content != nil || s.HasRootEnded() || mirrorsnapshot.ContentPlacedIn(s.Host) != memberInTable.ClusterID {
			return "Xylem takes a second snapshot, or a snapshot that is not placed in this member (I3)"
		}
	case Place:
		if s.Leaf != nil || s.Content != nil || s.HasRootEnded() || s.Host.DeletionTimestamp != nil {
			return "a snapshot is placed although it has a leaf or has ended (I3)"
		}
	case Secure:
		if s.SecuredContent() == nil {
			return "a leaf content is written although it is up to date (I5)"
		}
		if asked && s.Content != nil && s.IsContentStamped() && own {
			return "a leaf content that is being destroyed is retained (I5)"
		}
	case RecordContent:
		if s.Content == nil || s.IsContentRecorded() {
			return "a host content is written although it already records the leaf content (I5)"
		}
		if !s.IsContentStamped() {
			return "a leaf content is recorded before it is stamped (I2)"
		}
	case RecordLeaf:
		if s.Leaf == nil || record.Snapshot != "" {
			return "a host content is written although it already records the leaf (I5)"
		}
	default:
	}
	switch {
	case p.Owner == "" && p.Phase != Foreign:
		return "no controller owns the phase (I6)"
	case p.Owner == HostSnapshot && s.Host == nil:
		return "host_snapshot owns a snapshot that it does not observe (I6)"
	case p.Step != None && !s.Linked && p.Owner != HostSnapshot:
		return "a member's step is planned without observing the member (I6)"
	}
	return ""
}

// neglected explains why nothing is done, or reported, for a snapshot in a member. It returns "" if
// nothing needs to be done.
func neglected(s *Observed, p Plan, destroyed bool) string {
	if s.Host == nil || p.Step != None || p.Report != nil || mirrorsnapshot.ContentPlacedIn(s.Host) == "" || s.Unavailable != nil || s.IsSnapshotReleased() || s.OtherContent != nil {
		return ""
	}
	record := s.LeafRecord()
	switch {
	case !destroyed && s.Content != nil && mirrorsnapshot.HasSnapshotBegun(s.Content) && s.SecuredContent() != nil:
		return "a leaf content that must be kept has policy Delete, or no stamp, and nobody changes this (I2)"
	case s.Root != nil && (s.Content == nil && record.Content != "" || s.Leaf == nil && record.Snapshot != "") && p.Phase != Destroying && p.Phase != Keeping:
		return "a snapshot is lost, but nothing is reported (I6)"
	}
	return ""
}

// For every combination of objects, the plan has an owner and does not destroy data without a
// reason. host_snapshot, which does not observe the member, finds the same rows for its own steps.
func TestEveryCombination(t *testing.T) {
	steps, seen, failures := map[Step]int{}, 0, 0
	for _, host := range hosts() {
		for _, root := range roots() {
			for _, leaf := range leaves() {
				for _, content := range contents() {
					flags(6, func(is func() bool) {
						s := &Observed{Member: memberInTable, Linked: true, UID: "root", Host: host, Root: root, Origin: origin, Leaf: leaf, Content: content}
						if host == nil && leaf == nil && content == nil {
							return
						}
						// Combinations that are impossible, or that only repeat another one, are
						// skipped.
						taken := host != nil && mirrorsnapshot.ContentPlacedIn(host) != ""
						recorded := host != nil && mirrorsnapshot.ContentRecordOf(host).Content != ""
						if is() {
							if leaf != nil || content != nil {
								return
							}
							s.Unavailable = problem
						}
						if is() {
							s.Unmet = problem
						}
						if s.NameTaken, s.EarlierLeafExists = is(), is(); leaf != nil && (s.NameTaken || s.EarlierLeafExists) {
							return
						}
						if s.LeafLostStamp = is(); s.LeafLostStamp && (leaf != nil || s.NameTaken || s.EarlierLeafExists || host == nil || mirrorsnapshot.ContentRecordOf(host).Snapshot == "") {
							return
						}
						if is() {
							if host == nil || taken {
								return
							}
							s.Invalid = problem
						}
						if is() {
							if !recorded || content == nil || s.NameTaken || s.EarlierLeafExists || s.Unmet != nil {
								return // these conditions are observed only before the content exists
							}
							s.Content, s.OtherContent = nil, s.Content
						}
						if host != nil && !taken && (leaf != nil || s.Content != nil) {
							return // without a placement, the leaves belong to another host content
						}
						seen++
						p := NextPlan(s)
						steps[p.Step]++
						if why := wrong(s, p); why != "" {
							if failures++; failures <= 10 {
								t.Errorf("%s: %s %s by %s: %s", why, p.Phase, p.Step, p.Owner, describe(s))
							}
						}
						for _, why := range []string{disagree(s, p), quiet(s, p)} {
							if why == "" {
								continue
							}
							if failures++; failures <= 10 {
								t.Errorf("%s: %s", why, describe(s))
							}
						}
					})
				}
			}
		}
	}
	t.Logf("%d observations, %d wrong; steps: %v", seen, failures, steps)
}

// disagree explains how the plans of host_snapshot and the member's controllers contradict each
// other. It returns "" if they agree.
func disagree(s *Observed, p Plan) string {
	if s.Host == nil {
		return ""
	}
	alone := NextPlan(&Observed{Member: s.Member, UID: s.UID, Host: s.Host, Root: s.Root, Invalid: s.Invalid})
	if (alone.Owner == HostSnapshot) != (p.Owner == HostSnapshot) || p.Owner == HostSnapshot && alone.Step != p.Step {
		return "host_snapshot plans " + string(alone.Step) + " by " + string(alone.Owner) + ", but the member's controllers plan " + string(p.Step) + " by " + string(p.Owner) + " (I6)"
	}
	return ""
}

// quiet explains how the plan for a silent snapshotter is wrong, or returns "". Silence is not
// evidence, so only the report of a snapshot that is being taken may differ.
func quiet(s *Observed, p Plan) string {
	silent := *s
	silent.Silent = problem
	after := NextPlan(&silent)
	switch {
	case after.Step != p.Step || after.Phase != p.Phase || after.Owner != p.Owner:
		return "a silent snapshotter changes the plan from " + string(p.Step) + " to " + string(after.Step) + " (I2)"
	case (p.Phase == Taking || p.Phase == Placing) && p.Step == None && s.Linked && after.Report == nil:
		return "a snapshot waits for a silent snapshotter, or an earlier leaf, without reporting it (I6)"
	case p.Phase != Taking && p.Phase != Placing && ((after.Report == nil) != (p.Report == nil) || p.Report != nil && *after.Report != *p.Report):
		return "a silent snapshotter hides another report (I6)"
	}
	return ""
}

func describe(s *Observed) string {
	text := "unavailable"
	if s.Unavailable == nil {
		text = ""
	}
	if s.Host != nil {
		text += "; host " + string(s.Host.Spec.DeletionPolicy)
		for key, value := range s.Host.Annotations {
			text += " " + key + "=" + value
		}
		if s.Host.DeletionTimestamp != nil {
			text += " deleting"
		}
	}
	if s.Root != nil {
		text += "; root"
		if s.Root.DeletionTimestamp != nil {
			text += " deleting"
		}
	}
	if s.Leaf != nil {
		text += "; leaf"
	}
	if s.Content != nil {
		text += "; content " + string(s.Content.Spec.DeletionPolicy) + " own " + s.Content.Annotations[v1alpha1.AnnotationDeletionPolicy]
	}
	return text
}
