package adoption

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/proof"
)

// pages is a host that lists its PVs on one or two pages.
type pages struct {
	client.Reader
	volumes     [][]corev1.PersistentVolume
	secondFails error
}

func (p pages) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	list, ok := into.(*corev1.PersistentVolumeList)
	switch {
	case !ok:
		return errors.New("only PVs are listed")
	case o.Continue == "":
		list.Items = p.volumes[0]
		if len(p.volumes) > 1 {
			list.Continue = "second"
		}
		return nil
	}
	list.Items, list.Continue = p.volumes[1], ""
	return p.secondFails
}

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
		"the only import":                    {pages{volumes: [][]corev1.PersistentVolume{{first}, {asks("other", "id38/disk-8"), asks("there", "id39/disk-7")}}}, true, nil},
		"a second import on the second page": {pages{volumes: [][]corev1.PersistentVolume{{first}, {asks("second", "id38/disk-7")}}}, false, nil},
		"a promise records the leaf PV":      {pages{volumes: [][]corev1.PersistentVolume{{first, fulfilled}}}, false, nil},
		"the second page fails":              {pages{volumes: [][]corev1.PersistentVolume{{first}, {}}, secondFails: down}, false, down},
	} {
		t.Run(name, func(t *testing.T) {
			p := proof.Prover{Member: mirror.Member{ClusterID: "id38"}, HostLive: tc.host}
			sole, err := SoleImport(t.Context(), p, &first, "disk-7")
			if sole != tc.sole || !errors.Is(err, tc.err) {
				t.Errorf("got %t, %v; want %t, %v", sole, err, tc.sole, tc.err)
			}
		})
	}
}
