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

// seen returns an observation of a new claim of a promise class.
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

// bound binds the claim to its promise.
func bound(o *observed) {
	o.volume = hostpv.NewPromiseFor(o.claim, o.class)
	o.claim.Spec.VolumeName = o.volume.Name
	o.class = nil
}

func placed(o *observed) {
	bound(o)
	o.claim.Annotations[v1alpha1.AnnotationPlacedIn] = here.ClusterID
	o.volume = hostpv.PromiseWithMember(o.volume, here, nil)
}

func fulfilled(o *observed) {
	placed(o)
	o.volume = hostpv.FulfillPromise(o.volume, &corev1.PersistentVolume{
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
		return showCondition{corev1.ConditionFalse, v1alpha1.ReasonPromised, message}
	}
	const nowhere = "there is no disk yet: the claim's first Pod determines which member provisions it"
	lost := hostpv.NewPromiseFor(seen().claim, seen().class)
	lost.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	reused := lost.DeepCopy()
	reused.Name = "pvc-mock-u-0"
	for name, tc := range map[string]struct {
		observed observed
		want     decision
	}{
		"the claim does not exist":                                   {observed: observed{}, want: doNothing{}},
		"a new claim":                                                {observed: seen(), want: createPromise{hostpv.NewPromiseFor(seen().claim, seen().class)}},
		"a new claim whose class does not exist":                     {observed: seen(func(o *observed) { o.class = nil }), want: doNothing{}},
		"the class belongs to another provisioner":                   {observed: seen(func(o *observed) { o.class.Provisioner = "ebs.csi.aws.com" }), want: doNothing{}},
		"the class is in mirror mode":                                {observed: seen(func(o *observed) { o.class.Parameters = nil }), want: doNothing{}},
		"the class is invalid":                                       {observed: seen(func(o *observed) { o.class.Parameters["xylem.io/relaese"] = "x" }), want: doNothing{}},
		"the claim requests something that a promise cannot provide": {observed: seen(func(o *observed) { o.claim.Spec.Selector = &metav1.LabelSelector{} }), want: doNothing{}},
		"the claim names another volume":                             {observed: seen(func(o *observed) { o.claim.Spec.VolumeName = "v" }), want: doNothing{}},
		"the claim is being deleted":                                 {observed: seen(func(o *observed) { o.claim.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }), want: doNothing{}},
		"the promise exists, but is not bound yet":                   {observed: seen(bound, func(o *observed) { o.claim.Spec.VolumeName = "" }), want: doNothing{}},
		"the promise is being deleted, and the claim is not bound yet": {observed: seen(bound, func(o *observed) {
			o.claim.Spec.VolumeName = ""
			o.volume.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}), want: showCondition{corev1.ConditionFalse, v1alpha1.ReasonBroken, "PersistentVolume \"pvc-mock-u-1\", the promise for this claim, is being deleted, so the claim cannot be bound to it. Delete the claim and create it again"}},
		"the promise's claimRef was changed, so the claim is Lost": {observed: seen(bound, func(o *observed) {
			o.claim.Status.Phase = corev1.ClaimLost
			o.volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: o.claim.Namespace, Name: "other", UID: "u-2"}
		}), want: showCondition{corev1.ConditionFalse, v1alpha1.ReasonBroken, "the claimRef of PersistentVolume \"pvc-mock-u-1\", the promise for this claim, does not name the claim and its uid, so Kubernetes does not bind the claim to it. " +
			"Unless another claim needs the volume, set the PersistentVolume's spec.claimRef to namespace \"shop\", name \"data\" and uid \"u-1\""}},
		"the claim names another claim's promise": {observed: seen(func(o *observed) { o.claim.Spec.VolumeName = "pvc-mock-u-0" }), want: doNothing{}},
		"an earlier claim's promise, which the claim uses, was lost": {observed: seen(func(o *observed) {
			o.claim.Spec.VolumeName, o.claim.Status.Phase = "pvc-mock-u-0", corev1.ClaimLost
		}), want: createPromise{reused}},
		"the claim's promise was lost, and its class too": {observed: seen(func(o *observed) {
			o.claim.Spec.VolumeName, o.claim.Status.Phase, o.class = "pvc-mock-u-1", corev1.ClaimLost, nil
		}), want: showCondition{corev1.ConditionFalse, v1alpha1.ReasonBroken, "PersistentVolume \"pvc-mock-u-1\", the promise for this claim, is gone, and Xylem cannot re-create it, because the claim's StorageClass \"fast\" does not exist, or is not a class of Xylem in promise mode. If the promise had a disk, its member keeps the data. Create the class again, with its earlier parameters (if a class with this name exists, delete it first)"}},
		"the claim's promise was lost": {observed: seen(func(o *observed) { o.claim.Spec.VolumeName = "pvc-mock-u-1" }), want: createPromise{lost}},
		"the claim is bound to another volume": {observed: seen(func(o *observed) {
			o.claim.Spec.VolumeName = "v"
			o.volume = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
		}), want: doNothing{}},
		"the claim names a promise that is bound to another claim": {observed: seen(bound, func(o *observed) { o.volume.Spec.ClaimRef.UID = "u-2" }), want: doNothing{}},
		"the claim is bound":  {observed: seen(bound), want: promised(nowhere)},
		"the claim is placed": {observed: seen(placed), want: promised(`member "cluster38" is provisioning the volume`)},
		"the claim is placed, and the member reports a problem":     {observed: seen(placed, problem("ProvisioningFailed")), want: showCondition{corev1.ConditionFalse, v1alpha1.ReasonBroken, "ProvisioningFailed: no space left"}},
		"the claim is no longer placed, but has an earlier problem": {observed: seen(bound, problem("ProvisioningFailed")), want: promised(nowhere)},
		"the promise is fulfilled":                                  {observed: seen(fulfilled), want: showCondition{corev1.ConditionTrue, v1alpha1.ReasonFulfilled, `volume "pv-1" in member "cluster38": driver "disk.example.com", handle "d-1"`}},
		"the promise is fulfilled, and the claim has an unrelated problem": {observed: seen(fulfilled, problem("ModifyVolumeUnsupported")), want: showCondition{corev1.ConditionTrue, v1alpha1.ReasonFulfilled,
			`volume "pv-1" in member "cluster38": driver "disk.example.com", handle "d-1"`}},
		"the promise is fulfilled, but the member has lost the volume": {observed: seen(fulfilled, problem(v1alpha1.ReasonVolumeLost)), want: showCondition{corev1.ConditionFalse, v1alpha1.ReasonBroken, "VolumeLost: no space left"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decidePromiseAction(tc.observed), cmp.AllowUnexported(createPromise{}, showCondition{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}
