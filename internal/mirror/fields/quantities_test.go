package fields

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestOutOfRange(t *testing.T) {
	huge := resource.MustParse("1e102")
	fine := resource.MustParse("1Gi")
	container := corev1.Container{Name: "app", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: fine, corev1.ResourceMemory: huge},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: fine},
	}}
	spec := &corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init", Env: []corev1.EnvVar{{Name: "CPU", ValueFrom: &corev1.EnvVarSource{
			ResourceFieldRef: &corev1.ResourceFieldSelector{Divisor: huge}}}}}},
		Containers: []corev1.Container{container},
		Overhead:   corev1.ResourceList{"example.com/slots": huge},
		Resources:  &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: huge}},
		Volumes: []corev1.Volume{
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &huge}}},
			{Name: "small", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &fine}}},
		},
	}
	want := []string{
		"spec.containers[app].resources.requests[memory]: the quantity is out of range",
		"spec.initContainers[init].env[CPU].valueFrom.resourceFieldRef.divisor: the quantity is out of range",
		"spec.overhead[example.com/slots]: the quantity is out of range",
		"spec.resources.limits[cpu]: the quantity is out of range",
		"spec.volumes[scratch].emptyDir.sizeLimit: the quantity is out of range",
	}
	if diff := cmp.Diff(want, QuantitiesOutOfRange(spec, "spec")); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if got := QuantitiesOutOfRange(&corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}, "spec"); got != nil {
		t.Errorf("lines for a Pod without quantities: %q", got)
	}
}
