package csidriver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestDecide(t *testing.T) {
	driver := func(change ...func(*storagev1.CSIDriver)) *storagev1.CSIDriver {
		d := wanted(v1alpha1.ProvisionerName)
		for _, f := range change {
			f(d)
		}
		return d
	}
	prevents := func(value bool) func(*storagev1.CSIDriver) {
		return func(d *storagev1.CSIDriver) { d.Spec.PreventPodSchedulingIfMissing = ptr.To(value) }
	}
	shipped := func(d *storagev1.CSIDriver) {
		d.Labels = map[string]string{labelName: labelValue, v1alpha1.LabelManagedBy: "Helm"}
	}
	foreign := func(d *storagev1.CSIDriver) { d.Labels = nil }
	for name, tc := range map[string]struct {
		driver *storagev1.CSIDriver
		// incomplete means that a virtual node has no CSINode yet.
		incomplete bool
		want       decision
	}{
		"the object does not exist":     {want: decision{do: create, after: driver()}},
		"up to date":                    {driver: driver()},
		"a foreign object that matches": {driver: driver(foreign)},
		"other fields have defaults": {driver: driver(func(d *storagev1.CSIDriver) {
			d.Spec.RequiresRepublish = ptr.To(false)
			d.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
		})},
		"storageCapacity is not set": {driver: driver(func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }), want: decision{do: patch, after: driver()}},
		"attachRequired is true":     {driver: driver(func(d *storagev1.CSIDriver) { d.Spec.AttachRequired = ptr.To(true) }), want: decision{do: remove}},
		"a foreign object that differs": {driver: driver(foreign, func(d *storagev1.CSIDriver) {
			d.Spec.StorageCapacity, d.Spec.AttachRequired = ptr.To(false), nil
		}), want: decision{do: report, wrong: "attachRequired is not false, storageCapacity is not true"}},

		"the host supports preventPodSchedulingIfMissing":                           {driver: driver(prevents(false)), want: decision{do: patch, after: driver(prevents(true))}},
		"the host supports preventPodSchedulingIfMissing, and a CSINode is missing": {driver: driver(prevents(false)), incomplete: true},
		"preventPodSchedulingIfMissing is set":                                      {driver: driver(prevents(true))},
		"preventPodSchedulingIfMissing is set, and a CSINode is missing":            {driver: driver(prevents(true)), incomplete: true},
		"created by the chart, on a host that drops preventPodSchedulingIfMissing":  {driver: driver(shipped)},
		"created by the chart":                                                    {driver: driver(shipped, prevents(false)), want: decision{do: prevent}},
		"created by the chart, and a CSINode is missing":                          {driver: driver(shipped, prevents(false)), incomplete: true},
		"created by the chart, and edited since":                                  {driver: driver(shipped, prevents(false), func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }), want: decision{do: report, wrong: "storageCapacity is not true, preventPodSchedulingIfMissing is not true"}},
		"a foreign object, on a host that supports preventPodSchedulingIfMissing": {driver: driver(foreign, prevents(false)), want: decision{do: report, wrong: "preventPodSchedulingIfMissing is not true"}},
		"a foreign object, and a CSINode is missing":                              {driver: driver(foreign, prevents(false)), incomplete: true},
		"storageCapacity is not set, and a CSINode is missing":                    {driver: driver(prevents(false), func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }), incomplete: true, want: decision{do: patch, after: driver(prevents(false))}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(v1alpha1.ProvisionerName, tc.driver, !tc.incomplete), cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// The scheduler looks for the capacity of the class's provisioner, not of the promises' driver.
func TestPromiseDriver(t *testing.T) {
	promises := wanted(v1alpha1.PromiseDriverName)
	if promises.Name != v1alpha1.PromiseDriverName || *promises.Spec.StorageCapacity || *promises.Spec.AttachRequired {
		t.Errorf("got %v, want a driver without storage capacity tracking or attachment", promises)
	}
	if got := decide(promises.Name, promises, true); got.do != nothing {
		t.Errorf("decision %v, want none", got)
	}
	promises.Spec.StorageCapacity = ptr.To(true)
	if got := decide(promises.Name, promises, true); got.do != patch || *got.after.Spec.StorageCapacity {
		t.Errorf("decision %v, want a patch that sets storageCapacity to false", got)
	}
}
