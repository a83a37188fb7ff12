package proof

import (
	"context"
	"errors"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

var (
	snapshotMember = mirror.Member{Registration: "cluster38", ClusterID: "id38", HostID: "h0"}
)

// clusterWithSnapshots is a reader of at most one VolumeSnapshot and one content.
type clusterWithSnapshots struct {
	client.Reader
	snapshot *snapshotv1.VolumeSnapshot
	content  *snapshotv1.VolumeSnapshotContent
	fails    error
}

func (c clusterWithSnapshots) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	name, _ := options.FieldSelector.RequiresExactMatch("metadata.name")
	switch into := into.(type) {
	case *snapshotv1.VolumeSnapshotList:
		if c.snapshot != nil && c.snapshot.Name == name {
			into.Items = append(into.Items, *c.snapshot)
		}
	case *snapshotv1.VolumeSnapshotContentList:
		if c.content != nil && c.content.Name == name {
			into.Items = append(into.Items, *c.content)
		}
	}
	return c.fails
}

func rootSnapshot(changes ...func(*snapshotv1.VolumeSnapshot)) *snapshotv1.VolumeSnapshot {
	s := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backup", UID: "root-uid"}}
	for _, f := range changes {
		f(s)
	}
	return s
}

func leaf(uid string) *snapshotv1.VolumeSnapshot {
	s := rootSnapshot()
	s.UID = "leaf-uid"
	mirror.Origin{HostID: snapshotMember.HostID, Root: client.ObjectKeyFromObject(s), UID: "root-uid"}.StampLeaf(&s.ObjectMeta)
	if uid != "" {
		s.Annotations[v1alpha1.AnnotationRootUID] = uid
		s.UID = "another-leaf"
	}
	return s
}

func leafContent() *snapshotv1.VolumeSnapshotContent {
	return &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: mirrorsnapshot.ContentName("leaf-uid"), UID: "leaf-content"}}
}

// contentOfHost returns a host content that is being deleted, and is placed in the member.
func contentOfHost(changes ...func(*snapshotv1.VolumeSnapshotContent)) *snapshotv1.VolumeSnapshotContent {
	c := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{
		Name: mirrorsnapshot.ContentName("root-uid"), UID: "host-uid", ResourceVersion: "7", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)},
		Annotations: map[string]string{
			v1alpha1.AnnotationPlacedIn: snapshotMember.ClusterID, v1alpha1.AnnotationLeafSnapshotUID: "leaf-uid", v1alpha1.AttributeLeafUID: "leaf-content",
		},
	}}
	c.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "shop", Name: "backup", UID: "root-uid"}
	for _, f := range changes {
		f(c)
	}
	return c
}

func set(key, value string) func(*snapshotv1.VolumeSnapshotContent) {
	return func(c *snapshotv1.VolumeSnapshotContent) { c.Annotations[key] = value }
}

func newerContent(c *snapshotv1.VolumeSnapshotContent) { c.ResourceVersion = "8" }

func snapshotProver(host, member clusterWithSnapshots, restored error) SnapshotProver {
	return SnapshotProver{Prover{
		Member: snapshotMember, HostLive: host, Live: member, Clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)),
		CheckUnrestored: func(context.Context) error { return restored },
	}}
}

// coversContent checks that evidence covers one release of one version of a host content, if it was proven.
func coversContent(t *testing.T, e DroppableContent, content *snapshotv1.VolumeSnapshotContent, proven bool) {
	t.Helper()
	changed, other := contentOfHost(newerContent), contentOfHost()
	other.UID = "another-uid"
	for _, wrong := range []error{
		SpendEvidence(e, DeleteContent, content), SpendEvidence(e, DropContent, changed), SpendEvidence(e, DropContent, other),
	} {
		if !errors.Is(wrong, ErrUnproven) {
			t.Errorf("the evidence covers another write: %v", wrong)
		}
	}
	if err := SpendEvidence(e, DropContent, content); (err == nil) != proven {
		t.Errorf("proven is %t, and the evidence: %v", proven, err)
	}
	if err := SpendEvidence(e, DropContent, content); !errors.Is(err, ErrUnproven) {
		t.Errorf("the evidence covers a second release: %v", err)
	}
}

