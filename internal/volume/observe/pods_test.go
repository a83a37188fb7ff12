package observe

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/route"
)

const elsewhere = "kosmos-cluster39"

// cached is a cache of Pods, and of a claim if it is not nil.
type cached struct {
	client.Reader
	pods  []corev1.Pod
	claim *corev1.PersistentVolumeClaim
}

func (c cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if pods, ok := list.(*corev1.PodList); ok {
		pods.Items = c.pods
	}
	return nil
}

func (c cached) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	claim, ok := into.(*corev1.PersistentVolumeClaim)
	if !ok || c.claim == nil || client.ObjectKeyFromObject(c.claim) != key {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	c.claim.DeepCopyInto(claim)
	return nil
}

// nominatedPod returns a Pod that the scheduler will bind here once the volume of its other claim
// is bound.
func nominatedPod() corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	for _, claim := range []string{"data", "other"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	pod.Status.NominatedNodeName = here.NodeName
	return pod
}

// PodsOfClaimHere returns Pods that are bound to the member's node, or are about to be because the node
// was selected for another of their claims.
func TestPodsHere(t *testing.T) {
	other := func(node, volume string) *corev1.PersistentVolumeClaim {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", Annotations: map[string]string{}}}
		claim.Annotations[route.AnnSelectedNode] = node
		claim.Spec.VolumeName = volume
		return claim
	}
	boundTo := func(node string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.NodeName = node }
	}
	for name, tc := range map[string]struct {
		pod   func(*corev1.Pod)
		other *corev1.PersistentVolumeClaim
		want  bool
	}{
		"bound here":      {pod: boundTo(here.NodeName), want: true},
		"bound elsewhere": {pod: boundTo(elsewhere), other: other(here.NodeName, "")},
		"nominated":       {other: other("", "")},
		"nominated, and the node is selected for the other claim": {other: other(here.NodeName, ""), want: true},
		"nominated, and the other claim is bound":                 {other: other(here.NodeName, "pv-2"), want: true},
		"nominated, but the other claim is in another member":     {other: other(elsewhere, "pv-2")},
		"nominated, but the other claim is a promise":             {other: other(here.NodeName, hostpv.PromiseName("other-uid"))},
		"nominated, but the other claim does not exist":           {},
		"nominated elsewhere":                                     {pod: func(pod *corev1.Pod) { pod.Status.NominatedNodeName = elsewhere }, other: other(here.NodeName, "")},
	} {
		t.Run(name, func(t *testing.T) {
			pod := nominatedPod()
			if tc.pod != nil {
				tc.pod(&pod)
			}
			host := cached{pods: []corev1.Pod{pod}, claim: tc.other}
			o := Observer{Prover: proof.Prover{Member: here, Host: host}}
			here, err := o.PodsOfClaimHere(t.Context(), types.NamespacedName{Namespace: "shop", Name: "data"})
			if err != nil || (len(here) == 1) != tc.want {
				t.Errorf("got %d Pods (%v), want the Pod: %t", len(here), err, tc.want)
			}
		})
	}
}

// Not every Pod on the member's node makes Xylem provision a disk.
func TestUses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"a Pod":                       {func(*corev1.Pod) {}, true},
		"a Pod that has finished":     {func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, false},
		"a Pod that is being deleted": {func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_800_000_000, 0)} }, false},
		"a DaemonSet's Pod, which is never pushed": {func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", Controller: ptr.To(true)}}
		}, false},
		"a DaemonSet's Pod that was pushed before": {func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", Controller: ptr.To(true)}}
			pod.Status.Conditions = []corev1.PodCondition{{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue}}
		}, true},
		"a Deployment's Pod": {func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: ptr.To(true)}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var pod corev1.Pod
			tc.change(&pod)
			if got := mayUseDisk(&pod); got != tc.want {
				t.Errorf("uses: %t, want %t", got, tc.want)
			}
		})
	}
}
