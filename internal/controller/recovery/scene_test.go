package recovery

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/controller/recovery/reassignment"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/route"
)

var (
	here = mirror.Member{Registration: "first", ClusterID: "id1", NodeName: "kosmos-first", HostID: "host-id"}
	now  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

// seen returns an observation of a 1Gi claim that is placed in this member, and of its Pod, which
// has been unschedulable for an hour.
func seen(change ...func(*reassignment.Observed)) reassignment.Observed {
	data := reassignment.Claim{
		Root: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", Annotations: map[string]string{
				route.AnnSelectedNode: here.NodeName, v1alpha1.AnnotationPlacedIn: here.ClusterID,
			}},
			Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
		},
		Class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: v1alpha1.ProvisionerName},
	}
	o := reassignment.Observed{
		Member: here, Now: now, Nominated: true, Claim: &data, Group: []reassignment.Claim{data},
		Pods: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
		}}}}},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func unchanged(*reassignment.Observed) {}

func annotated(key, value string) func(*reassignment.Observed) {
	return func(o *reassignment.Observed) { o.Claim.Root.Annotations[key] = value }
}

func bound(o *reassignment.Observed)     { o.Claim.Root.Spec.VolumeName = "pvc-1" }
func noPod(o *reassignment.Observed)     { o.Pods = nil }
func nominated(o *reassignment.Observed) { o.Pods[0].Status.NominatedNodeName = here.NodeName }

func small(o *reassignment.Observed) {
	o.Claim.Root.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
}

func pushed(o *reassignment.Observed) {
	o.Pods[0].Status.Conditions = append(o.Pods[0].Status.Conditions, corev1.PodCondition{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue})
}
