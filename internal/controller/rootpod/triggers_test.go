package rootpod

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle/lifecycletest"
	"github.com/xylem-io/xylem/internal/member"
)

// listedObjects is a cache that lists claims and Pods.
type listedObjects struct {
	cache.Cache
	claims []corev1.PersistentVolumeClaim
	pods   []corev1.Pod
}

func (l listedObjects) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *corev1.PersistentVolumeClaimList:
		list.Items = l.claims
	case *corev1.PodList:
		list.Items = l.pods
	}
	return nil
}

// A StorageClass that is created or replaced in the member enqueues the Pods whose leaf
// claims of that class are unbound.
func TestClassEnqueuesPods(t *testing.T) {
	ofClass := func(class string) corev1.PersistentVolumeClaim {
		leaf := lifecycletest.RequestedClaim("data", lifecycletest.MemberHere).Leaf.DeepCopy()
		leaf.Spec.StorageClassName = &class
		return *leaf
	}
	taken := ofClass("fast")
	taken.Spec.VolumeName = "pv-1"
	for name, tc := range map[string]struct {
		leaf corev1.PersistentVolumeClaim
		want int
	}{
		"an unbound leaf claim of the class":     {ofClass("fast"), 1},
		"an unbound leaf claim of another class": {ofClass("slow"), 0},
		"a bound leaf claim of the class":        {taken, 0},
	} {
		p := &podMapper{&member.Link{
			Member: lifecycletest.MemberHere, Cache: listedObjects{claims: []corev1.PersistentVolumeClaim{tc.leaf}}, Host: listedObjects{pods: []corev1.Pod{*lifecycletest.RootPod()}},
		}}
		if got := p.leafClassToPods(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}); len(got) != tc.want {
			t.Errorf("%s: enqueued %v, want %d", name, got, tc.want)
		}
	}
}
