package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror"
)

// admitted returns the volume that ServiceAccount admission adds, with more sources.
func admitted(more ...corev1.VolumeProjection) corev1.Volume {
	return corev1.Volume{Name: "kube-api-access-x7k2p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: append([]corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3607))}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: RootCAConfigMap}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
	}, more...)}}}
}

func configMapSource(name string) corev1.VolumeProjection {
	return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

func secretSource(key, path string) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: mirror.TokenSecretName("r1")}, Items: []corev1.KeyToPath{{Key: key, Path: path}},
	}}
}

// keyOf returns the key of a token.
func keyOf(audience string, seconds int64) string {
	return tokenOfSource(&corev1.ServiceAccountTokenProjection{Audience: audience, ExpirationSeconds: &seconds}).Key
}

func TestProjectHostTokens(t *testing.T) {
	vault := corev1.Volume{Name: "vault", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		configMapSource("settings"),
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "vault-token", Audience: "vault", ExpirationSeconds: new(int64(86400))}},
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "short", Audience: "other", ExpirationSeconds: new(int64(60))}},
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "again", Audience: "vault"}},
		configMapSource(RootCAConfigMap),
	}}}}
	mounting := func(name, volume string, env ...corev1.EnvVar) corev1.Container {
		return corev1.Container{Name: name, Env: env, VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: "/var/run"}}}
	}
	root := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "r1"},
		Spec: corev1.PodSpec{
			Volumes:        []corev1.Volume{admitted(configMapSource("openshift-service-ca.crt")), vault},
			InitContainers: []corev1.Container{mounting("init", "kube-api-access-x7k2p")},
			Containers: []corev1.Container{
				mounting("app", "kube-api-access-x7k2p", corev1.EnvVar{Name: envAPIServerHost, Value: "chosen"}),
				mounting("agent", "vault"),
			},
		},
	}
	want := []Token{
		{Key: keyOf("", 3600), ExpirationSeconds: 3600},
		{Key: keyOf("vault", 3600), Audience: "vault", ExpirationSeconds: 3600},
		{Key: keyOf("other", 600), Audience: "other", ExpirationSeconds: 600},
	}
	if diff := cmp.Diff(want, TokensOfPod(root)); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}

	member := mirror.Member{HostID: "h1", APIServer: &mirror.APIServer{Host: "10.0.0.1", Port: "6443"}}
	leaf, err := TranslatePod(root, member)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]corev1.VolumeProjection{
		{secretSource(keyOf("", 3600), "token"), secretSource("ca.crt", "ca.crt"), root.Spec.Volumes[0].Projected.Sources[2]},
		{configMapSource("settings"), secretSource(keyOf("vault", 3600), "vault-token"), secretSource(keyOf("other", 600), "short"), secretSource(keyOf("vault", 3600), "again"), secretSource("ca.crt", "ca.crt")},
	} {
		if diff := cmp.Diff(want, leaf.Spec.Volumes[i].Projected.Sources); diff != "" {
			t.Errorf("volume %s (-want +got):\n%s", leaf.Spec.Volumes[i].Name, diff)
		}
	}
	server := []corev1.EnvVar{{Name: envAPIServerHost, Value: "10.0.0.1"}, {Name: envAPIServerPort, Value: "6443"}}
	for name, envs := range map[string][2][]corev1.EnvVar{
		"init":  {leaf.Spec.InitContainers[0].Env, server},
		"app":   {leaf.Spec.Containers[0].Env, {server[1], {Name: envAPIServerHost, Value: "chosen"}}},
		"agent": {leaf.Spec.Containers[1].Env, nil},
	} {
		if diff := cmp.Diff(envs[1], envs[0]); diff != "" {
			t.Errorf("environment of %s (-want +got):\n%s", name, diff)
		}
	}
	if leaf.Spec.AutomountServiceAccountToken == nil || *leaf.Spec.AutomountServiceAccountToken {
		t.Error("the member would mount a token of its own")
	}
	if names := OmittedFields(root, member); len(names) > 0 {
		t.Errorf("the leaf lacks %q", names)
	}

	if d := PodDriftOf(root, leaf, mirror.Member{HostID: "h1"}); !d.IsEmpty() {
		t.Errorf("the leaf drifts once the registration has no apiServer: %+v", d)
	}
	many := root.DeepCopy()
	for i := range int64(maxTokens) {
		many.Spec.Volumes[1].Projected.Sources = append(many.Spec.Volumes[1].Projected.Sources,
			corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t", Audience: "vault", ExpirationSeconds: new(601 + i)}})
	}
	if _, err := TranslatePod(many, member); err == nil {
		t.Error("a Pod with too many tokens is not refused")
	}

	member.APIServer = nil
	if _, err := TranslatePod(root, member); err == nil {
		t.Error("without apiServer, the Pod with a token volume of its own is not refused")
	}
}
