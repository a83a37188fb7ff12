package csidriver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
)

func TestDecide(t *testing.T) {
	driver := func(change func(*storagev1.CSIDriver)) *storagev1.CSIDriver {
		d := wanted()
		change(d)
		return d
	}
	for name, tc := range map[string]struct {
		driver *storagev1.CSIDriver
		want   decision
	}{
		"no object":      {nil, decision{do: create, after: wanted()}},
		"up to date":     {wanted(), decision{}},
		"foreign, equal": {driver(func(d *storagev1.CSIDriver) { d.Labels = nil }), decision{}},
		"fields with defaults": {driver(func(d *storagev1.CSIDriver) {
			d.Spec.RequiresRepublish = ptr.To(false)
			d.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
		}), decision{}},
		"capacity not tracked": {driver(func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }), decision{do: patch, after: wanted()}},
		"attach required":      {driver(func(d *storagev1.CSIDriver) { d.Spec.AttachRequired = ptr.To(true) }), decision{do: remove}},
		"foreign, different": {driver(func(d *storagev1.CSIDriver) {
			d.Labels, d.Spec.StorageCapacity, d.Spec.AttachRequired = nil, ptr.To(false), nil
		}), decision{do: report, wrong: "attachRequired is not false, storageCapacity is not true"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.driver), cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}
