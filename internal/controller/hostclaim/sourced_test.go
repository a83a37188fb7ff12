package hostclaim

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
)

// copying sets the claim's data source to claim "golden", which is in member "b".
func copying(change ...func(*observed)) func(*observed) {
	return func(o *observed) {
		golden := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "golden", UID: "golden-uid"}}
		golden.Spec.VolumeName, golden.Status.Phase = "pv-1", corev1.ClaimBound
		leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-1"}}
		leaf.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"}
		o.claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "golden"}
		o.source = &placement.CopySource{Claim: golden, Volume: hostpv.TranslateVolume(leaf, golden, corev1.PersistentVolumeReclaimDelete, mirror.Member{Registration: "b", ClusterID: "id-b"})}
		o.members = []placement.Candidate{offers("a"), memberOf("b", connected, withClass, labelled)}
		for _, c := range change {
			c(o)
		}
		o.source.Of, _ = mirror.DataSourceOf(o.claim)
	}
}

// labelled adds the member's node, with labels that Pods can select.
func labelled(cr *v1alpha1.ClusterRegistration, m *placement.Candidate) {
	m.Node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: cr.Spec.Node.Name, Labels: map[string]string{
		"member": cr.Name, v1alpha1.LabelClusterID: cr.Status.ClusterID}}}
}

// waits adds a Pod that cannot be scheduled. The Pod selects the given member, if any, and uses the
// other claims.
func waits(name, member string, others ...otherClaim) func(*observed) {
	return func(o *observed) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		if member != "" {
			pod.Spec.NodeSelector = map[string]string{"member": member}
		}
		o.podUnschedulable = true
		o.pods = append(o.pods, waitingPod{pod, others})
	}
}

// volumeIn returns the host PV of a volume in the given member.
func volumeIn(cluster string) *corev1.PersistentVolume {
	claim := &corev1.PersistentVolumeClaim{}
	leaf := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-9", UID: "leaf-9"}}
	return hostpv.TranslateVolume(leaf, claim, corev1.PersistentVolumeReclaimDelete, mirror.Member{ClusterID: cluster})
}

