package proof

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// A leaf Pod is created only if live reads show that nobody releases the disk that it uses.
func TestUnmarked(t *testing.T) {
	down, here := errors.New("connection refused"), mirror.Member{Registration: "cluster38", ClusterID: "id38"}
	class := &storagev1.StorageClass{Parameters: map[string]string{v1alpha1.ParameterRelease: v1alpha1.ReleaseWhenUnused}}
	promise := func(change ...func(*corev1.PersistentVolume)) corev1.PersistentVolume {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "root-uid"}}
		pv := hostpv.PromiseWithMember(hostpv.NewPromiseFor(claim, class), here, nil)
		pv.UID = "promise-uid"
		for _, f := range change {
			f(pv)
		}
		return *pv
	}
	unused := func(pv *corev1.PersistentVolume) {
		pv.Annotations[v1alpha1.AnnotationUnusedSince] = time.Unix(1e9, 0).Format(time.RFC3339)
	}
	releasing := func(pv *corev1.PersistentVolume) {
		pv.Annotations[v1alpha1.AttributeLeafUID], pv.Annotations[v1alpha1.AnnotationReleasing] = "leaf-uid", "leaf-uid"
	}
	for name, tc := range map[string]struct {
		host pages
		want bool
		err  error
	}{
		"no mark":                       {host: pages{pages: [][]corev1.PersistentVolume{{promise()}}}, want: true},
		"marked as unused":              {host: pages{pages: [][]corev1.PersistentVolume{{promise(unused)}}}},
		"marked as being released":      {host: pages{pages: [][]corev1.PersistentVolume{{promise(releasing)}}}},
		"assigned to no member anymore": {host: pages{pages: [][]corev1.PersistentVolume{{promise(func(pv *corev1.PersistentVolume) { pv.Labels = nil })}}}},
		"re-created":                    {host: pages{pages: [][]corev1.PersistentVolume{{promise(func(pv *corev1.PersistentVolume) { pv.UID = "newer" })}}}},
		"gone":                          {},
		"the host does not respond":     {host: pages{getFails: down}, err: down},
	} {
		t.Run(name, func(t *testing.T) {
			seen := promise()
			if got, err := (Prover{Member: here, HostLive: tc.host}).ProvePromiseUnmarked(t.Context(), &seen); got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("Unmarked returned %t, %v; want %t, %v", got, err, tc.want, tc.err)
			}
		})
	}
}
