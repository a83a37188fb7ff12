package move

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStatefulSet(t *testing.T) {
	set := func(replicas, start int32) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
		s.Spec.Replicas = &replicas
		if start > 0 {
			s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: start}
		}
		for _, name := range []string{"wal", "data"} {
			s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return s
	}
	var claims []corev1.PersistentVolumeClaim
	for _, name := range []string{"data-db-0", "wal-db-0", "data-db-10", "data-db-2", "data-db-x", "data-db-02", "data-other-1", "data-db", "wal-db--1"} {
		claims = append(claims, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if diff := cmp.Diff([]string{"wal-db-0", "data-db-0", "data-db-2", "data-db-10"}, claimsOfStatefulSet(set(0, 0), claims, 0, false)); diff != "" {
		t.Errorf("all claims, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"data-db-2"}, claimsOfStatefulSet(set(0, 0), claims, 2, true)); diff != "" {
		t.Errorf("claims of one Pod, -want +got:\n%s", diff)
	}
	deletes := set(0, 0)
	deletes.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType}
	for name, tc := range map[string]struct {
		set     *appsv1.StatefulSet
		ordinal int
		one     bool
		want    string
	}{
		"scaled to 0":                       {set: set(0, 0)},
		"not scaled down":                   {set: set(2, 0), want: "--replicas=0"},
		"one Pod, which still exists":       {set: set(2, 0), ordinal: 1, one: true, want: "--replicas=1"},
		"one Pod, beyond the replicas":      {set: set(2, 0), ordinal: 2, one: true},
		"one Pod, ordinals start at 5":      {set: set(2, 5), ordinal: 5, one: true, want: "--replicas=0"},
		"one Pod, before the first ordinal": {set: set(2, 5), ordinal: 4, one: true},
		"claims are deleted on scale-down":  {set: deletes, want: "whenScaled"},
		"replicas default to 1":             {set: func() *appsv1.StatefulSet { s := set(0, 0); s.Spec.Replicas = nil; return s }(), want: "has 1 replica,"},
	} {
		t.Run(name, func(t *testing.T) {
			err := scaledDown(tc.set, tc.ordinal, tc.one)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
