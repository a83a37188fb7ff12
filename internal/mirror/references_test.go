package mirror

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestReferences(t *testing.T) {
	ref := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	env := func(source corev1.EnvVarSource) corev1.EnvVar { return corev1.EnvVar{Name: "E", ValueFrom: &source} }
	cases := map[string]struct {
		spec corev1.PodSpec
		want []Reference
	}{
		"none": {
			spec: corev1.PodSpec{
				Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "A", Value: "b"}, env(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}})}}},
				Volumes:    []corev1.Volume{claimVolume("data", "disk"), tokenVolume("kube-api-access-x")},
			},
			want: []Reference{},
		},
		"environment of containers and init containers": {
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("c1")}},
					{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("s1"), Optional: ptr(true)}},
				}}},
				Containers: []corev1.Container{{Env: []corev1.EnvVar{
					env(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("c2"), Optional: ptr(true)}}),
					env(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("s2")}}),
				}}},
			},
			want: []Reference{{"ConfigMap", "c1", false}, {"ConfigMap", "c2", true}, {"Secret", "s1", true}, {"Secret", "s2", false}},
		},
		"volumes": {
			spec: corev1.PodSpec{Volumes: []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("c")}}},
				{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", Optional: ptr(true)}}},
				{VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: ptr(ref("chap"))}}},
				{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref("pc")}},
					{Secret: &corev1.SecretProjection{LocalObjectReference: ref("ps")}},
				}}}},
			}},
			want: []Reference{
				{"ConfigMap", "c", false}, {"ConfigMap", "pc", false},
				{"Secret", "chap", false}, {"Secret", "ps", false}, {"Secret", "s", true},
			},
		},
		"image pull secrets, without which a Pod runs if the image is public": {
			spec: corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{ref("pull"), ref("")}},
			want: []Reference{{"Secret", "pull", true}},
		},
		"needed once is needed, whichever comes first": {
			spec: corev1.PodSpec{Containers: []corev1.Container{
				{EnvFrom: []corev1.EnvFromSource{
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("a"), Optional: ptr(true)}},
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("a")}},
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("b")}},
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("b"), Optional: ptr(true)}},
				}},
			}},
			want: []Reference{{"ConfigMap", "a", false}, {"ConfigMap", "b", false}},
		},
		"the CA that every namespace has": {
			spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("kube-root-ca.crt")},
			}}}},
			want: []Reference{},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, References(rootPod(c.spec))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
