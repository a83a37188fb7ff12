package route

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// edit is an update of an object.
type edit struct {
	change func(client.Object)
	counts bool
}

func annotate(key string) func(client.Object) {
	return func(o client.Object) { o.SetAnnotations(map[string]string{key: "x"}) }
}

// metadata contains edits that apply to objects of all kinds.
var metadata = map[string]edit{
	"a Kubernetes finalizer":                 {func(o client.Object) { o.SetFinalizers([]string{"kubernetes.io/pv-protection"}) }, false},
	"Xylem's finalizer":                      {func(o client.Object) { o.SetFinalizers([]string{v1alpha1.FinalizerLeafVolume}) }, true},
	"managed fields":                         {func(o client.Object) { o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}}) }, false},
	"one of the PV controller's annotations": {annotate("pv.kubernetes.io/bind-completed"), false},
	"the provisioner annotation":             {annotate(volumehelpers.AnnStorageProvisioner), false},
	"the selected-node annotation":           {annotate(AnnSelectedNode), true},
	"one of Xylem's annotations":             {annotate(v1alpha1.AnnotationPlacedIn), true},
	"a user's annotation":                    {annotate("example.com/note"), true},
	"a label":                                {func(o client.Object) { o.SetLabels(map[string]string{"app": "x"}) }, true},
	"an owner":                               {func(o client.Object) { o.SetOwnerReferences([]metav1.OwnerReference{{UID: "owner"}}) }, true},
	"the deletion timestamp":                 {func(o client.Object) { o.SetDeletionTimestamp(&metav1.Time{}) }, true},
	"another object with the same name":      {func(o client.Object) { o.SetUID("another") }, true},
}

func check(t *testing.T, concerns ConcernsFunc, object client.Object, edits ...map[string]edit) {
	t.Helper()
	for _, edits := range edits {
		for name, e := range edits {
			after := copyOf(t, object)
			e.change(after)
			if got := concerns(object, after); got != e.counts {
				t.Errorf("%s: %t", name, got)
			}
		}
	}
	if concerns(object, copyOf(t, object)) {
		t.Error("an update without a change concerns the controller")
	}
}

func copyOf(t *testing.T, object client.Object) client.Object {
	t.Helper()
	copied, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("%T is not an object", object)
	}
	return copied
}

func onVolumeOf(change func(*corev1.PersistentVolume)) func(client.Object) {
	return func(o client.Object) {
		if pv, ok := o.(*corev1.PersistentVolume); ok {
			change(pv)
		}
	}
}

func TestVolumeChanged(t *testing.T) {
	check(t, VolumeChanged, &corev1.PersistentVolume{}, metadata, map[string]edit{
		"the phase":                        {onVolumeOf(func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeBound }), true},
		"the time of the phase transition": {onVolumeOf(func(pv *corev1.PersistentVolume) { pv.Status.LastPhaseTransitionTime = &metav1.Time{} }), false},
		"the claimRef":                     {onVolumeOf(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = &corev1.ObjectReference{UID: "claim"} }), true},
		"the resourceVersion":              {onVolumeOf(func(pv *corev1.PersistentVolume) { pv.ResourceVersion = "2" }), false},
	})
}

func onClaimOf(change func(*corev1.PersistentVolumeClaim)) func(client.Object) {
	return func(o client.Object) {
		if claim, ok := o.(*corev1.PersistentVolumeClaim); ok {
			change(claim)
		}
	}
}

func TestClaimsChanged(t *testing.T) {
	volume := onClaimOf(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-1" })
	phase := onClaimOf(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound })
	capacity := onClaimOf(func(c *corev1.PersistentVolumeClaim) {
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	})
	modes := onClaimOf(func(c *corev1.PersistentVolumeClaim) {
		c.Status.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	})
	check(t, ClaimChanged, &corev1.PersistentVolumeClaim{}, metadata, map[string]edit{
		"the volume": {volume, true}, "the phase": {phase, false}, "the capacity": {capacity, false}, "the access modes": {modes, false},
	})
	check(t, LeafClaimChanged, &corev1.PersistentVolumeClaim{}, metadata, map[string]edit{
		"the volume": {volume, true}, "the phase": {phase, true}, "the capacity": {capacity, true}, "the access modes": {modes, false},
	})
}

func TestPodChanged(t *testing.T) {
	on := func(change func(*corev1.Pod)) func(client.Object) {
		return func(o client.Object) {
			if pod, ok := o.(*corev1.Pod); ok {
				change(pod)
			}
		}
	}
	condition := func(kind corev1.PodConditionType) func(client.Object) {
		return on(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: kind, Status: corev1.ConditionTrue}}
		})
	}
	check(t, PodChanged, &corev1.Pod{}, metadata, map[string]edit{
		"the node":                   {on(func(p *corev1.Pod) { p.Spec.NodeName = "node" }), true},
		"the nominated node":         {on(func(p *corev1.Pod) { p.Status.NominatedNodeName = "node" }), true},
		"the phase Running":          {on(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }), false},
		"the phase Failed":           {on(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), true},
		"the addresses":              {on(func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }), false},
		"the container statuses":     {on(func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app"}} }), false},
		"the Ready condition":        {condition(corev1.PodReady), false},
		"the PodScheduled condition": {condition(corev1.PodScheduled), true},
		"the Pushed condition":       {condition(v1alpha1.PodPushed), true},
	})
}
