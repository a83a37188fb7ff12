package promise

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

var here = mirror.Member{Registration: "cluster38", ClusterID: "id38", NodeName: "kosmos-cluster38", HostID: "host-id"}

// seen returns a new claim of a promise class.
func seen(change ...func(*observed)) observed {
	class := "fast"
	o := observed{
		claim: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "u-1", Annotations: map[string]string{}},
			Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			}},
		},
		class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: v1alpha1.ProvisionerName,
			Parameters: map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise}},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// bound: the claim is bound to its promise.
func bound(o *observed) {
	o.volume = hostpv.PromiseFor(o.claim, o.class)
	o.claim.Spec.VolumeName = o.volume.Name
	o.class = nil
}

func placed(o *observed) {
	bound(o)
	o.claim.Annotations[v1alpha1.AnnotationPlacedIn] = here.ClusterID
	o.volume = hostpv.WithMember(o.volume, here, nil)
}

func fulfilled(o *observed) {
	placed(o)
	o.volume = hostpv.Fulfil(o.volume, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "leaf-uid"},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "d-1"},
		}},
	}, corev1.PersistentVolumeReclaimDelete, here)
}

func problem(reason string) func(*observed) {
	return func(o *observed) {
		o.claim.Status.Conditions = append(o.claim.Status.Conditions, corev1.PersistentVolumeClaimCondition{
			Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Reason: reason, Message: "no space left",
		})
	}
}

func TestDecide(t *testing.T) {
	promised := func(message string) decision {
		return show{corev1.ConditionFalse, v1alpha1.ReasonPromised, message}
	}
	const nowhere = "there is no disk yet: the member to which the first Pod of the claim is bound provisions it"
	lost := hostpv.PromiseFor(seen().claim, seen().class)
	lost.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	reused := lost.DeepCopy()
	reused.Name = "pvc-mock-u-0"
	for name, tc := range map[string]struct {
		observed observed
		want     decision
	}{
		"gone":                           {observed: observed{}, want: nothing{}},
		"new":                            {observed: seen(), want: create{hostpv.PromiseFor(seen().claim, seen().class)}},
		"new, no class":                  {observed: seen(func(o *observed) { o.class = nil }), want: nothing{}},
		"a class of another provisioner": {observed: seen(func(o *observed) { o.class.Provisioner = "ebs.csi.aws.com" }), want: nothing{}},
		"a class in mirror mode":         {observed: seen(func(o *observed) { o.class.Parameters = nil }), want: nothing{}},
		"an invalid class":               {observed: seen(func(o *observed) { o.class.Parameters["xylem.io/relaese"] = "x" }), want: nothing{}},
		"it requests too much":           {observed: seen(func(o *observed) { o.claim.Spec.Selector = &metav1.LabelSelector{} }), want: nothing{}},
		"it names a volume":              {observed: seen(func(o *observed) { o.claim.Spec.VolumeName = "v" }), want: nothing{}},
		"being deleted":                  {observed: seen(func(o *observed) { o.claim.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }), want: nothing{}},
		"promised, not bound yet":        {observed: seen(bound, func(o *observed) { o.claim.Spec.VolumeName = "" }), want: nothing{}},
		"deleted before the claim was bound": {observed: seen(bound, func(o *observed) {
			o.claim.Spec.VolumeName = ""
			o.volume.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}), want: show{corev1.ConditionFalse, v1alpha1.ReasonBroken, "PersistentVolume \"pvc-mock-u-1\", the promise for this claim, is being deleted, so that the claim cannot be bound to it. Delete the claim and create it again"}},
		"it names another claim's promise": {observed: seen(func(o *observed) { o.claim.Spec.VolumeName = "pvc-mock-u-0" }), want: nothing{}},
		"a reused promise was lost": {observed: seen(func(o *observed) {
			o.claim.Spec.VolumeName, o.claim.Status.Phase = "pvc-mock-u-0", corev1.ClaimLost
		}), want: create{reused}},
		"its promise was lost": {observed: seen(func(o *observed) { o.claim.Spec.VolumeName = "pvc-mock-u-1" }), want: create{lost}},
		"bound to another volume": {observed: seen(func(o *observed) {
			o.claim.Spec.VolumeName = "v"
			o.volume = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
		}), want: nothing{}},
		"bound to a promise for another": {observed: seen(bound, func(o *observed) { o.volume.Spec.ClaimRef.UID = "u-2" }), want: nothing{}},
		"bound":                          {observed: seen(bound), want: promised(nowhere)},
		"placed":                         {observed: seen(placed), want: promised(`member "cluster38" is provisioning the volume`)},
		"placed, with a problem":         {observed: seen(placed, problem("ProvisioningFailed")), want: show{corev1.ConditionFalse, v1alpha1.ReasonBroken, "ProvisioningFailed: no space left"}},
		"released, with an old report":   {observed: seen(bound, problem("ProvisioningFailed")), want: promised(nowhere)},
		"fulfilled":                      {observed: seen(fulfilled), want: show{corev1.ConditionTrue, v1alpha1.ReasonFulfilled, `volume "pv-1" in member "cluster38": driver "disk.example.com", handle "d-1"`}},
		"fulfilled, with an unrelated report": {observed: seen(fulfilled, problem("ModifyVolumeUnsupported")), want: show{corev1.ConditionTrue, v1alpha1.ReasonFulfilled,
			`volume "pv-1" in member "cluster38": driver "disk.example.com", handle "d-1"`}},
		"the member has lost it": {observed: seen(fulfilled, problem(v1alpha1.ReasonVolumeLost)), want: show{corev1.ConditionFalse, v1alpha1.ReasonBroken, "VolumeLost: no space left"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.observed), cmp.AllowUnexported(create{}, show{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}
