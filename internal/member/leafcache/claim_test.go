package leafcache

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
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

// A claim with Xylem's stamp that Xylem did not create was copied: a backup tool restored it, for example.
func TestReduceCopiedClaim(t *testing.T) {
	created := metav1.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	at := func(after time.Duration, manager, annotation string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: new(metav1.NewTime(created.Add(after))),
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + annotation + `":{}}}}`)}
	}
	entry := func(manager, annotation string) metav1.ManagedFieldsEntry { return at(0, manager, annotation) }
	for name, tc := range map[string]struct {
		root   string
		fields []metav1.ManagedFieldsEntry
		asked  bool // the PV controller has requested the volume
		want   bool
	}{
		"Xylem created it":                    {root: "root-uid", fields: []metav1.ManagedFieldsEntry{entry("xylem-root-pvc", v1alpha1.AnnotationRootUID)}},
		"a backup tool created it":            {root: "root-uid", fields: []metav1.ManagedFieldsEntry{entry("velero-server", v1alpha1.AnnotationRootUID)}, want: true},
		"a backup tool created it, just now":  {root: "root-uid", fields: []metav1.ManagedFieldsEntry{entry("velero-server", v1alpha1.AnnotationRootUID)}, asked: true, want: true},
		"admission took long":                 {root: "root-uid", fields: []metav1.ManagedFieldsEntry{at(-30*time.Second, "xylem-root-pvc", v1alpha1.AnnotationRootUID)}},
		"Xylem wrote the stamp later":         {root: "root-uid", fields: []metav1.ManagedFieldsEntry{at(time.Hour, "xylem-root-pvc", v1alpha1.AnnotationRootUID)}},
		"a tool restored its managed fields":  {root: "root-uid", fields: []metav1.ManagedFieldsEntry{at(-time.Hour, "xylem-root-pvc", v1alpha1.AnnotationRootUID)}, want: true},
		"Xylem changed it later":              {root: "root-uid", fields: []metav1.ManagedFieldsEntry{entry("velero-server", v1alpha1.AnnotationRootUID), entry("xylem-root-pvc", "other")}, want: true},
		"it is the member's own":              {fields: []metav1.ManagedFieldsEntry{entry("kubectl", "other")}},
		"somebody removed its managed fields": {root: "root-uid", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: created, Annotations: map[string]string{}, ManagedFields: tc.fields}}
			if tc.root != "" {
				claim.Annotations[v1alpha1.AnnotationRootUID] = tc.root
			}
			if tc.asked {
				claim.Annotations[volumehelpers.AnnStorageProvisioner] = "driver"
				claim.ManagedFields = append(claim.ManagedFields, metav1.ManagedFieldsEntry{Manager: "controller", Time: new(metav1.Now()),
					FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + volumehelpers.AnnStorageProvisioner + `":{}}}}`)})
			}
			got, err := reduceClaim(claim)
			if err != nil {
				t.Fatal(err)
			}
			reduced := got.(*corev1.PersistentVolumeClaim)
			if mirror.IsLeafCreatedByOthers(reduced) != tc.want {
				t.Errorf("copied is %t, want %t: %+v", !tc.want, tc.want, reduced.ManagedFields)
			}
			if tc.asked && (len(reduced.ManagedFields) != 1 || reduced.ManagedFields[0].Time == nil) {
				t.Errorf("the time of the request is lost: %+v", reduced.ManagedFields)
			}
		})
	}
}
