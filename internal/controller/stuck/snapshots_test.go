package stuck

import (
	"context"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// The csi-snapshotter reports a failed deletion only in an event. Events from before the deletion are
// about something else.
func TestOfContent(t *testing.T) {
	warned := func(after time.Duration) *corev1.Event {
		return &corev1.Event{Message: "Failed to delete snapshot", LastTimestamp: metav1.NewTime(now.Add(after))}
	}
	const silent = `snapshot "snap-1" still exists (policy Delete), and its csi-snapshotter reports nothing. Check that the snapshot-controller and the csi-snapshotter are running`
	for name, tc := range map[string]struct {
		stays      bool
		finalizers []string
		failed     *snapshotv1.VolumeSnapshotError
		warning    *corev1.Event
		want       string
	}{
		"no report":                          {want: silent},
		"an error in the status":             {failed: &snapshotv1.VolumeSnapshotError{Message: ptr.To("the disk is busy")}, warning: warned(time.Minute), want: `the driver did not delete snapshot "snap-1": the disk is busy`},
		"a warning":                          {finalizers: []string{snapshot.FinalizerContent}, warning: warned(0), want: `the member did not delete snapshot "snap-1": Failed to delete snapshot. The log of the driver's csi-snapshotter shows why`},
		"a warning from before the deletion": {warning: warned(-time.Minute), want: silent},
		"the content is not being deleted":   {stays: true, warning: warned(0), want: silent},
		"a finalizer of another program":     {finalizers: []string{"example.com/hold"}, warning: warned(0), want: `snapshot "snap-1" is blocked by finalizers of other programs (example.com/hold). Check the controllers that set these finalizers`},
	} {
		t.Run(name, func(t *testing.T) {
			content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "snap-1", Finalizers: tc.finalizers, DeletionTimestamp: &now}}
			if tc.stays {
				content.DeletionTimestamp = nil
			}
			content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentDelete
			content.Status = &snapshotv1.VolumeSnapshotContentStatus{Error: tc.failed}
			if got := causeOfContent(content, tc.warning); got.Text != tc.want {
				t.Errorf("got %q, want %q", got.Text, tc.want)
			}
		})
	}
}

func TestLatest(t *testing.T) {
	event := func(kind, name, message string, after time.Duration) corev1.Event {
		return corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Message: message, LastTimestamp: metav1.NewTime(now.Add(after))}
	}
	events := []corev1.Event{
		event(kindContent, "snap-1", "first", 0), event(kindContent, "snap-1", "last", time.Minute),
		event(kindContent, "snap-2", "another object", time.Hour), event(kindVolume, "snap-1", "another kind", time.Hour),
	}
	if got := latestEvent(events, kindContent, "snap-1"); got == nil || got.Message != "last" {
		t.Errorf("got %v", got)
	}
	if got := latestEvent(nil, kindContent, "snap-1"); got != nil {
		t.Errorf("got %v", got)
	}
}

// A content whose VolumeSnapshot was deleted without the snapshot-controller waits for an annotation.
func TestUnannounced(t *testing.T) {
	at := now
	content := func(deleting *metav1.Time, annotations map[string]string) *snapshotv1.VolumeSnapshotContent {
		c := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "snap-1", DeletionTimestamp: deleting, Annotations: annotations}}
		c.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "shop", Name: "nightly", UID: "gone"}
		return c
	}
	const want = `the csi-snapshotter does not delete snapshot "snap-1", because VolumeSnapshot "shop/nightly" is gone, but its deletion was not announced: somebody removed its finalizers. ` +
		`To delete the snapshot, annotate VolumeSnapshotContent "snap-1" with snapshot.storage.kubernetes.io/volumesnapshot-being-deleted=yes`
	if got := causeOfUnannounced(content(&at, nil)); got.Text != want {
		t.Errorf("got %q, want %q", got.Text, want)
	}
	for name, c := range map[string]*snapshotv1.VolumeSnapshotContent{
		"it is not being deleted":        content(nil, nil),
		"its deletion was announced":     content(&at, map[string]string{snapshot.AnnBeingDeleted: "yes"}),
		"it refers to no VolumeSnapshot": {ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &at}},
	} {
		if got := causeOfUnannounced(c); got != noCause {
			t.Errorf("%s: got %q", name, got.Text)
		}
	}
}

// snapshotsOfVolume is a reader of one VolumeSnapshot and of the claims that are restored from it.
type snapshotsOf struct {
	client.Reader
	root   *snapshotv1.VolumeSnapshot
	claims []corev1.PersistentVolumeClaim
}

func (s snapshotsOf) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.root == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	s.root.DeepCopyInto(into.(*snapshotv1.VolumeSnapshot))
	return nil
}

func (s snapshotsOf) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*corev1.PersistentVolumeClaimList).Items = s.claims
	return nil
}

// A host content is deleted only with its VolumeSnapshot. Neither the member nor its csi-snapshotter
// is then the cause.
func TestHeldByRoot(t *testing.T) {
	at := now
	root := func(uid types.UID, deleting *metav1.Time) *snapshotv1.VolumeSnapshot {
		return &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: uid, DeletionTimestamp: deleting}}
	}
	claim := func(name string, phase corev1.PersistentVolumeClaimPhase) corev1.PersistentVolumeClaim {
		return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
	}
	promised := claim("promised", corev1.ClaimBound) // to a promise without a disk, which does not count
	claims := []corev1.PersistentVolumeClaim{claim("copy-2", corev1.ClaimPending), promised, claim("copy-1", corev1.ClaimPending)}
	for name, tc := range map[string]struct {
		root      *snapshotv1.VolumeSnapshot
		announced bool
		claims    []corev1.PersistentVolumeClaim
		want      account.DeletionCause
	}{
		"the root is gone":           {},
		"the root was created again": {root: root("later", nil)},
		"the root exists": {root: root("root", nil), want: formatCause(account.CauseSnapshots,
			`VolumeSnapshot "shop/nightly" still exists, and Xylem keeps its content and its data until it is deleted. Delete that VolumeSnapshot if nobody needs the data`)},
		"claims are restored from it": {root: root("root", &at), claims: claims, want: formatCause(account.CauseUsed,
			`the host's snapshot-controller keeps VolumeSnapshot "shop/nightly" until no claim is restored from it (PersistentVolumeClaim "copy-1", "copy-2"). The deletion continues when these claims are bound or deleted`)},
		"its deletion is not announced": {root: root("root", &at), claims: []corev1.PersistentVolumeClaim{promised}, want: formatCause(account.CausePending,
			`the host's snapshot-controller has not announced on the content that VolumeSnapshot "shop/nightly" is being deleted. Check that the snapshot-controller is running`)},
		"its deletion is announced": {root: root("root", &at), announced: true, claims: claims},
	} {
		t.Run(name, func(t *testing.T) {
			content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "snapcontent-root", DeletionTimestamp: &at}}
			content.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "shop", Name: "nightly", UID: "root"}
			if tc.announced {
				content.Annotations = map[string]string{snapshot.AnnBeingDeleted: "yes"}
			}
			never := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "member-01"}}
			want := tc.want
			if want == noCause {
				want = causeOfAwayMember(never)
			}
			w := &Watcher{Client: snapshotsOf{root: tc.root, claims: tc.claims}}
			got, err := w.causeOfDeletion(t.Context(), never, nil, candidate{Deletion: account.Deletion{Kind: kindContent}, object: content})
			if err != nil || got != want {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
		})
	}
}
