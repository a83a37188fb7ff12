package stuck

import (
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/route"
)

// A claim or Pod waits for a deletion in the member if it needs a leaf object there itself.
func TestAwaits(t *testing.T) {
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "member-01"}}
	cr.Status.ClusterID = "id"
	claim := func(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		change(c)
		return c
	}
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{}
		p.Spec.NodeName = cr.NodeName()
		change(p)
		return p
	}
	for name, tc := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		pod   *corev1.Pod
		want  bool
	}{
		"a claim for which the scheduler selected the member": {claim: claim(func(c *corev1.PersistentVolumeClaim) { c.Annotations[route.AnnSelectedNode] = cr.NodeName() }), want: true},
		"a claim that is placed in the member":                {claim: claim(func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationPlacedIn] = "id" }), want: true},
		"a claim that is placed elsewhere, after the scheduler selected the member": {claim: claim(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations[v1alpha1.AnnotationPlacedIn], c.Annotations[route.AnnSelectedNode] = "other", cr.NodeName()
		})},
		"a claim that is placed elsewhere":     {claim: claim(func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationPlacedIn] = "other" })},
		"a claim of no member":                 {claim: claim(func(*corev1.PersistentVolumeClaim) {})},
		"a Pod on the member's node":           {pod: pod(func(*corev1.Pod) {}), want: true},
		"a Pod that is nominated for the node": {pod: pod(func(p *corev1.Pod) { p.Spec.NodeName, p.Status.NominatedNodeName = "", cr.NodeName() }), want: true},
		"a Pod on another node":                {pod: pod(func(p *corev1.Pod) { p.Spec.NodeName = "other" })},
		"a finished Pod":                       {pod: pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })},
		"a Pod that is being deleted":          {pod: pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })},
	} {
		t.Run(name, func(t *testing.T) {
			got := false
			if tc.claim != nil {
				got = awaitsLeafIn(tc.claim, cr)
			} else {
				got = awaitsLeafIn(tc.pod, cr)
			}
			if got != tc.want {
				t.Errorf("waits: %t", got)
			}
		})
	}
}

// The event on an object that waits says whether the deleted object was its own.
func TestNotices(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod"}}
	volume := &corev1.PersistentVolume{}
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "earlier"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "claim"}}
	since := account.Deletion{Kind: kindPod, Since: time.Unix(0, 0), Cause: formatCause(account.CauseUnknown, "no idea")}
	for name, tc := range map[string]struct {
		candidate candidate
		want      []string
	}{
		"nobody waits, and the root is gone": {candidate: candidate{Deletion: since}},
		"the deleted object in the host":     {candidate{Deletion: since, object: pod}, []string{"the deletion has been in progress since 1970-01-01T00:00:00Z: no idea"}},
		"a new Pod":                          {candidate{Deletion: since, waitingObject: pod}, []string{`member "m" still has an earlier Pod with this name, whose deletion has been in progress since 1970-01-01T00:00:00Z: no idea`}},
		"the Pod's own counterpart":          {candidate{Deletion: since, waitingObject: pod, createdForWaiting: true}, []string{`member "m" still has this Pod's counterpart, whose deletion`}},
		"a volume, and a new claim":          {candidate{Deletion: since, object: volume, waitingObject: claim}, []string{"the deletion has", `an earlier PersistentVolumeClaim with this name`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.candidate.eventNotices("m")
			if len(got) != len(tc.want) {
				t.Fatalf("got %v, want %d events", got, len(tc.want))
			}
			for i := range got {
				if !strings.Contains(got[i].text, tc.want[i]) {
					t.Errorf("got %q, want %q", got[i].text, tc.want[i])
				}
			}
		})
	}
}

// The user of a snapshot sees the event on the VolumeSnapshot, because its content belongs to no
// namespace.
func TestNoticesOfSnapshot(t *testing.T) {
	content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "snapcontent-1", UID: "content"}}
	c := candidate{Deletion: account.Deletion{Kind: kindContent, Since: time.Unix(0, 0), Cause: formatCause(account.CauseProvisioner, "the disk is busy")}, object: content}
	if got := c.eventNotices("m"); len(got) != 1 || got[0].object != content {
		t.Errorf("got %v, want only the event on the content, because no VolumeSnapshot is known", got)
	}
	content.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: "shop", Name: "snap", UID: "snapshot"}
	got := c.eventNotices("m")
	if len(got) != 2 || got[0].object != content {
		t.Fatalf("got %v, want events on the content and on its VolumeSnapshot", got)
	}
	about, ok := got[1].object.(*snapshotv1.VolumeSnapshot)
	if !ok || about.Namespace != "shop" || about.Name != "snap" || about.UID != "snapshot" {
		t.Errorf("got an event on %v", got[1].object)
	}
	const text = `the deletion of VolumeSnapshotContent "snapcontent-1" has been in progress since 1970-01-01T00:00:00Z: the disk is busy`
	if got[1].text != text || got[1].cause != c.Cause {
		t.Errorf("got %q, want %q", got[1].text, text)
	}
}

// The root of a leaf is known by its UID, because a later object may have its name.
func TestLeafName(t *testing.T) {
	volume := &corev1.PersistentVolume{}
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "claim"}
	key := types.NamespacedName{Namespace: "shop", Name: "data"}
	for name, tc := range map[string]struct {
		candidate candidate
		kind      string
		root      types.UID
	}{
		"a host PV":     {candidate{object: volume}, kindClaim, "claim"},
		"a leaf Pod":    {candidate{Deletion: account.Deletion{Kind: kindPod, Key: key, RootUID: "pod"}}, kindPod, "pod"},
		"a host Pod":    {candidate{Deletion: account.Deletion{Kind: kindPod, Key: key}, object: &corev1.Pod{}}, "", ""},
		"a leaf PV":     {candidate{Deletion: account.Deletion{Kind: kindVolume}}, "", ""},
		"an adopted PV": {candidate{object: &corev1.PersistentVolume{}}, "", ""},
	} {
		kind, got, root := tc.candidate.remainingLeaf()
		if kind != tc.kind || root != tc.root || kind != "" && got != key {
			t.Errorf("%s: %q %s %q", name, kind, got, root)
		}
	}
}

// A leaf PV that is not released because somebody edited it, or its claim, has a cause of its own.
func TestOfUnreleased(t *testing.T) {
	bound := &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "leaf"}
	for name, tc := range map[string]struct {
		phase corev1.PersistentVolumePhase
		ref   *corev1.ObjectReference
		ours  bool
		want  string
	}{
		"its leaf claim still exists": {corev1.VolumeBound, bound, true, "has no effect in the member yet"},
		"its claim lost its stamp":    {corev1.VolumeBound, bound, false, `bound to claim "shop/data", which Xylem did not create, or which has lost Xylem's labels`},
		"its claimRef was removed":    {corev1.VolumeAvailable, nil, false, "no claimRef, or a claimRef without a uid"},
		"its claimRef lacks the uid":  {corev1.VolumeAvailable, &corev1.ObjectReference{Namespace: "shop", Name: "data"}, false, "no claimRef, or a claimRef without a uid"},
	} {
		t.Run(name, func(t *testing.T) {
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
			pv.Spec.ClaimRef, pv.Status.Phase = tc.ref, tc.phase
			if got := causeOfUnreleased(pv, tc.ours); !strings.Contains(got.Text, tc.want) {
				t.Errorf("got %q, want %q", got.Text, tc.want)
			}
		})
	}
}
