package proof

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// Only the request of an importer or a populator counts, not a scheduler's choice for a Pod that is gone.
func TestImported(t *testing.T) {
	root := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "r1", Annotations: map[string]string{v1alpha1.AnnotationPlacedIn: here.ClusterID}}}
	selects := `{"f:metadata":{"f:annotations":{"f:volume.kubernetes.io/selected-node":{}}}}`
	for name, tc := range map[string]struct {
		manager, fields string
		change          func(*corev1.PersistentVolumeClaim)
		want            bool
	}{
		"an importer":                        {manager: "virt-cdi-controller", fields: selects, want: true},
		"kube-scheduler":                     {manager: "kube-scheduler", fields: selects},
		"another scheduler":                  {manager: "vc-scheduler", fields: selects},
		"Xylem":                              {manager: "xylem-recovery", fields: selects},
		"nobody: it was removed":             {manager: "virt-cdi-controller", fields: `{"f:metadata":{"f:labels":{}}}`},
		"an importer, but placed elsewhere":  {manager: "virt-cdi-controller", fields: selects, change: func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationPlacedIn] = "other" }},
		"an importer, but for another claim": {manager: "virt-cdi-controller", fields: selects, change: func(c *corev1.PersistentVolumeClaim) { c.UID = "r2" }},
	} {
		t.Run(name, func(t *testing.T) {
			live := root.DeepCopy()
			live.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: tc.manager, FieldsV1: metav1.NewFieldsV1(tc.fields)}}
			if tc.change != nil {
				tc.change(live)
			}
			got, err := ProveImportedHere(t.Context(), Prover{Member: here, HostLive: clusterOf(live)}, root)
			if err != nil || got != tc.want {
				t.Errorf("Imported() = %t, %v, want %t", got, err, tc.want)
			}
		})
	}
}
