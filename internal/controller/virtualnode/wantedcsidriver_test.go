package virtualnode

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestDecideDriver(t *testing.T) {
	driver := func(change ...func(*storagev1.CSIDriver)) *storagev1.CSIDriver {
		d := wantedDriver(v1alpha1.ProvisionerName)
		for _, f := range change {
			f(d)
		}
		return d
	}
	prevents := func(value bool) func(*storagev1.CSIDriver) {
		return func(d *storagev1.CSIDriver) { d.Spec.PreventPodSchedulingIfMissing = ptr.To(value) }
	}
	shipped := func(d *storagev1.CSIDriver) {
		d.Labels = map[string]string{appNameLabel: appNameValue, v1alpha1.LabelManagedBy: "Helm"}
	}
	ruled := func(rules string) func(*storagev1.CSIDriver) {
		return func(d *storagev1.CSIDriver) { setNamespaceRules(d, rules) }
	}
	foreign := func(d *storagev1.CSIDriver) { d.Labels = nil }
	for name, tc := range map[string]struct {
		driver *storagev1.CSIDriver
		// incomplete means that a virtual node has no CSINode yet.
		incomplete bool
		rules      string
		want       driverDecision
	}{
		"the object does not exist":     {want: driverDecision{do: createDriver, after: driver()}},
		"up to date":                    {driver: driver()},
		"a foreign object that matches": {driver: driver(foreign)},
		"other fields have defaults": {driver: driver(func(d *storagev1.CSIDriver) {
			d.Spec.RequiresRepublish = ptr.To(false)
			d.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
		})},
		"storageCapacity is not set": {driver: driver(func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }), want: driverDecision{do: patchDriver, after: driver()}},
		"attachRequired is true":     {driver: driver(func(d *storagev1.CSIDriver) { d.Spec.AttachRequired = ptr.To(true) }), want: driverDecision{do: removeDriver}},
		"a foreign object that differs": {driver: driver(foreign, func(d *storagev1.CSIDriver) {
			d.Spec.StorageCapacity, d.Spec.AttachRequired = ptr.To(false), nil
		}), want: driverDecision{do: reportDriver, differs: "attachRequired is not false, storageCapacity is not true"}},

		"the object does not exist, and a member has rules for namespaces": {rules: "rules", want: driverDecision{do: createDriver, after: driver(ruled("rules"))}},
		"a member has rules for namespaces":                                {driver: driver(), rules: "rules", want: driverDecision{do: adjustDriver, after: driver(ruled("rules"))}},
		"the rules have changed":                                           {driver: driver(ruled("old")), rules: "rules", want: driverDecision{do: adjustDriver, after: driver(ruled("rules"))}},
		"no member has rules anymore":                                      {driver: driver(ruled("old")), want: driverDecision{do: adjustDriver, after: driver(ruled("old"), ruled(""))}},
		"the rules have changed, and storageCapacity is not set":           {driver: driver(func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }), rules: "rules", want: driverDecision{do: patchDriver, after: driver(ruled("rules"))}},
		"created by the chart, and a member has rules":                     {driver: driver(shipped), rules: "rules", want: driverDecision{do: adjustDriver, after: driver(shipped, ruled("rules"))}},
		"a foreign object that matches, and a member has rules":            {driver: driver(foreign), rules: "rules", want: driverDecision{do: adjustDriver, after: driver(foreign, ruled("rules"))}},
		"a foreign object that differs, and a member has rules": {driver: driver(foreign, func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }), rules: "rules", want: driverDecision{
			do: reportDriver, differs: "storageCapacity is not true", after: driver(foreign, func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }, ruled("rules"))}},

		"the host supports preventPodSchedulingIfMissing":                           {driver: driver(prevents(false)), want: driverDecision{do: patchDriver, after: driver(prevents(true))}},
		"the host supports preventPodSchedulingIfMissing, and a CSINode is missing": {driver: driver(prevents(false)), incomplete: true},
		"preventPodSchedulingIfMissing is set":                                      {driver: driver(prevents(true))},
		"preventPodSchedulingIfMissing is set, and a CSINode is missing":            {driver: driver(prevents(true)), incomplete: true},
		"created by the chart, on a host that drops preventPodSchedulingIfMissing":  {driver: driver(shipped)},
		"created by the chart":                                                    {driver: driver(shipped, prevents(false)), want: driverDecision{do: adjustDriver, after: driver(shipped, prevents(true))}},
		"created by the chart, and a CSINode is missing":                          {driver: driver(shipped, prevents(false)), incomplete: true},
		"created by the chart, and edited since":                                  {driver: driver(shipped, prevents(false), func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }), want: driverDecision{do: reportDriver, differs: "storageCapacity is not true, preventPodSchedulingIfMissing is not true"}},
		"a foreign object, on a host that supports preventPodSchedulingIfMissing": {driver: driver(foreign, prevents(false)), want: driverDecision{do: reportDriver, differs: "preventPodSchedulingIfMissing is not true"}},
		"a foreign object, and a CSINode is missing":                              {driver: driver(foreign, prevents(false)), incomplete: true},
		"storageCapacity is not set, and a CSINode is missing":                    {driver: driver(prevents(false), func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }), incomplete: true, want: driverDecision{do: patchDriver, after: driver(prevents(false))}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decideDriver(v1alpha1.ProvisionerName, tc.driver, !tc.incomplete, tc.rules), cmp.AllowUnexported(driverDecision{})); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// The scheduler looks for the capacity of the class's provisioner, not of the promises' driver.
func TestDecideDriverOfPromises(t *testing.T) {
	promises := wantedDriver(v1alpha1.PromiseDriverName)
	if promises.Name != v1alpha1.PromiseDriverName || *promises.Spec.StorageCapacity || *promises.Spec.AttachRequired {
		t.Errorf("got %v, want a driver without storage capacity tracking or attachment", promises)
	}
	if got := decideDriver(promises.Name, promises, true, "rules"); got.do != keepDriver {
		t.Errorf("decision %v, want none", got)
	}
	promises.Spec.StorageCapacity = ptr.To(true)
	if got := decideDriver(promises.Name, promises, true, "rules"); got.do != patchDriver || *got.after.Spec.StorageCapacity {
		t.Errorf("decision %v, want a patch that sets storageCapacity to false", got)
	}
}
