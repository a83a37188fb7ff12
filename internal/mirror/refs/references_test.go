package refs

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
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
				Volumes:    []corev1.Volume{mirrortest.NewClaimVolume("data", "disk"), mirrortest.NewTokenVolume("kube-api-access-x")},
			},
			want: []Reference{},
		},
		"environment of containers and init containers": {
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("c1")}},
					{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("s1"), Optional: mirrortest.PointerTo(true)}},
				}}},
				Containers: []corev1.Container{{Env: []corev1.EnvVar{
					env(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("c2"), Optional: mirrortest.PointerTo(true)}}),
					env(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("s2")}}),
				}}},
			},
			want: []Reference{{"ConfigMap", "c1", false}, {"ConfigMap", "c2", true}, {"Secret", "s1", true}, {"Secret", "s2", false}},
		},
		"volumes": {
			spec: corev1.PodSpec{Volumes: []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("c")}}},
				{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", Optional: mirrortest.PointerTo(true)}}},
				{VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: mirrortest.PointerTo(ref("chap"))}}},
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
		"image pull secrets, which a Pod with a public image does not need": {
			spec: corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{ref("pull"), ref("")}},
			want: []Reference{{"Secret", "pull", true}},
		},
		"required in one place, optional in another": {
			spec: corev1.PodSpec{Containers: []corev1.Container{
				{EnvFrom: []corev1.EnvFromSource{
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("a"), Optional: mirrortest.PointerTo(true)}},
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("a")}},
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("b")}},
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("b"), Optional: mirrortest.PointerTo(true)}},
				}},
			}},
			want: []Reference{{"ConfigMap", "a", false}, {"ConfigMap", "b", false}},
		},
		"the CA bundle that exists in every namespace": {
			spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("kube-root-ca.crt")},
			}}}},
			want: []Reference{},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ReferencesOfPod(mirrortest.NewRootPod(c.spec))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, want := range c.want {
				if got, found := FindReference(mirrortest.NewRootPod(c.spec), want.Kind, want.Name); !found || got != want {
					t.Errorf("Find returns %v, %t; want %v", got, found, want)
				}
			}
			for _, name := range []string{"kube-root-ca.crt", "absent", ""} {
				if got, found := FindReference(mirrortest.NewRootPod(c.spec), KindConfigMap, name); found {
					t.Errorf("Find returns %v, want none", got)
				}
			}
		})
	}
}

// A Pod may refer to many objects, and as often as it likes, but only up to a limit.
func TestBounded(t *testing.T) {
	pod := func(n int, name func(int) string) *corev1.Pod {
		c := corev1.Container{}
		for i := range n {
			c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name(i)}}})
		}
		return mirrortest.NewRootPod(corev1.PodSpec{Containers: []corev1.Container{c}})
	}
	claims := corev1.PodSpec{}
	for i := range ReferenceLimit + 1 {
		claims.Volumes = append(claims.Volumes, mirrortest.NewClaimVolume(strconv.Itoa(i), strconv.Itoa(i)))
	}
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		want    int
		tooMany bool
	}{
		"as many as allowed":  {pod(ReferenceLimit, strconv.Itoa), ReferenceLimit, false},
		"one more":            {pod(ReferenceLimit+1, strconv.Itoa), 0, true},
		"very many":           {pod(50_000, strconv.Itoa), 0, true},
		"the same many times": {pod(50_000, func(int) string { return "a" }), 1, false},
		"one claim more":      {mirrortest.NewRootPod(claims), 0, true},
		"many invalid names":  {pod(1000, func(i int) string { return "-" + strconv.Itoa(i) }), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := BoundedReferencesOf(c.pod); len(got) != c.want || HasTooManyReferences(c.pod) != c.tooMany {
				t.Errorf("%d references, too many: %t; want %d, %t", len(got), HasTooManyReferences(c.pod), c.want, c.tooMany)
			}
		})
	}
}

// PointAtCopies renames each reference in place, and changes nothing else.
func TestPointAt(t *testing.T) {
	ref := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	spec := func(name func(string) string) corev1.PodSpec {
		container := corev1.Container{
			EnvFrom: []corev1.EnvFromSource{
				{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref(name("a"))}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref(name("b")), Optional: mirrortest.PointerTo(true)}},
			},
			Env: []corev1.EnvVar{
				{Name: "plain", Value: "a"},
				{Name: "c", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref(name("c")), Key: "a"}}},
				{Name: "d", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref(name("d")), Key: "a"}}},
			},
		}
		volumes := []corev1.VolumeSource{
			{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref(name("e")), Items: []corev1.KeyToPath{{Key: "a", Path: "a"}}}},
			{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("kube-root-ca.crt")}},
			{Secret: &corev1.SecretVolumeSource{SecretName: name("f")}},
			{Secret: &corev1.SecretVolumeSource{SecretName: name("kube-root-ca.crt")}},
			{Secret: &corev1.SecretVolumeSource{SecretName: "../no-name"}},
			{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: name("g")}}},
			{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref(name("h"))}},
				{Secret: &corev1.SecretProjection{LocalObjectReference: ref(name("i")), Items: []corev1.KeyToPath{{Key: "a", Path: "a"}}}},
			}}},
		}
		s := corev1.PodSpec{
			InitContainers: []corev1.Container{container}, Containers: []corev1.Container{container},
			ImagePullSecrets: []corev1.LocalObjectReference{ref(name("j")), ref("")},
		}
		for _, source := range volumes {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: "a", VolumeSource: source})
		}
		return *s.DeepCopy()
	}
	leaf := &corev1.Pod{Spec: spec(func(name string) string { return name })}
	PointAtCopies(mirrortest.ConfigCopies, leaf)
	if diff := cmp.Diff(spec(mirrortest.ConfigCopies.NameOfCopy), leaf.Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
