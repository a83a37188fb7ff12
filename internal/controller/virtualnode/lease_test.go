package virtualnode

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func lease(owner types.UID, holder string, renewed, acquired time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-node-lease", Name: "kosmos-a",
			Labels:          map[string]string{v1alpha1.LabelManagedBy: "xylem"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "kosmos-a", UID: owner}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](40),
			RenewTime: ptr.To(metav1.NewMicroTime(renewed)), AcquireTime: ptr.To(metav1.NewMicroTime(acquired)),
		},
	}
}

func TestLeaseToWrite(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-a", UID: "n"}}
	before := start.Add(-time.Minute)
	for name, tc := range map[string]struct {
		lease, want *coordinationv1.Lease
	}{
		"the Lease does not exist":                                       {want: lease("n", "me", start, start)},
		"this replica holds the Lease":                                   {lease: lease("n", "me", start.Add(-time.Second), before), want: lease("n", "me", start, before)},
		"another replica renewed the Lease recently":                     {lease: lease("n", "you", start.Add(-freshLease+1), before)},
		"another replica holds the Lease, but is late":                   {lease: lease("n", "you", start.Add(-freshLease), before), want: lease("n", "me", start, start)},
		"the Lease was renewed recently, but belongs to an earlier Node": {lease: lease("old", "you", start, before), want: lease("n", "me", start, start)},
		"another replica's renewal is in the future":                     {lease: lease("n", "you", start.Add(time.Second), before)},
	} {
		t.Run(name, func(t *testing.T) {
			given := tc.lease.DeepCopy()
			if diff := cmp.Diff(tc.want, leaseToWrite(node, tc.lease, "me", metav1.NewMicroTime(start))); diff != "" {
				t.Errorf("Lease (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(given, tc.lease); diff != "" {
				t.Errorf("leaseToWrite changed the observed Lease:\n%s", diff)
			}
		})
	}
}

func TestTimeToNextRenewal(t *testing.T) {
	seen := map[time.Duration]bool{}
	for i := range 50 {
		node := fmt.Sprintf("kosmos-%d", i)
		now := start
		for range 5 {
			wait := timeToNextRenewal(now, "me", node)
			if wait <= renewPrecision || wait > renewInterval {
				t.Fatalf("node %s: next check in %s, want more than %s and at most %s", node, wait, renewPrecision, renewInterval)
			}
			now = now.Add(wait)
		}
		seen[timeToNextRenewal(start, "me", node)] = true
	}
	if len(seen) < 25 {
		t.Errorf("the checks of 50 nodes have only %d different times", len(seen))
	}
}
