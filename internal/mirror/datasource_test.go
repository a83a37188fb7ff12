package mirror

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestOf(t *testing.T) {
	local := func(group *string, kind, name string) *corev1.TypedLocalObjectReference {
		return &corev1.TypedLocalObjectReference{APIGroup: group, Kind: kind, Name: name}
	}
	for name, tc := range map[string]struct {
		spec   corev1.PersistentVolumeClaimSpec
		want   DataSource
		has    bool
		placed bool
		text   string
	}{
		"none":           {},
		"a claim":        {corev1.PersistentVolumeClaimSpec{DataSource: local(nil, "PersistentVolumeClaim", "data")}, DataSource{Kind: "PersistentVolumeClaim", Name: "data"}, true, true, `claim "data"`},
		"an empty group": {corev1.PersistentVolumeClaimSpec{DataSource: local(ptr.To(""), "PersistentVolumeClaim", "data")}, DataSource{Kind: "PersistentVolumeClaim", Name: "data"}, true, true, `claim "data"`},
		"a snapshot":     {corev1.PersistentVolumeClaimSpec{DataSource: local(ptr.To(SnapshotGroup), "VolumeSnapshot", "s")}, DataSource{Group: SnapshotGroup, Kind: "VolumeSnapshot", Name: "s"}, true, true, `snapshot "s"`},
		"no group":       {corev1.PersistentVolumeClaimSpec{DataSource: local(nil, "VolumeSnapshot", "s")}, DataSource{Kind: "VolumeSnapshot", Name: "s"}, true, false, `VolumeSnapshot "s"`},
		"a populator's source": {corev1.PersistentVolumeClaimSpec{DataSourceRef: &corev1.TypedObjectReference{APIGroup: ptr.To("example.com"), Kind: "Image", Name: "i"}},
			DataSource{Group: "example.com", Kind: "Image", Name: "i"}, true, false, `Image.example.com "i"`},
		"another namespace": {corev1.PersistentVolumeClaimSpec{DataSourceRef: &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "data", Namespace: ptr.To("victim")}},
			DataSource{Kind: "PersistentVolumeClaim", Namespace: "victim", Name: "data"}, true, true, `claim "victim/data"`},
		"both": {corev1.PersistentVolumeClaimSpec{DataSource: local(nil, "PersistentVolumeClaim", "data"), DataSourceRef: &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "data"}},
			DataSource{Kind: "PersistentVolumeClaim", Name: "data"}, true, true, `claim "data"`},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{Spec: tc.spec}
			got, has := DataSourceOf(claim)
			if diff := cmp.Diff(tc.want, got); diff != "" || has != tc.has || HasDataSource(claim) != tc.has {
				t.Errorf("has a source: %t, want %t; -want +got:\n%s", has, tc.has, diff)
			}
			if !has {
				return
			}
			if got.IsInOneMember() != tc.placed || got.String() != tc.text {
				t.Errorf("Placed returned %t, String %s; want %t, %s", got.IsInOneMember(), got, tc.placed, tc.text)
			}
		})
	}
}

// The API server fills in dataSourceRef, so a source in one field equals the same source in both.
// Same prevents data loss if a leaf claim lacks the root's source.
func TestSame(t *testing.T) {
	source := &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "data"}
	one := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{DataSource: source}}
	both := one.DeepCopy()
	both.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "data"}
	other := one.DeepCopy()
	other.Spec.DataSource.Name = "another"
	empty := &corev1.PersistentVolumeClaim{}
	for name, tc := range map[string]struct {
		root, leaf *corev1.PersistentVolumeClaim
		want       bool
	}{
		"neither has a source":                  {empty, empty, true},
		"dataSource and an equal dataSourceRef": {one, both, true},
		"different sources":                     {one, other, false},
		"the leaf lacks the source":             {both, empty, false},
		"the root lacks the source":             {empty, both, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := SameDataSource(tc.root, tc.leaf); got != tc.want {
				t.Errorf("Same returned %t, want %t", got, tc.want)
			}
		})
	}
}

func TestRecordOf(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
		want       DataSourceRecord
		ok         bool
	}{
		"none":       {"", DataSourceRecord{}, false},
		"whole":      {"id38/u-1", DataSourceRecord{"id38", "u-1"}, true},
		"no UID":     {"id38/", DataSourceRecord{ClusterID: "id38"}, false},
		"no cluster": {"/u-1", DataSourceRecord{UID: "u-1"}, false},
		"only a UID": {"u-1", DataSourceRecord{ClusterID: "u-1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationSource: tc.annotation}}}
			got, ok := DataSourceRecordOf(claim)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
				t.Errorf("%t, -want +got:\n%s", ok, diff)
			}
			if ok && got.AnnotationValue() != tc.annotation {
				t.Errorf("Annotation returned %q, want %q", got.AnnotationValue(), tc.annotation)
			}
		})
	}
}
