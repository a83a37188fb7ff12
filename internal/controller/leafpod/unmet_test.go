package leafpod

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
)

// reads answers live reads from one claim.
type reads struct {
	client.Reader
	claim *corev1.PersistentVolumeClaim
}

func (r reads) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if claim, ok := into.(*corev1.PersistentVolumeClaim); ok {
		r.claim.DeepCopyInto(claim)
	}
	return nil
}

func TestUnbound(t *testing.T) {
	for name, tc := range map[string]struct {
		host   string // whose leaf it is; empty: somebody else's claim
		uid    types.UID
		volume string
		want   bool
	}{
		"its leaf has a volume":                   {here.HostID, "claim-uid", "pv-1", false},
		"its leaf has none":                       {here.HostID, "claim-uid", "", true},
		"the name is taken by the member's own":   {"", "", "pv-1", true},
		"the name is taken by another host's":     {"other-host", "claim-uid", "pv-1", true},
		"the name is taken by an earlier claim's": {here.HostID, "earlier-uid", "pv-1", true},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: tc.volume}}
			if tc.host != "" {
				mirror.Origin{HostID: tc.host, Root: types.NamespacedName{Namespace: "shop", Name: "data"}, UID: tc.uid}.Stamp(leaf)
			}
			r := &reconciler{Link: &member.Link{Member: here, Live: reads{claim: leaf}}}
			unbound, err := r.Proof().Unbound(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "claim-uid"}})
			if err != nil || unbound != tc.want {
				t.Errorf("unbound is %v (%v), not %v", unbound, err, tc.want)
			}
		})
	}
}

// Whatever the scheduler does, the times between Pods that are failed here grow.
func TestTriedPauses(t *testing.T) {
	const timeout = 10 * time.Second
	for name, tc := range map[string]struct {
		others []string
		pauses []time.Duration // after each Pod; 0: none
	}{
		"another member is left, and is not chosen": {[]string{"id39"}, []time.Duration{0, timeout, 0, 2 * timeout, 0, 4 * timeout}},
		"all others are gone by then":               {nil, []time.Duration{timeout, 2 * timeout, 4 * timeout}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Annotations: map[string]string{}}}
			at := now.Time
			for i, want := range tc.pauses {
				u := &unmet{claim: claim, problem: &mirror.Refusal{Reason: v1alpha1.ReasonProvisioningFailed, Message: "no"}, timeout: timeout, others: tc.others}
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at)}}
				at = later(at.Add(timeout+cut), time.Unix(mirror.TriedOf(claim).Until, 0))
				tried, news := u.tried(pod, here, at)
				var pause time.Duration
				if tried.Until != 0 {
					pause = time.Unix(tried.Until, 0).Sub(at)
				}
				if !news || pause != want {
					t.Fatalf("Pod %d: news is %v, the pause %s, not %s", i, news, pause, want)
				}
				text, err := tried.Annotation()
				if err != nil {
					t.Fatal(err)
				}
				claim.Annotations[v1alpha1.AnnotationTried] = text
				if _, news := u.tried(pod, here, at.Add(time.Second)); news {
					t.Fatalf("Pod %d is recorded twice", i)
				}
			}
		})
	}
}
