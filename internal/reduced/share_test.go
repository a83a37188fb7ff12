package reduced

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func claim(change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	size := func() corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	}
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "data", UID: "uid", Finalizers: []string{"kubernetes.io/pvc-protection"},
			Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"xylem.io/root": "shop/data", "pv.kubernetes.io/bind-completed": "yes"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To("gold"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: size()},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size()},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func volume(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: "uid", Labels: map[string]string{"xylem.io/cluster": "one"}, Annotations: map[string]string{"a": "b"}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data", UID: "claim"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.xylem.io", VolumeHandle: "one/pv", VolumeAttributes: map[string]string{"driver": "disk.example.com"}}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "xylem.io/cluster-id", Operator: corev1.NodeSelectorOpIn, Values: []string{"one"}}},
			}}}},
		},
	}
	for _, f := range change {
		f(pv)
	}
	return pv
}

func TestSharingChangesNoValue(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"the same values as the first claim": func(*corev1.PersistentVolumeClaim) {},
		"a different size": func(c *corev1.PersistentVolumeClaim) {
			c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		},
		"another class and volume mode": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.StorageClassName, c.Spec.VolumeMode = ptr.To("Block"), ptr.To(corev1.PersistentVolumeBlock)
		},
		"a different label": func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"app": "db"} },
		"different labels with the same concatenated text": func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"app": "web", "a": ""} },
		"different access modes": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		},
		"empty": func(c *corev1.PersistentVolumeClaim) { *c = corev1.PersistentVolumeClaim{} },
	} {
		t.Run(name, func(t *testing.T) {
			InternClaim(claim()) // the same values again
			got, want := claim(change), claim(change)
			InternClaim(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"the same values as the first volume": func(*corev1.PersistentVolume) {},
		"a different node affinity": func(pv *corev1.PersistentVolume) {
			pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0] = "two"
		},
		"no CSI source, claimRef or node affinity": func(pv *corev1.PersistentVolume) { pv.Spec.CSI, pv.Spec.ClaimRef, pv.Spec.NodeAffinity = nil, nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			InternVolume(volume())
			got, want := volume(change), volume(change)
			InternVolume(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEqualValuesAreShared(t *testing.T) {
	a, b := claim(), claim()
	InternClaim(a)
	InternClaim(b)
	one, two := volume(), volume()
	InternVolume(one)
	InternVolume(two)
	for name, pair := range map[string][2]any{
		"labels": {a.Labels, b.Labels}, "requests": {a.Spec.Resources.Requests, b.Status.Capacity},
		"affinity": {one.Spec.NodeAffinity, two.Spec.NodeAffinity}, "capacity": {one.Spec.Capacity, a.Status.Capacity},
		"annotations": {one.Annotations, two.Annotations}, "class": {a.Spec.StorageClassName, b.Spec.StorageClassName},
	} {
		if reflect.ValueOf(pair[0]).Pointer() != reflect.ValueOf(pair[1]).Pointer() {
			t.Errorf("%s is not shared", name)
		}
	}
	if reflect.ValueOf(a.Annotations).Pointer() == reflect.ValueOf(b.Annotations).Pointer() {
		t.Error("objects share annotations that name their root")
	}
}