func TestSnapshotLeafGone(t *testing.T) {
	for name, tc := range map[string]struct {
		member   clusterWithSnapshots
		restored error
		want     bool
		err      error
	}{
		"nothing is left":                       {want: true},
		"the leaf exists":                       {member: clusterWithSnapshots{snapshot: leaf("")}},
		"the leaf of a later root has its name": {member: clusterWithSnapshots{snapshot: leaf("later-root")}, want: true},
		"the leaf content exists":               {member: clusterWithSnapshots{content: leafContent()}},
		"the member was restored":               {restored: errRestored, err: errRestored},
		"the member does not respond":           {member: clusterWithSnapshots{fails: errDown}, err: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			e, got, err := snapshotProver(clusterWithSnapshots{}, tc.member, tc.restored).ProveSnapshotLeafGone(t.Context(), contentOfHost())
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("SnapshotLeafGone returned %t, %v; want %t, %v", got, err, tc.want, tc.err)
			}
			coversContent(t, e, contentOfHost(), got)
		})
	}
}

func TestSnapshotKept(t *testing.T) {
	deleted := func(s *snapshotv1.VolumeSnapshot) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	for name, tc := range map[string]struct {
		host, member    clusterWithSnapshots
		restored        error
		proven, missing bool
		err             error
	}{
		"the leaf content exists":                        {host: clusterWithSnapshots{content: contentOfHost()}, member: clusterWithSnapshots{content: leafContent()}, proven: true},
		"the root is being deleted":                      {host: clusterWithSnapshots{content: contentOfHost(), snapshot: rootSnapshot(deleted)}, member: clusterWithSnapshots{content: leafContent()}, proven: true},
		"the root exists":                                {host: clusterWithSnapshots{content: contentOfHost(), snapshot: rootSnapshot()}, member: clusterWithSnapshots{content: leafContent()}},
		"the host content has changed":                   {host: clusterWithSnapshots{content: contentOfHost(newerContent)}, member: clusterWithSnapshots{content: leafContent()}},
		"the leaf content is gone":                       {host: clusterWithSnapshots{content: contentOfHost()}, proven: true, missing: true},
		"the leaf content is gone, because of a restore": {host: clusterWithSnapshots{content: contentOfHost()}, restored: errRestored, err: errRestored},
		"the member does not respond":                    {host: clusterWithSnapshots{content: contentOfHost()}, member: clusterWithSnapshots{fails: errDown}, err: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			e, proven, missing, err := snapshotProver(tc.host, tc.member, tc.restored).ProveSnapshotKept(t.Context(), contentOfHost())
			if proven != tc.proven || missing != tc.missing || !errors.Is(err, tc.err) {
				t.Errorf("SnapshotKept returned %t, %t, %v; want %t, %t, %v", proven, missing, err, tc.proven, tc.missing, tc.err)
			}
			coversContent(t, e, contentOfHost(), proven)
		})
	}
}

func TestSnapshotUnplacedOrReleased(t *testing.T) {
	unplaced := set(v1alpha1.AnnotationPlacedIn, "")
	for name, tc := range map[string]struct {
		content, live      *snapshotv1.VolumeSnapshotContent
		unplaced, released bool
	}{
		"placed in no member":           {content: contentOfHost(unplaced), live: contentOfHost(unplaced), unplaced: true},
		"it was placed in the meantime": {content: contentOfHost(unplaced), live: contentOfHost(newerContent)},
		"placed in a member":            {content: contentOfHost(), live: contentOfHost()},
		"an admin abandoned it":         {content: contentOfHost(set(v1alpha1.AnnotationAbandon, "true")), live: contentOfHost(), released: true},
		"its member was deregistered":   {content: contentOfHost(set(v1alpha1.AnnotationClusterGone, "cluster38")), live: contentOfHost(), released: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := snapshotProver(clusterWithSnapshots{content: tc.live}, clusterWithSnapshots{}, nil)
			e, got, err := p.ProveSnapshotUnplaced(t.Context(), tc.content)
			if err != nil || got != tc.unplaced {
				t.Errorf("SnapshotUnplaced returned %t, %v; want %t", got, err, tc.unplaced)
			}
			coversContent(t, e, tc.content, got)
			if e, got = p.DroppableIfReleased(tc.content); got != tc.released {
				t.Errorf("SnapshotReleased returned %t, want %t", got, tc.released)
			}
			coversContent(t, e, tc.content, got)
		})
	}
}
