package model

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

const (
	namespace = "shop"
	className = "fast"
	system    = "xylem-system"
	driver    = "disk.example.com"

	pvcProtection = "kubernetes.io/pvc-protection"
	pvProtection  = "kubernetes.io/pv-protection"
)

// here is the modeled member. there is another member. The model contains only its objects in the
// host, unless Bounds.Members is set.
var (
	here  = mirror.Member{Registration: "one", ClusterID: "id-one", NodeName: "kosmos-one", HostID: "id-host"}
	there = mirror.Member{Registration: "two", ClusterID: "id-two", NodeName: "kosmos-two", HostID: "id-host"}

	// claimNames are the names of claims in both clusters.
	claimNames = [names]string{"data", "logs", "data-copy"}
)

// The model's points in time, from earliest to latest. The creation time of an object is "before"
// or, if a restore preceded the creation, "after". The time of each restore is "restored", and that
// of each deletion is "deleted".
var (
	before   = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	restored = before.Add(time.Hour)
	after    = metav1.NewTime(before.Add(2 * time.Hour))
	deleted  = metav1.NewTime(before.Add(3 * time.Hour))
)

// id identifies an object in a certain state. Equal states have the same id, which is also the
// resourceVersion. 0 means no object.
type id int32

// objects contains all objects that were ever created, by id. They never change.
type objects struct {
	mu     sync.RWMutex
	ids    map[string]id
	claims map[id]*corev1.PersistentVolumeClaim
	pvs    map[id]*corev1.PersistentVolume
	pods   map[id]*corev1.Pod
}

func newObjects() *objects {
	return &objects{ids: map[string]id{}, claims: map[id]*corev1.PersistentVolumeClaim{}, pvs: map[id]*corev1.PersistentVolume{}, pods: map[id]*corev1.Pod{}}
}

type encoded interface {
	client.Object
	Marshal() ([]byte, error)
}

// keep stores an object and returns its id, or 0 for nil. The caller must not modify the object
// afterwards.
func (o *objects) keep(obj encoded) id {
	obj.SetResourceVersion("")
	bytes, err := obj.Marshal() // Marshal sorts map keys
	if err != nil {
		panic(err)
	}
	key := fmt.Sprintf("%T%s", obj, bytes)
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, ok := o.ids[key]; ok {
		return known
	}
	made := id(len(o.ids) + 1) //nolint:gosec // memory ends before
	o.ids[key] = made
	obj.SetResourceVersion(strconv.Itoa(int(made)))
	switch obj := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		o.claims[made] = obj
	case *corev1.PersistentVolume:
		o.pvs[made] = obj
	case *corev1.Pod:
		o.pods[made] = obj
	}
	return made
}

// claim returns the claim with the given id, or nil for 0. Do not modify it.
func (o *objects) claim(i id) *corev1.PersistentVolumeClaim {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.claims[i]
}

// pv returns the PV with the given id, or nil for 0. Do not modify it.
func (o *objects) pv(i id) *corev1.PersistentVolume {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.pvs[i]
}

// pod returns the Pod with the given id, or nil for 0. Do not modify it.
func (o *objects) pod(i id) *corev1.Pod {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.pods[i]
}

// changePod applies a change to a copy of a Pod, and returns the copy's id.
func (o *objects) changePod(i id, change func(*corev1.Pod)) id {
	pod := o.pod(i).DeepCopy()
	change(pod)
	return o.keep(pod)
}

// newPod returns a Pod that uses the first claim.
func newPod(uid types.UID) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app", UID: uid, CreationTimestamp: before},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimNames[0]}}}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// changeClaim applies a change to a copy of a claim, and returns the copy's id.
func (o *objects) changeClaim(i id, change func(*corev1.PersistentVolumeClaim)) id {
	claim := o.claim(i).DeepCopy()
	change(claim)
	return o.keep(claim)
}

// changePV applies a change to a copy of a PV, and returns the copy's id.
func (o *objects) changePV(i id, change func(*corev1.PersistentVolume)) id {
	pv := o.pv(i).DeepCopy()
	change(pv)
	return o.keep(pv)
}

// larger is the size that an expanded claim requests.
var larger = resource.MustParse("2Gi")

func sized(size resource.Quantity) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: size}
}

// newRoot returns a claim like one that a user creates.
func newRoot(name string, uid types.UID) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid, CreationTimestamp: before, Finalizers: []string{pvcProtection}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To(className),
			VolumeMode: ptr.To(corev1.PersistentVolumeFilesystem),
			Resources:  corev1.VolumeResourceRequirements{Requests: sized(resource.MustParse("1Gi"))},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
}

// newLeafVolume returns the PV that the member's provisioner creates for a leaf claim.
func newLeafVolume(claim *corev1.PersistentVolumeClaim, uid types.UID, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	name := leafName(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, Finalizers: []string{pvProtection}, CreationTimestamp: before,
			Annotations: map[string]string{volumehelpers.AnnDynamicallyProvisioned: driver}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode, StorageClassName: className,
			Capacity: claim.Spec.Resources.Requests, PersistentVolumeReclaimPolicy: policy, ClaimRef: reference(claim),
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "disk-" + name}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumePending},
	}
}

func leafName(claim types.UID) string { return "pvc-" + string(claim) }

func reference(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
}

// elsewhere returns the host PV for a claim's volume in the other member.
func elsewhere(root *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: root.Name, UID: elsewhereUID(root.Name)}}
	claim.Spec = root.Spec
	pv := hostpv.TranslateVolume(newLeafVolume(claim, "l-two", corev1.PersistentVolumeReclaimDelete), root, corev1.PersistentVolumeReclaimDelete, there)
	pv.UID, pv.Status.Phase, pv.ResourceVersion = types.UID("h-two-"+root.Name), corev1.VolumeBound, "1"
	return pv
}

func elsewhereUID(name string) types.UID { return types.UID("c-two-" + name) }

// elsewhereNames are the names of the claims' volumes in the other member.
var elsewhereNames = func() (all [names]string) {
	for c, name := range claimNames {
		all[c] = leafName(elsewhereUID(name))
	}
	return all
}()

func hostClass(policy corev1.PersistentVolumeReclaimPolicy, mode mode) *storagev1.StorageClass {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: className}, Provisioner: v1alpha1.ProvisionerName,
		ReclaimPolicy: &policy, VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	if mode != mirrors {
		class.Parameters = map[string]string{v1alpha1.ParameterProvisioning: v1alpha1.ProvisioningPromise}
	}
	if mode == promisesWhileUsed {
		class.Parameters[v1alpha1.ParameterRelease], class.Parameters[v1alpha1.ParameterReleaseGrace] = v1alpha1.ReleaseWhenUnused, "1m"
	}
	return class
}

// registration returns the member's registration.
func registration() *v1alpha1.ClusterRegistration {
	return &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: here.Registration, UID: "registration"}, Status: v1alpha1.ClusterRegistrationStatus{ClusterID: here.ClusterID}}
}

// record returns the host's record of the member, without content, because the model does not use
// it.
func record(of mirror.Member) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: fencing.HostRecordName(of.ClusterID), UID: "record",
		Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}}}
}

func leafClass(policy corev1.PersistentVolumeReclaimPolicy) *storagev1.StorageClass {
	class := hostClass(policy, mirrors)
	class.Provisioner = driver
	return class
}

func hostNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, UID: "ns-host"}}
}

func leafNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, UID: "ns-leaf", Labels: map[string]string{
		v1alpha1.LabelHost: here.HostID, v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}}}
}
