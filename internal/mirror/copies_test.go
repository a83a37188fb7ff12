package mirror

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestCopyNames(t *testing.T) {
	// Pods that run refer to it: it never changes.
	if got := copies.Name("settings"); got != "settings.xylem-"+digestOfSettings {
		t.Errorf("the copy is called %s", got)
	}
	long := strings.Repeat("a", validation.DNS1123SubdomainMaxLength-1)
	names := []string{
		copies.Name("settings"), copies.Name("settings.xylem-" + digestOfSettings), copies.Name(long + "b"), copies.Name(long + "c"),
		copies.Name(strings.Repeat("a.", 126)), Copies{HostID: hostID, Namespace: "newer-uid"}.Name("settings"), Copies{HostID: "other", Namespace: "shop-uid"}.Name("settings"),
	}
	for i, name := range names {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%s is no name: %v", name, problems)
		}
		if slices.Contains(names[:i], name) {
			t.Errorf("two copies are called %s", name)
		}
	}
}

const digestOfSettings = "d2e138a8"

// A copy is that of its root, and of nothing else.
func TestOriginOfCopies(t *testing.T) {
	long := strings.Repeat("a", validation.DNS1123SubdomainMaxLength)
	for name, tc := range map[string]struct {
		root, leaf string
		pod        bool
		want       bool
	}{
		"the copy":                         {root: "settings", leaf: copies.Name("settings"), want: true},
		"of an earlier namespace":          {root: "settings", leaf: Copies{HostID: hostID, Namespace: "older-uid"}.Name("settings"), want: true},
		"as copies were called before":     {root: "settings", leaf: "settings", want: true},
		"of a root with a long name":       {root: long, leaf: copies.Name(long), want: true},
		"of another root":                  {root: "settings", leaf: copies.Name("password")},
		"of a root that begins like it":    {root: "settings", leaf: copies.Name("settings.more")},
		"copied to another name":           {root: "settings", leaf: "settings-2"},
		"with no digest":                   {root: "settings", leaf: "settings.xylem-somebody"},
		"with a longer digest":             {root: "settings", leaf: copies.Name("settings") + "00"},
		"a Pod that is called like a copy": {root: "settings", leaf: copies.Name("settings"), pod: true},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Namespace: "shop", Name: tc.leaf}
			OriginFor(hostID, &metav1.ObjectMeta{Namespace: "shop", Name: tc.root, UID: "root-uid"}).Stamp(&meta)
			var leaf metav1.Object = &corev1.Secret{ObjectMeta: meta}
			if tc.pod {
				leaf = &corev1.Pod{ObjectMeta: meta}
			}
			if _, got := OriginIn(hostID, leaf); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// PointAt renames each reference, where it stands, and nothing else.
func TestPointAt(t *testing.T) {
	ref := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	spec := func(name func(string) string) corev1.PodSpec {
		container := corev1.Container{
			EnvFrom: []corev1.EnvFromSource{
				{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref(name("a"))}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref(name("b")), Optional: ptr(true)}},
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
	PointAt(copies, leaf)
	if diff := cmp.Diff(spec(copies.Name), leaf.Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
