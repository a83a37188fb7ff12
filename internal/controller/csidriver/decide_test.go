package csidriver

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	ruled := func(rules string) func(*storagev1.CSIDriver) {
		return func(d *storagev1.CSIDriver) { setRules(d, rules) }
	}
	foreign := func(d *storagev1.CSIDriver) { d.Labels = nil }
	for name, tc := range map[string]struct {
		driver *storagev1.CSIDriver
		// incomplete means that a virtual node has no CSINode yet.
		incomplete bool
		rules      string
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

		"the object does not exist, and a member has rules for namespaces": {rules: "rules", want: decision{do: create, after: driver(ruled("rules"))}},
		"a member has rules for namespaces":                                {driver: driver(), rules: "rules", want: decision{do: adjust, after: driver(ruled("rules"))}},
		"the rules have changed":                                           {driver: driver(ruled("old")), rules: "rules", want: decision{do: adjust, after: driver(ruled("rules"))}},
		"no member has rules anymore":                                      {driver: driver(ruled("old")), want: decision{do: adjust, after: driver(ruled("old"), ruled(""))}},
		"the rules have changed, and storageCapacity is not set":           {driver: driver(func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }), rules: "rules", want: decision{do: patch, after: driver(ruled("rules"))}},
		"created by the chart, and a member has rules":                     {driver: driver(shipped), rules: "rules", want: decision{do: adjust, after: driver(shipped, ruled("rules"))}},
		"a foreign object that matches, and a member has rules":            {driver: driver(foreign), rules: "rules", want: decision{do: adjust, after: driver(foreign, ruled("rules"))}},
		"a foreign object that differs, and a member has rules": {driver: driver(foreign, func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }), rules: "rules", want: decision{
			do: report, wrong: "storageCapacity is not true", after: driver(foreign, func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }, ruled("rules"))}},

		"the host supports preventPodSchedulingIfMissing":                           {driver: driver(prevents(false)), want: decision{do: patch, after: driver(prevents(true))}},
		"the host supports preventPodSchedulingIfMissing, and a CSINode is missing": {driver: driver(prevents(false)), incomplete: true},
		"preventPodSchedulingIfMissing is set":                                      {driver: driver(prevents(true))},
		"preventPodSchedulingIfMissing is set, and a CSINode is missing":            {driver: driver(prevents(true)), incomplete: true},
		"created by the chart, on a host that drops preventPodSchedulingIfMissing":  {driver: driver(shipped)},
		"created by the chart":                                                    {driver: driver(shipped, prevents(false)), want: decision{do: adjust, after: driver(shipped, prevents(true))}},
		"created by the chart, and a CSINode is missing":                          {driver: driver(shipped, prevents(false)), incomplete: true},
		"created by the chart, and edited since":                                  {driver: driver(shipped, prevents(false), func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }), want: decision{do: report, wrong: "storageCapacity is not true, preventPodSchedulingIfMissing is not true"}},
		"a foreign object, on a host that supports preventPodSchedulingIfMissing": {driver: driver(foreign, prevents(false)), want: decision{do: report, wrong: "preventPodSchedulingIfMissing is not true"}},
		"a foreign object, and a CSINode is missing":                              {driver: driver(foreign, prevents(false)), incomplete: true},
		"storageCapacity is not set, and a CSINode is missing":                    {driver: driver(prevents(false), func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = nil }), incomplete: true, want: decision{do: patch, after: driver(prevents(false))}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(v1alpha1.ProvisionerName, tc.driver, !tc.incomplete, tc.rules), cmp.AllowUnexported(decision{})); diff != "" {
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
	if got := decide(promises.Name, promises, true, "rules"); got.do != nothing {
		t.Errorf("decision %v, want none", got)
	}
	promises.Spec.StorageCapacity = ptr.To(true)
	if got := decide(promises.Name, promises, true, "rules"); got.do != patch || *got.after.Spec.StorageCapacity {
		t.Errorf("decision %v, want a patch that sets storageCapacity to false", got)
	}
}

