package source

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

// seen returns an observation of a new claim. Its data source is claim "golden", which is in member
// "b".
func seen(change ...func(*observed)) observed {
	golden := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "golden", UID: "golden-uid"}}
	golden.Spec.VolumeName, golden.Status.Phase = "pv-1", corev1.ClaimBound
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-1"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}}}}
	o := observed{
		claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "copy", Annotations: map[string]string{}}},
		class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: v1alpha1.ProvisionerName,
			VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)},
		source:  &placement.CopySource{Claim: golden, Volume: hostpv.TranslateVolume(leaf, golden, corev1.PersistentVolumeReclaimDelete, mirror.Member{Registration: "b", ClusterID: "id-b"})},
		members: []placement.Candidate{member("a"), member("b"), member("c", image)},
	}
	o.claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "golden"}
	for _, c := range change {
		c(&o)
	}
	o.source.Of, _ = mirror.DataSourceOf(o.claim)
	return o
}

func member(name string, change ...func(*v1alpha1.ClusterRegistration)) placement.Candidate {
	cr := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cr.Spec.Node.Name, cr.Status.ClusterID = "node-"+name, "id-"+name
	for _, c := range change {
		c(cr)
	}
	return placement.Candidate{Member: placement.MemberOfRegistration(cr, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + name}}), Connection: placement.Connection{Connected: true}}
}

// image makes a registration list kind Image, which only a populator can read.
func image(cr *v1alpha1.ClusterRegistration) {
	cr.Spec.Storage.DataSources = []v1alpha1.DataSourceKind{{APIGroup: "example.com", Kind: "Image"}}
}

func ofImage(o *observed) {
	o.claim.Spec.DataSource = nil
	o.claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: ptr.To("example.com"), Kind: "Image", Name: "i"}
	o.source.Claim, o.source.Volume = nil, nil
}

func annotated(pairs ...string) func(*observed) {
	return func(o *observed) {
		for i := 0; i < len(pairs); i += 2 {
			o.claim.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func selected(node string) func(*observed) { return annotated(route.AnnSelectedNode, node) }

// requested adds the annotation in which the PV controller records the provisioner.
func requested(o *observed) {
	annotated(volumehelpers.AnnStorageProvisioner, v1alpha1.ProvisionerName)(o)
}

// lost adds a Pod whose nomination the scheduler lost.
func lost(o *observed) {
	pod := corev1.Pod{}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulerError}}
	o.pods = append(o.pods, pod)
}

func steered(node string) func(*observed) {
	return annotated(route.AnnSelectedNode, node, v1alpha1.AnnotationSteeredTo, node, v1alpha1.AnnotationSource, "id-b/golden-uid")
}

func promises(o *observed) {
	o.class.Parameters = map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise}
}

func without(name string) func(*observed) {
	return func(o *observed) {
		var left []placement.Candidate
		for _, m := range o.members {
			if m.Registration != name {
				left = append(left, m)
			}
		}
		o.members = left
	}
}