// host_claim reports why the member with the data source cannot create the claim, and leaves the
// selection to the controller source.
func TestSourced(t *testing.T) {
	inB := func(change ...func(*v1alpha1.ClusterRegistration, *placement.Candidate)) func(*observed) {
		return func(o *observed) { o.members[1] = memberOf("b", change...) }
	}
	placed := func(o *observed) {
		metav1.SetMetaDataAnnotation(&o.claim.ObjectMeta, v1alpha1.AnnotationPlacedIn, "id-b")
	}
	ofImage := func(o *observed) {
		o.claim.Spec.DataSource = nil
		o.claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: ptr.To("example.com"), Kind: "Image", Name: "i"}
	}
	gone := func(o *observed) { o.source.Claim = nil }
	for name, tc := range map[string]struct {
		observed observed
		reason   string
		says     []string
	}{
		"the source is ready":                                                  {observed: seen(copying())},
		"another node is selected":                                             {observed: seen(copying(), selected(virtualNode))},
		"a host node is selected":                                              {observed: seen(copying(), selected(hostNode))},
		"the selected node does not exist":                                     {observed: seen(copying(), selected(missingNode))},
		"the source does not exist":                                            {observed: seen(copying(gone)), reason: v1alpha1.ReasonSourceNotReady, says: []string{`claim "golden"`}},
		"the source does not exist, and a host node is selected":               {observed: seen(copying(gone), selected(hostNode)), reason: v1alpha1.ReasonSourceNotReady},
		"the source does not exist, but the claim is placed: root_pvc reports": {observed: seen(copying(gone), placed)},
		"the source's member is not registered":                                {observed: seen(copying(func(o *observed) { o.members = o.members[:1] })), reason: v1alpha1.ReasonSourceNotReady, says: []string{`"id-b"`, "not registered"}},
		"the source's member is not connected":                                 {observed: seen(copying(inB(withClass))), reason: v1alpha1.ReasonMemberAway, says: []string{`member "b"`, "continues"}},
		"the manager is connecting to the source's member":                     {observed: seen(copying(inB(connecting)))},
		"the source's member does not admit the claim's namespace":             {observed: seen(copying(inB(connected, withClass, refuses))), reason: v1alpha1.ReasonNamespaceNotAdmitted, says: []string{`only be created in member "b"`}},
		"the class excludes the source's member":                               {observed: seen(copying(inB(connected, withClass, inZone("z2"))), onlyIn("z1")), reason: v1alpha1.ReasonSourceElsewhere, says: []string{"allowedTopologies"}},
		"the source's member lacks the class":                                  {observed: seen(copying(inB(connected, mapped)), stuck), reason: v1alpha1.ReasonNotOffered, says: []string{`no StorageClass "gp3"`}},
		"a Pod that selects no member waits":                                   {observed: seen(copying(), waits("app", ""))},
		"a Pod selects the source's member":                                    {observed: seen(copying(), waits("app", "b"))},
		"a Pod selects another member":                                         {observed: seen(copying(), waits("app", "a")), reason: v1alpha1.ReasonSourceElsewhere, says: []string{`member "b"`, `Pod "app"`, "nodeSelector"}},
		"one of two Pods selects another member":                               {observed: seen(copying(), waits("app", "a"), waits("web", ""))},
		"both Pods select another member":                                      {observed: seen(copying(), waits("app", "a"), waits("web", "a")), reason: v1alpha1.ReasonSourceElsewhere, says: []string{`Pod "app"`, `Pod "web"`}},
		"the Pod has another volume, in the source's member":                   {observed: seen(copying(), waits("app", "", otherClaim{name: "logs", volume: volumeIn("id-b")}))},
		"the Pod has another volume, in another member":                        {observed: seen(copying(), waits("app", "", otherClaim{name: "logs", volume: volumeIn("id-a")})), reason: v1alpha1.ReasonSourceElsewhere, says: []string{`the volume of its claim "logs" is elsewhere`}},
		"the Pod has another claim, whose source is in another member":         {observed: seen(copying(), waits("app", "", otherClaim{name: "logs", record: mirror.DataSourceRecord{ClusterID: "id-a", UID: "u"}})), reason: v1alpha1.ReasonSourceElsewhere, says: []string{`the data source of its claim "logs" is elsewhere`}},
		"the class binds immediately":                                          {observed: seen(copying(func(o *observed) { o.class.VolumeBindingMode = nil })), reason: v1alpha1.ReasonImmediate},
		"a promise whose source is ready":                                      {observed: seen(copying(), parameter(v1alpha1.ParameterProvisioning, v1alpha1.ProvisioningPromise))},
		"a promise whose source does not exist":                                {observed: seen(copying(gone), parameter(v1alpha1.ParameterProvisioning, v1alpha1.ProvisioningPromise)), reason: v1alpha1.ReasonSourceNotReady},
		"a populator's source, whose kind no registration lists":               {observed: seen(copying(ofImage)), reason: v1alpha1.ReasonDataSourceUnsupported, says: []string{"Image.example.com", "spec.storage.dataSources"}},
		"a populator's source, which a populator of the host handles":          {observed: seen(copying(ofImage, func(o *observed) { o.handledByPopulator = true }))},
		"a populator's source, in another namespace":                           {observed: seen(copying(ofImage, func(o *observed) { o.claim.Spec.DataSourceRef.Namespace = ptr.To("victim") })), reason: v1alpha1.ReasonDataSourceUnsupported, says: []string{"another namespace"}},
		"the source is a claim in another namespace": {observed: seen(copying(func(o *observed) {
			o.claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "golden", Namespace: ptr.To("victim")}
		})), reason: v1alpha1.ReasonDataSourceUnsupported, says: []string{"another namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := decideForClaim(tc.observed)
			if got.reason != tc.reason || got.unselect {
				t.Errorf("decision is %+v, want reason %q, and the selection to stay", got, tc.reason)
			}
			for _, part := range tc.says {
				if !strings.Contains(got.note, part) {
					t.Errorf("note is %q, want it to contain %q", got.note, part)
				}
			}
		})
	}
}
