package snapshots

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
	"github.com/xylem-io/xylem/internal/proof"
)

var (
	here        = mirror.Member{Registration: "cluster38", ClusterID: "id38", HostID: "h0"}
	errDown     = errors.New("connection refused")
	errRestored = errors.New("the member was restored")
)

// cluster is a reader of at most one VolumeSnapshot and one content.
type cluster struct {
	client.Reader
	snapshot *snapshotv1.VolumeSnapshot
	content  *snapshotv1.VolumeSnapshotContent
	fails    error
}

func (c cluster) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
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

func root(changes ...func(*snapshotv1.VolumeSnapshot)) *snapshotv1.VolumeSnapshot {
	s := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backup", UID: "root-uid"}}
	for _, f := range changes {
		f(s)
	}
	return s
}

func leaf(uid string) *snapshotv1.VolumeSnapshot {
	s := root()
	s.UID = "leaf-uid"
	mirror.Origin{HostID: here.HostID, Root: client.ObjectKeyFromObject(s), UID: "root-uid"}.Stamp(&s.ObjectMeta)
	if uid != "" {
		s.Annotations[v1alpha1.AnnotationRootUID] = uid
		s.UID = "another-leaf"
	}
	return s
}

func leafContent() *snapshotv1.VolumeSnapshotContent {
	return &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: mirrorsnapshot.ContentName("leaf-uid"), UID: "leaf-content"}}
}

// host returns a host content that is being deleted, and is placed in the member.
func host(changes ...func(*snapshotv1.VolumeSnapshotContent)) *snapshotv1.VolumeSnapshotContent {
	c := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{
		Name: mirrorsnapshot.ContentName("root-uid"), UID: "host-uid", ResourceVersion: "7", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)},
		Annotations: map[string]string{
			v1alpha1.AnnotationPlacedIn: here.ClusterID, v1alpha1.AnnotationLeafSnapshotUID: "leaf-uid", v1alpha1.AttributeLeafUID: "leaf-content",
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

func newer(c *snapshotv1.VolumeSnapshotContent) { c.ResourceVersion = "8" }

func prover(host, member cluster, restored error) Prover {
	return Prover{proof.Prover{
		Member: here, HostLive: host, Live: member, Clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)),
		Unrestored: func(context.Context) error { return restored },
	}}
}

// covers checks that evidence covers one release of one version of a host content, if it was proven.
func covers(t *testing.T, e DroppableContent, content *snapshotv1.VolumeSnapshotContent, proven bool) {
	t.Helper()
	changed, other := host(newer), host()
	other.UID = "another-uid"
	for _, wrong := range []error{
		proof.Covers(e, proof.DeleteContent, content), proof.Covers(e, proof.DropContent, changed), proof.Covers(e, proof.DropContent, other),
	} {
		if !errors.Is(wrong, proof.ErrUnproven) {
			t.Errorf("the evidence covers another write: %v", wrong)
		}
	}
	if err := proof.Covers(e, proof.DropContent, content); (err == nil) != proven {
		t.Errorf("proven is %t, and the evidence: %v", proven, err)
	}
	if err := proof.Covers(e, proof.DropContent, content); !errors.Is(err, proof.ErrUnproven) {
		t.Errorf("the evidence covers a second release: %v", err)
	}
}

func TestSnapshotLeafGone(t *testing.T) {
	for name, tc := range map[string]struct {
		member   cluster
		restored error
		want     bool
		err      error
	}{
		"nothing is left":                       {want: true},
		"the leaf exists":                       {member: cluster{snapshot: leaf("")}},
		"the leaf of a later root has its name": {member: cluster{snapshot: leaf("later-root")}, want: true},
		"the leaf content exists":               {member: cluster{content: leafContent()}},
		"the member was restored":               {restored: errRestored, err: errRestored},
		"the member does not respond":           {member: cluster{fails: errDown}, err: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			e, got, err := prover(cluster{}, tc.member, tc.restored).SnapshotLeafGone(t.Context(), host())
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("SnapshotLeafGone returned %t, %v; want %t, %v", got, err, tc.want, tc.err)
			}
			covers(t, e, host(), got)
		})
	}
}

func TestSnapshotKept(t *testing.T) {
	deleted := func(s *snapshotv1.VolumeSnapshot) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	for name, tc := range map[string]struct {
		host, member    cluster
		restored        error
		proven, missing bool
		err             error
	}{
		"the leaf content exists":                        {host: cluster{content: host()}, member: cluster{content: leafContent()}, proven: true},
		"the root is being deleted":                      {host: cluster{content: host(), snapshot: root(deleted)}, member: cluster{content: leafContent()}, proven: true},
		"the root exists":                                {host: cluster{content: host(), snapshot: root()}, member: cluster{content: leafContent()}},
		"the host content has changed":                   {host: cluster{content: host(newer)}, member: cluster{content: leafContent()}},
		"the leaf content is gone":                       {host: cluster{content: host()}, proven: true, missing: true},
		"the leaf content is gone, because of a restore": {host: cluster{content: host()}, restored: errRestored, err: errRestored},
		"the member does not respond":                    {host: cluster{content: host()}, member: cluster{fails: errDown}, err: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			e, proven, missing, err := prover(tc.host, tc.member, tc.restored).SnapshotKept(t.Context(), host())
			if proven != tc.proven || missing != tc.missing || !errors.Is(err, tc.err) {
				t.Errorf("SnapshotKept returned %t, %t, %v; want %t, %t, %v", proven, missing, err, tc.proven, tc.missing, tc.err)
			}
			covers(t, e, host(), proven)
		})
	}
}

func TestSnapshotUnplacedOrReleased(t *testing.T) {
	unplaced := set(v1alpha1.AnnotationPlacedIn, "")
	for name, tc := range map[string]struct {
		content, live      *snapshotv1.VolumeSnapshotContent
		unplaced, released bool
	}{
		"placed in no member":           {content: host(unplaced), live: host(unplaced), unplaced: true},
		"it was placed in the meantime": {content: host(unplaced), live: host(newer)},
		"placed in a member":            {content: host(), live: host()},
		"an admin abandoned it":         {content: host(set(v1alpha1.AnnotationAbandon, "true")), live: host(), released: true},
		"its member was deregistered":   {content: host(set(v1alpha1.AnnotationClusterGone, "cluster38")), live: host(), released: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := prover(cluster{content: tc.live}, cluster{}, nil)
			e, got, err := p.SnapshotUnplaced(t.Context(), tc.content)
			if err != nil || got != tc.unplaced {
				t.Errorf("SnapshotUnplaced returned %t, %v; want %t", got, err, tc.unplaced)
			}
			covers(t, e, tc.content, got)
			if e, got = p.SnapshotReleased(tc.content); got != tc.released {
				t.Errorf("SnapshotReleased returned %t, want %t", got, tc.released)
			}
			covers(t, e, tc.content, got)
		})
	}
}
