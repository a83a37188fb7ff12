package route

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// These functions use reflect.DeepEqual, which is several times as fast as the semantic comparison.
// It may report a change where the semantic comparison would not.

// VolumeChanged is ConcernsFunc for host and member PVs. It ignores metadata that only Kubernetes
// uses, and the time of the last phase transition.
func VolumeChanged(before, after client.Object) bool {
	was, known := before.(*corev1.PersistentVolume)
	is, ok := after.(*corev1.PersistentVolume)
	return !known || !ok || metadataChanged(was, is) || was.Status.Phase != is.Status.Phase || !reflect.DeepEqual(was.Spec, is.Spec)
}

// ClaimChanged is ConcernsFunc for root and leaf claims. It compares metadata and spec.
func ClaimChanged(before, after client.Object) bool {
	was, known := before.(*corev1.PersistentVolumeClaim)
	is, ok := after.(*corev1.PersistentVolumeClaim)
	return !known || !ok || metadataChanged(was, is) || mirrorsnapshot.HasPendingSnapshot(was) != mirrorsnapshot.HasPendingSnapshot(is) || !reflect.DeepEqual(was.Spec, is.Spec)
}

// LeafClaimChanged is ConcernsFunc for leaf claims. It compares metadata, spec, phase and capacity.
func LeafClaimChanged(before, after client.Object) bool {
	was, known := before.(*corev1.PersistentVolumeClaim)
	is, ok := after.(*corev1.PersistentVolumeClaim)
	return !known || !ok || ClaimChanged(was, is) || was.Status.Phase != is.Status.Phase || !reflect.DeepEqual(was.Status.Capacity, is.Status.Capacity)
}

// PodChanged is ConcernsFunc for root and leaf Pods. It ignores the status that a kubelet reports for a
// Pod that has not finished.
func PodChanged(before, after client.Object) bool {
	was, known := before.(*corev1.Pod)
	is, ok := after.(*corev1.Pod)
	return !known || !ok || metadataChanged(was, is) || podstatus.IsPodFinished(was) != podstatus.IsPodFinished(is) || was.Status.Reason != is.Status.Reason ||
		was.Status.NominatedNodeName != is.Status.NominatedNodeName ||
		!reflect.DeepEqual(was.Spec, is.Spec) || !slices.EqualFunc(conditionsOfOthers(was.Status.Conditions), conditionsOfOthers(is.Status.Conditions), equalConditions)
}

func equalConditions(a, b corev1.PodCondition) bool { return reflect.DeepEqual(a, b) }

// conditionsOfOthers returns the Pod conditions that are not set by a kubelet.
func conditionsOfOthers(conditions []corev1.PodCondition) []corev1.PodCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodInitialized || c.Type == corev1.PodReady || c.Type == corev1.ContainersReady || c.Type == corev1.PodReadyToStartContainers
	})
}

// metadataChanged reports whether metadata has changed. It ignores other writers' finalizers, and
// annotations of the PV controller and provisioners; root_pvc compares the one that it reads itself.
func metadataChanged(was, is metav1.Object) bool {
	return was.GetUID() != is.GetUID() || !was.GetDeletionTimestamp().Equal(is.GetDeletionTimestamp()) ||
		FinalizersChanged(was, is) ||
		!slices.EqualFunc(was.GetOwnerReferences(), is.GetOwnerReferences(), func(a, b metav1.OwnerReference) bool { return a.UID == b.UID }) ||
		!maps.Equal(was.GetLabels(), is.GetLabels()) || !maps.Equal(comparedAnnotations(was.GetAnnotations()), comparedAnnotations(is.GetAnnotations()))
}

// FinalizersChanged reports whether the finalizers with which Xylem keeps a host PV have changed.
func FinalizersChanged(was, is metav1.Object) bool {
	return !slices.Equal(was.GetFinalizers(), is.GetFinalizers()) && !slices.Equal(keepingFinalizers(was), keepingFinalizers(is))
}

func keepingFinalizers(obj metav1.Object) []string {
	return slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool {
		return f != v1alpha1.FinalizerLeafVolume && !strings.HasPrefix(f, v1alpha1.FinalizerCopyPrefix)
	})
}

// comparedAnnotations drops the annotations of the PV controller and of provisioners, and the annotation that
// accompanies a condition.
func comparedAnnotations(annotations map[string]string) map[string]string {
	kept := maps.Clone(annotations)
	maps.DeleteFunc(kept, func(key, _ string) bool {
		return strings.HasPrefix(key, "pv.kubernetes.io/") || key == v1alpha1.AnnotationReportedBy || key == volumehelpers.AnnStorageProvisioner || key == volumehelpers.AnnBetaStorageProvisioner
	})
	return kept
}