func TestDecide(t *testing.T) {
	record := &mirror.DataSourceRecord{ClusterID: "id-b", UID: "golden-uid"}
	goes := decision{write: true, node: "node-b", record: record}
	for name, tc := range map[string]struct {
		observed observed
		want     decision
	}{
		"the claim has no Pod yet":                                                     {seen(), goes},
		"the scheduler chose another member":                                           {seen(selected("node-a")), goes},
		"the scheduler chose a host node":                                              {seen(selected("worker-1")), goes},
		"the scheduler chose the source's member: the source is recorded":              {seen(selected("node-b")), goes},
		"the source's member is selected and recorded":                                 {seen(steered("node-b")), decision{}},
		"the scheduler selected another member after the source's member was recorded": {seen(steered("node-b"), selected("node-a")), goes},
		"root_pod removed the selected node, so that the scheduler chooses again":      {seen(steered("node-b"), selected(""), lost), decision{}},
		"somebody else removed the selected node":                                      {seen(steered("node-b"), selected("")), goes},
		"a Pod lost its nomination, and the claim was never steered":                   {seen(lost), goes},
		"a Pod lost its nomination, and the scheduler chose another member":            {seen(steered("node-b"), selected("node-a"), lost), goes},
		"the source's member is not connected":                                         {seen(func(o *observed) { o.members[1].Connection = placement.Connection{} }), goes},
		"the source's member has no node":                                              {seen(func(o *observed) { o.members[1].Node = nil }), decision{}},
		"the source's member is not registered":                                        {seen(without("b")), decision{}},
		"the source's member was selected, and then deregistered":                      {seen(steered("node-b"), without("b")), decision{write: true, removeSelection: true}},
		"the source was deleted after its member was selected":                         {seen(steered("node-b"), func(o *observed) { o.source.Claim = nil }), decision{}},
		"the source was re-created after another member was selected":                  {seen(steered("node-a"), func(o *observed) { o.source.Claim.UID = "newer" }), decision{}},
		"the source is not bound":                                                      {seen(selected("node-a"), func(o *observed) { o.source.Claim.Spec.VolumeName = "" }), decision{}},
		"the claim is already placed":                                                  {seen(annotated(v1alpha1.AnnotationPlacedIn, "id-b")), decision{}},
		"the claim is bound":                                                           {seen(func(o *observed) { o.claim.Spec.VolumeName = "pv-2" }), decision{}},
		"the claim is being deleted":                                                   {seen(func(o *observed) { o.claim.DeletionTimestamp = &metav1.Time{} }), decision{}},
		"the class belongs to another provisioner":                                     {seen(func(o *observed) { o.class.Provisioner = "host.example.com" }), decision{}},
		"the class binds immediately":                                                  {seen(func(o *observed) { o.class.VolumeBindingMode = nil }), decision{}},
		"the class is invalid":                                                         {seen(func(o *observed) { o.class.Parameters = map[string]string{"xylem.io/nonsense": "x"} }), decision{}},

		"a promise: only the source is recorded":                            {seen(promises), decision{write: true, record: record}},
		"a promise whose source is already recorded":                        {seen(promises, annotated(v1alpha1.AnnotationSource, "id-b/golden-uid")), decision{}},
		"a promise whose source is not ready":                               {seen(promises, func(o *observed) { o.source.Claim.Spec.VolumeName = "" }), decision{}},
		"a promise that is released with its last Pod: nothing is recorded": {seen(promises, func(o *observed) { o.class.Parameters[v1alpha1.ParameterRelease] = v1alpha1.ReleaseWhenUnused }), decision{}},

		"a populator's source, and no node is selected yet":                                   {seen(ofImage), decision{}},
		"a populator's source, and the selected member's registration lists its kind":         {seen(ofImage, selected("node-c"), requested), decision{}},
		"a populator's source, and the selected member's registration does not list its kind": {seen(ofImage, selected("node-a"), requested), decision{write: true, node: "node-c"}},
		"a populator's source, before the PV controller records the provisioner":              {seen(ofImage, selected("node-a")), decision{}},
		"a populator's source, whose kind no registration lists":                              {seen(ofImage, selected("node-a"), requested, without("c")), decision{}},
		"a populator's source, and a host node is selected":                                   {seen(ofImage, selected("worker-1"), requested), decision{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decideNodeSelection(tc.observed), cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A member with spec.nodes is selected by one of its virtual nodes.
func TestDecideForGroups(t *testing.T) {
	groups := func(cordoned ...string) func(*observed) {
		return func(o *observed) {
			o.members = nil
			for _, name := range []string{"x", "y"} {
				m := member("b")
				m.Node.Name = v1alpha1.GroupNodeName(name, m.NodeName)
				m.Node.Spec.Unschedulable = slices.Contains(cordoned, name)
				m.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
				o.members = append(o.members, m)
			}
			o.members = append(o.members, member("a"))
		}
	}
	for name, tc := range map[string]struct {
		observed observed
		want     string // "" if nothing is written
	}{
		"the scheduler chose a node of the source's member": {seen(groups(), selected("y.node-b")), "y.node-b"},
		"the scheduler chose another member":                {seen(groups("x"), selected("node-a")), "y.node-b"},
		"recovery selected another node":                    {seen(groups(), steered("y.node-b")), ""},
		"the selected node is gone":                         {seen(groups("y"), steered("z.node-b")), "x.node-b"},
		"somebody removed the selection":                    {seen(groups(), steered("y.node-b"), selected("")), "y.node-b"},
		"the selection was removed, and the node cordoned":  {seen(groups("y"), steered("y.node-b"), selected("")), "x.node-b"},
		"no node accepts Pods, and one is selected":         {seen(groups("x", "y"), steered("y.node-b")), ""},
	} {
		if got := decideNodeSelection(tc.observed); got.node != tc.want || got.write != (tc.want != "") {
			t.Errorf("%s: %+v, want %q", name, got, tc.want)
		}
	}
}
