package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

func class(change ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: v1alpha1.ProvisionerName}
	for _, f := range change {
		f(c)
	}
	return c
}

func parameters(keysAndValues ...string) func(*storagev1.StorageClass) {
	return func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{}
		for i := 0; i < len(keysAndValues); i += 2 {
			c.Parameters[keysAndValues[i]] = keysAndValues[i+1]
		}
	}
}

func seen(change ...func(*observed)) observed {
	o := observed{
		member:       mirror.Member{Registration: "cluster38", ClusterID: "3f0c"},
		namespace:    "xylem-system",
		registration: &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "cluster38", UID: "cr"}},
		hostClass:    class(), leafClassExists: true,
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func standing(change ...func(*storagev1.CSIStorageCapacity)) func(*observed) {
	return func(o *observed) {
		o.capacity = desiredCapacity(seen())
		for _, c := range change {
			c(o.capacity)
		}
	}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observed
		want     writeAction
	}{
		"the member offers the class":                           {seen(), actionCreate},
		"the published object is up to date":                    {seen(standing()), actionNone},
		"the host lacks the class":                              {seen(func(o *observed) { o.hostClass = nil }), actionNone},
		"the class was deleted in the host":                     {seen(standing(), func(o *observed) { o.hostClass = nil }), actionDelete},
		"the class was deleted in the member":                   {seen(standing(), func(o *observed) { o.leafClassExists = false }), actionDelete},
		"the member lacks the class":                            {seen(func(o *observed) { o.leafClassExists = false }), actionNone},
		"the class belongs to another provisioner":              {seen(func(o *observed) { o.hostClass.Provisioner = "ebs.csi.aws.com" }), actionNone},
		"the class is in promise mode":                          {seen(func(o *observed) { o.hostClass = class(parameters(v1alpha1.ParameterProvisioning, "promise")) }), actionNone},
		"the class is invalid":                                  {seen(func(o *observed) { o.hostClass = class(parameters(v1alpha1.ParameterProvisioning, "mirorr")) }), actionNone},
		"the member is being deregistered":                      {seen(standing(), func(o *observed) { o.registration.DeletionTimestamp = &metav1.Time{} }), actionDelete},
		"the registration is gone":                              {seen(func(o *observed) { o.registration = nil }), actionNone},
		"the member was registered again":                       {seen(standing(), func(o *observed) { o.registration.UID = "later" }), actionPatch},
		"the published object lacks a label":                    {seen(standing(func(c *storagev1.CSIStorageCapacity) { delete(c.Labels, v1alpha1.LabelCluster) })), actionPatch},
		"the published object has a foreign label, which stays": {seen(standing(func(c *storagev1.CSIStorageCapacity) { c.Labels["x"] = "y" })), actionNone},
		"the published object has a different size":             {seen(standing(func(c *storagev1.CSIStorageCapacity) { c.MaximumVolumeSize = nil })), actionPatch},
		"the driver begins to report capacity":                  {seen(standing(), func(o *observed) { o.segments = []storagev1.CSIStorageCapacity{segment("1Gi", "")} }), actionPatch},
		"the driver reports the published capacity": {seen(func(o *observed) {
			o.segments = []storagev1.CSIStorageCapacity{segment("1Gi", "")}
			o.capacity = desiredCapacity(*o)
		}), actionNone},
		"the driver rejected a size":                                           {seen(standing(), func(o *observed) { o.limit = quantity("1Gi") }), actionPatch},
		"another member reports capacity: an estimate is published":            {seen(standing(), beside("100Gi")), actionPatch},
		"the published estimate is up to date":                                 {seen(beside("100Gi"), keeping), actionNone},
		"the published estimate is wrong by less than a quarter":               {seen(beside("100Gi"), keeping, beside("120Gi")), actionNone},
		"the published estimate is wrong by more than a quarter":               {seen(beside("100Gi"), keeping, beside("126Gi")), actionPatch},
		"the published estimate is 0, because the other member is full":        {seen(beside("0"), keeping), actionNone},
		"the other members no longer report capacity: the estimate is removed": {seen(beside("100Gi"), keeping, beside()), actionPatch},
		"the driver reports the estimated capacity: the object is no longer marked as an estimate": {seen(beside("100Gi"), keeping, func(o *observed) {
			o.segments, o.others = []storagev1.CSIStorageCapacity{segment("100Gi", "")}, nil
		}), actionPatch},
		"the published object has a different topology": {seen(standing(func(c *storagev1.CSIStorageCapacity) { c.NodeTopology = nil })), actionDelete},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.observed.capacity.DeepCopy()
			got := decideCapacity(tc.observed)
			if got.action != tc.want {
				t.Errorf("decision is %d, want %d", got.action, tc.want)
			}
			if got.action == actionPatch {
				again := tc.observed
				again.capacity = got.after
				if next := decideCapacity(again); next.action != actionNone {
					t.Errorf("decision is %d after the patch, want nothing", next.action)
				}
			}
			if diff := cmp.Diff(before, tc.observed.capacity); diff != "" {
				t.Errorf("decide changed the observed object:\n%s", diff)
			}
		})
	}
}

func TestName(t *testing.T) {
	if capacityNameOf("a", "b") == capacityNameOf("b", "a") || capacityNameOf("fast", "3f0c") != desiredCapacity(seen()).Name {
		t.Errorf("name is %q, want the published object's name, and another name if class and cluster ID are swapped", capacityNameOf("fast", "3f0c"))
	}
}