func TestNamespaceRules(t *testing.T) {
	registration := func(name string, rules v1alpha1.NamespacesSpec, taints ...v1alpha1.NodeTaint) v1alpha1.ClusterRegistration {
		cr := v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
		cr.Spec.Namespaces = rules
		if taints != nil {
			cr.Spec.Node.Taints = &taints
		}
		return cr
	}
	gold := v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"tier": "gold", "example.com/team": ""}}
	named := registration("named", gold)
	const taint = "kosmos.io/node true NoSchedule"
	named.Spec.Node.Name = "edge"
	for name, tc := range map[string]struct {
		all  []v1alpha1.ClusterRegistration
		want string
	}{
		"no registration": {},
		"no rules":        {all: []v1alpha1.ClusterRegistration{registration("a", v1alpha1.NamespacesSpec{}), registration("b", v1alpha1.NamespacesSpec{Deny: &[]string{}})}},
		"the same rules share one line": {all: []v1alpha1.ClusterRegistration{registration("b", gold), registration("a", gold), named},
			want: taint + "\n\n" + taint + "\t*\nnamed,a,b\n example.com/team= \n \n\n" + taint + "\texample.com/team=\n,edge=named,kosmos-a=a,kosmos-b=b,\t\t\texample.com/team= tier=gold\tnamed,a,b"},
		"a label that other rules also require": {all: []v1alpha1.ClusterRegistration{registration("a", gold), registration("b", v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"example.com/team": ""}})},
			want: taint + "\n\n" + taint + "\t*\nb;a\n example.com/team= tier=gold \n \n\n" + taint + "\texample.com/team=\n,kosmos-b=b,\t\t\texample.com/team=\tb\n\n" +
				taint + "\ttier=gold\n,kosmos-a=a,\t\t\texample.com/team= tier=gold\ta"},
		"patterns": {all: []v1alpha1.ClusterRegistration{registration("a", v1alpha1.NamespacesSpec{Allow: []string{"team-*", "*-b-*"}, Deny: &[]string{"x"}})},
			want: taint + "\n\n" + taint + "\t*\na\n \n ^ ^team-\n\n" + taint + "\t^\n,kosmos-a=a,\t^(.*-b-.*|team-.*)$\t^(x)$\t\ta\n\n" + taint + "\t^team-\n,kosmos-a=a,\t^(.*-b-.*|team-.*)$\t^(x)$\t\ta"},
		"many patterns": {all: []v1alpha1.ClusterRegistration{registration("a", v1alpha1.NamespacesSpec{Allow: []string{"a", "b", "c", "d", "e"}})},
			want: taint + "\n\n" + taint + "\t*\na\n - \n \n\n" + taint + "\t-\n,kosmos-a=a,\t^(a|b|c|d|e)$\t\t\ta"},
		"different rules": {all: []v1alpha1.ClusterRegistration{
			registration("a", v1alpha1.NamespacesSpec{Deny: &[]string{"x"}}), registration("b", v1alpha1.NamespacesSpec{Deny: &[]string{"y"}}), registration("c", v1alpha1.NamespacesSpec{Deny: &[]string{"x"}}),
		}, want: taint + "\n\n" + taint + "\t*\na,c;b\n - \n \n\n" + taint + "\t-\n,kosmos-a=a,kosmos-c=c,\t\t^(x)$\t\ta,c\n,kosmos-b=b,\t\t^(y)$\t\tb"},
		"a label that would forge another line": {all: []v1alpha1.ClusterRegistration{registration("a", v1alpha1.NamespacesSpec{MatchLabels: map[string]string{"tier": "x\n,worker-1=a,"}})},
			want: taint + "\n\n" + taint + "\t*\na\n tier=! \n \n\n" + taint + "\ttier=!\n,kosmos-a=a,\t\t\ttier=!\ta"},
		"taints": {all: []v1alpha1.ClusterRegistration{
			registration("a", gold, v1alpha1.NodeTaint{Key: "k", Effect: "NoExecute"}, v1alpha1.NodeTaint{Key: "i", Value: "v", Effect: "NoSchedule"}),
			registration("b", gold, v1alpha1.NodeTaint{Key: "soft", Effect: "PreferNoSchedule"}),
		}, want: "|i v NoSchedule;k  NoExecute\n\n\t*\nb\n example.com/team= \n \n\ni v NoSchedule;k  NoExecute\t*\na\n example.com/team= \n \n\n" +
			"\texample.com/team=\n,kosmos-b=b,\t\t\texample.com/team= tier=gold\tb\n\ni v NoSchedule;k  NoExecute\texample.com/team=\n,kosmos-a=a,\t\t\texample.com/team= tier=gold\ta"},
	} {
		t.Run(name, func(t *testing.T) {
			got, complete := NamespaceRules(tc.all)
			if diff := cmp.Diff(tc.want, got); diff != "" || !complete {
				t.Errorf("complete: %t; rules (-want +got):\n%s", complete, diff)
			}
		})
	}
}

// The API server would reject an annotation that is too long, and then the rules would never change.
func TestNamespaceRulesFit(t *testing.T) {
	var all []v1alpha1.ClusterRegistration
	for i := range 1000 {
		cr := v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("member-%d", i)}}
		for j := range 8 {
			cr.Spec.Namespaces.Allow = append(cr.Spec.Namespaces.Allow, fmt.Sprintf("%050d-%d", i, j))
		}
		all = append(all, cr)
	}
	rules, complete := NamespaceRules(all)
	if complete || len(rules) > rulesLimit || len(rules) < rulesLimit*9/10 {
		t.Errorf("complete: %t, %d bytes", complete, len(rules))
	}
}
