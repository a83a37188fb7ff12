package moves

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

const (
	namespace = "shop"
	className = "fast"
	name      = "data" // the claim that is moved
	userPod   = "app"
)

// The kinds of objects in a world.
const (
	claims  = "PersistentVolumeClaim"
	volumes = "PersistentVolume"
	pods    = "Pod"
	records = "ConfigMap"
)

func keyOf(obj client.Object) key {
	switch obj.(type) {
	case *corev1.PersistentVolumeClaim:
		return key{claims, obj.GetName()}
	case *corev1.PersistentVolume:
		return key{volumes, obj.GetName()}
	case *corev1.Pod:
		return key{pods, obj.GetName()}
	case *corev1.ConfigMap:
		return key{records, obj.GetName()}
	}
	return key{fmt.Sprintf("%T", obj), obj.GetName()}
}

// places are the two members.
var places = [members]mirror.Member{
	{Registration: "one", ClusterID: "id-one", NodeName: "kosmos-one", HostID: "id-host"},
	{Registration: "two", ClusterID: "id-two", NodeName: "kosmos-two", HostID: "id-host"},
}

var deleted = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

func size() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
}

// newClaim returns a claim as a user creates it.
func newClaim(uid types.UID) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To(className),
			VolumeMode: ptr.To(corev1.PersistentVolumeFilesystem), Resources: corev1.VolumeResourceRequirements{Requests: size()},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
}

// mirrorOf returns the host PV for a claim's disk in a member, which provisioned the disk for the claim
// unless existed is set.
func mirrorOf(claim *corev1.PersistentVolumeClaim, uid types.UID, policy corev1.PersistentVolumeReclaimPolicy, member int, existed bool) *corev1.PersistentVolume {
	leafClaim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "leaf-claim"}}
	leaf := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(uid), UID: "leaf-" + uid, Annotations: map[string]string{volumehelpers.AnnDynamicallyProvisioned: "disk.example.com"}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode, StorageClassName: className, Capacity: size(),
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "handle"}},
			ClaimRef:               &corev1.ObjectReference{UID: leafClaim.UID},
		},
	}
	if existed {
		leaf.Annotations[volumehelpers.AnnBoundByController] = "yes"
	}
	pv := hostpv.TranslateVolume(leaf, claim, policy, places[member])
	hostpv.RecordProvisioned(pv, leaf, leafClaim)
	pv.UID, pv.Status.Phase = uid, corev1.VolumeBound
	return pv
}

// memberOf returns the member that has a host PV's disk.
func memberOf(pv *corev1.PersistentVolume) int {
	if pv.Labels[v1alpha1.LabelClusterID] == places[from].ClusterID {
		return from
	}
	return to
}

// newPod returns a Pod of the user.
func newPod(uid types.UID) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: userPod, UID: uid},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// fixed returns the objects that commands only read.
func (w *world) fixed() []client.Object {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: className}, Provisioner: v1alpha1.ProvisionerName,
			VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)},
	}
	for n, place := range places {
		status, reason := metav1.ConditionTrue, v1alpha1.ReasonConnected
		switch {
		case w.unconfirmed:
			status, reason = metav1.ConditionFalse, v1alpha1.ReasonHostRestored
		case w.away[n]:
			status, reason = metav1.ConditionFalse, v1alpha1.ReasonUnreachable
		}
		registration := &v1alpha1.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: place.Registration, UID: types.UID("registration-" + place.Registration)},
			Status: v1alpha1.ClusterRegistrationStatus{ClusterID: place.ClusterID, LastRestored: ptr.To(metav1.Unix(int64(w.restores), 0)), Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionConnected, Status: status, Reason: reason},
				{Type: v1alpha1.ConditionReady, Status: status, Reason: reason},
			}},
		}
		labels := map[string]string{v1alpha1.LabelClusterID: place.ClusterID}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: place.NodeName, Labels: map[string]string{
			v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelVirtualNode: "true", v1alpha1.LabelClusterID: place.ClusterID,
		}}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionStatus(status)}}
		objects = append(objects, registration, node, &storagev1.CSIStorageCapacity{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: place.Registration}, StorageClassName: className,
			NodeTopology: &metav1.LabelSelector{MatchLabels: labels}, Capacity: ptr.To(resource.MustParse("1Ti")),
		})
	}
	return objects
}
