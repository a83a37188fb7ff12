package proof

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

func TestSoleImport(t *testing.T) {
	down := errors.New("connection refused")
	asks := func(uid types.UID, handle string) corev1.PersistentVolume {
		pv := corev1.PersistentVolume{}
		pv.Name, pv.UID = string(uid), uid
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.ProvisionerName, VolumeHandle: handle}
		return pv
	}
	fulfilled := asks("promise", "mock-vol-1")
	fulfilled.Spec.CSI.Driver, fulfilled.Annotations = v1alpha1.PromiseDriverName, map[string]string{v1alpha1.AnnotationVolume: "id38/disk-7"}
	first := asks("first", "id38/disk-7")
	for name, tc := range map[string]struct {
		host pages
		sole bool
		err  error
	}{
		"the only import":                    {pages{pages: [][]corev1.PersistentVolume{{first}, {asks("other", "id38/disk-8"), asks("there", "id39/disk-7")}}}, true, nil},
		"a second import on the second page": {pages{pages: [][]corev1.PersistentVolume{{first}, {asks("second", "id38/disk-7")}}}, false, nil},
		"a promise records the leaf PV":      {pages{pages: [][]corev1.PersistentVolume{{first, fulfilled}}}, false, nil},
		"the second page fails":              {pages{pages: [][]corev1.PersistentVolume{{first}, {}}, oneFails: down}, false, down},
	} {
		t.Run(name, func(t *testing.T) {
			p := Prover{Member: mirror.Member{ClusterID: "id38"}, HostLive: tc.host, Clock: clock.RealClock{}}
			sole, err := p.SoleImport(t.Context(), &first, "disk-7")
			if sole != tc.sole || !errors.Is(err, tc.err) {
				t.Errorf("got %t, %v; want %t, %v", sole, err, tc.sole, tc.err)
			}
		})
	}
}
