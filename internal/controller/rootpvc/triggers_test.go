package rootpvc

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/route"
)

// Events of the steps that place a claim are not delayed. All other events may be delayed.
func TestPlacing(t *testing.T) {
	claim := func(annotations ...string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{}
		c.Annotations = map[string]string{}
		for _, key := range annotations {
			c.Annotations[key] = "x"
		}
		return c
	}
	bound := claim(route.AnnSelectedNode, volumehelpers.AnnStorageProvisioner, v1alpha1.AnnotationPlacedIn)
	bound.Spec.VolumeName = "pv-1"
	for name, tc := range map[string]struct {
		before, after *corev1.PersistentVolumeClaim
		want          bool
	}{
		"the scheduler selects a node":                           {claim(), claim(route.AnnSelectedNode), false},
		"the PV controller requests the volume":                  {claim(route.AnnSelectedNode), claim(route.AnnSelectedNode, volumehelpers.AnnStorageProvisioner), true},
		"the claim is placed":                                    {claim(volumehelpers.AnnStorageProvisioner), claim(volumehelpers.AnnStorageProvisioner, v1alpha1.AnnotationPlacedIn), true},
		"the claim is withdrawn":                                 {claim(v1alpha1.AnnotationPlacedIn), claim(), true},
		"the claim is bound in the member in which it is placed": {claim(route.AnnSelectedNode, volumehelpers.AnnStorageProvisioner, v1alpha1.AnnotationPlacedIn), bound, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := placingSteps(t.Context(), tc.before, tc.after); got != tc.want {
				t.Errorf("urgent: %t, want %t", got, tc.want)
			}
		})
	}
}
