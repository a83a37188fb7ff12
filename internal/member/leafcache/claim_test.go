package leafcache

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
)

// The reduced claim keeps the time at which its volume was requested, until it is bound.
func TestReduceClaim(t *testing.T) {
	at := func(minute int) *metav1.Time {
		return new(metav1.Date(2026, 11, 25, 12, minute, 0, 0, time.UTC))
	}
	wrote := func(manager, annotation string, minute int) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: at(minute), FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + annotation + `":{}}}}`)}
	}
	created, selected, asked := wrote("xylem", "xylem.io/root", 1), volumehelpers.AnnSelectedNode, volumehelpers.AnnStorageProvisioner
	for name, tc := range map[string]struct {
		annotation, volume string
		fields             []metav1.ManagedFieldsEntry
		want               *metav1.Time
	}{
		"not requested":              {"other", "", []metav1.ManagedFieldsEntry{created, wrote("scheduler", selected, 2)}, nil},
		"requested":                  {asked, "", []metav1.ManagedFieldsEntry{created, wrote("scheduler", selected, 2), wrote("controller", asked, 3)}, at(3)},
		"another node was selected":  {asked, "", []metav1.ManagedFieldsEntry{created, wrote("scheduler", selected, 4), wrote("controller", asked, 3)}, at(4)},
		"no manager records a write": {asked, "", []metav1.ManagedFieldsEntry{created}, nil},
		"bound":                      {asked, "pv-1", []metav1.ManagedFieldsEntry{wrote("controller", asked, 3)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{tc.annotation: "x"}, ManagedFields: tc.fields}}
			claim.Spec.VolumeName = tc.volume
			got, err := reduceClaim(claim)
			if err != nil {
				t.Fatal(err)
			}
			var want []metav1.ManagedFieldsEntry
			if tc.want != nil {
				want = []metav1.ManagedFieldsEntry{{Time: tc.want}}
			}
			if diff := cmp.Diff(want, got.(*corev1.PersistentVolumeClaim).ManagedFields); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
